//! An agent under test with everything it talks to, and the checks that follow every case.

use std::sync::Arc;

use youyou_agent::testing::{
    InMemorySessions, ScriptedProvider, assert_event_invariants, collect, done, text, vision_model,
};
use youyou_agent::{
    Agent, AgentBuilder, AgentConfig, AgentEvent, ChatRequest, ModelInfo, ResumeOptions, Session,
    SessionConfig, SessionEvent, SessionStorage, UserInput,
};

/// The model every rig starts with.
pub(crate) const MODEL: &str = "m1";

/// An agent with a scripted provider and an in-memory session storage.
pub(crate) struct Rig {
    pub(crate) agent: Agent,
    pub(crate) provider: ScriptedProvider,
    pub(crate) storage: InMemorySessions,
    pub(crate) session: Session,
}

/// A provider with one model that has vision and a large window.
pub(crate) fn provider() -> ScriptedProvider {
    ScriptedProvider::new("scripted").model(vision_model(MODEL))
}

/// A provider whose model has this window, in tokens.
pub(crate) fn provider_with_window(window: u32) -> ScriptedProvider {
    let model = ModelInfo {
        context_window: window,
        ..vision_model(MODEL)
    };
    ScriptedProvider::new("scripted").model(model)
}

pub(crate) fn config() -> AgentConfig {
    AgentConfig::new(MODEL)
}

async fn agent(
    provider: &ScriptedProvider,
    config: AgentConfig,
    storage: impl SessionStorage,
    register: impl FnOnce(AgentBuilder) -> AgentBuilder,
) -> Agent {
    let builder = AgentBuilder::new(config)
        .provider(provider.clone())
        .session_storage(storage);
    register(builder).build().await.expect("the agent builds")
}

impl Rig {
    /// A rig with the defaults.
    pub(crate) async fn new(provider: ScriptedProvider) -> Self {
        Self::with(provider, config(), |builder| builder).await
    }

    /// A rig with this configuration and what `register` adds.
    pub(crate) async fn with(
        provider: ScriptedProvider,
        config: AgentConfig,
        register: impl FnOnce(AgentBuilder) -> AgentBuilder,
    ) -> Self {
        let storage = InMemorySessions::new();
        let agent = agent(&provider, config, storage.clone(), register).await;
        Self::created(agent, provider, storage).await
    }

    /// A rig whose agent writes through `wrapped`, a storage around `storage`.
    pub(crate) async fn over(
        provider: ScriptedProvider,
        config: AgentConfig,
        storage: InMemorySessions,
        wrapped: impl SessionStorage,
        register: impl FnOnce(AgentBuilder) -> AgentBuilder,
    ) -> Self {
        let agent = agent(&provider, config, wrapped, register).await;
        Self::created(agent, provider, storage).await
    }

    /// A rig that goes on with a session of this storage, as a new process would.
    pub(crate) async fn resumed(
        provider: ScriptedProvider,
        config: AgentConfig,
        storage: InMemorySessions,
        session_id: &str,
        register: impl FnOnce(AgentBuilder) -> AgentBuilder,
    ) -> Self {
        let agent = agent(&provider, config, storage.clone(), register).await;
        let session = agent
            .resume_session(session_id, ResumeOptions::default())
            .await
            .expect("the session resumes");
        Self {
            agent,
            provider,
            storage,
            session,
        }
    }

    async fn created(agent: Agent, provider: ScriptedProvider, storage: InMemorySessions) -> Self {
        let session = agent
            .create_session(SessionConfig::default())
            .await
            .expect("a session is created");
        Self {
            agent,
            provider,
            storage,
            session,
        }
    }

    /// Goes on with a new session; the one before is closed already.
    pub(crate) async fn anew(self) -> Self {
        Self::created(self.agent, self.provider, self.storage).await
    }

    /// Closes the session and resumes it.
    pub(crate) async fn reopen(&mut self) {
        let id = self.session.id().to_owned();
        self.session.close().await.expect("the session closes");
        self.session = self
            .agent
            .resume_session(&id, ResumeOptions::default())
            .await
            .expect("the session resumes");
    }

    /// Sends a message and reads the turn to its end, checking INV-2.
    pub(crate) async fn send(&self, input: impl Into<UserInput>) -> Vec<AgentEvent> {
        let turn = self.session.send(input).expect("the message is accepted");
        let events = collect(turn).await;
        assert_event_invariants(&events);
        events
    }

    /// The stored events of the session.
    pub(crate) fn stored(&self) -> Vec<SessionEvent> {
        self.storage.events(self.session.id())
    }

    pub(crate) fn request(&self, number: usize) -> Arc<ChatRequest> {
        let requests = self.provider.requests();
        Arc::clone(&requests[number - 1])
    }

    /// INV-7: the session takes a plain text and gets an answer, now and after close and
    /// resume; and no request of the whole test broke a rule (INV-1, INV-3, INV-4).
    pub(crate) async fn epilogue(mut self) {
        self.provider.forget_scripts();
        self.provider.fall_back(|_| [text("fine"), done()]);
        self.answers("still there?").await;
        self.reopen().await;
        self.answers("and now?").await;
        assert_eq!(self.provider.violations(), Vec::<String>::new());
    }

    async fn answers(&self, text: &str) {
        let turn = self.session.send(text).expect("the message is accepted");
        let outcome = turn.outcome().await;
        assert_eq!(*outcome.assistant_output, *"fine", "{outcome:?}");
    }
}
