//! A tool that ends the session it runs in must not wait for itself.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::Instant;
use youyou_agent::testing::{RecordingTool, call, collect, done, text};
use youyou_agent::{
    Agent, AgentError, ErrorCode, ResumeOptions, SessionConfig, SessionState, ToolContext,
    ToolDefinition, ToolError, ToolHandler, ToolInput, ToolOutput, tool,
};

use crate::rig::{Rig, config, provider};
use crate::told::told;

/// The agent, which exists only after its tools.
type Later = Arc<Mutex<Option<Agent>>>;

fn agent(later: &Later) -> Agent {
    later.lock().unwrap().clone().expect("the agent is built")
}

/// No arguments.
#[derive(Deserialize, JsonSchema)]
struct Nothing {}

/// Does one thing to its own agent, and tells what came of it.
struct Does(&'static str, Later);

impl Does {
    async fn close(agent: Agent) -> Result<String, AgentError> {
        let session = agent.current_session().expect("a session is open");
        session.close().await.map(|()| "closed".to_owned())
    }

    async fn run(what: &str, agent: Agent) -> Result<String, AgentError> {
        let replacing = SessionConfig {
            replace: true,
            ..SessionConfig::default()
        };
        let resuming = ResumeOptions {
            replace: true,
            ..ResumeOptions::default()
        };
        let opened = |_| "opened".to_owned();
        match what {
            "close" => Self::close(agent).await,
            "create" => agent.create_session(replacing).await.map(opened),
            "resume" => {
                let session = agent.current_session().expect("a session is open");
                agent
                    .resume_session(session.id(), resuming)
                    .await
                    .map(opened)
            }
            "shutdown" => Ok(agent.shutdown().await.problems.join("; ")),
            "close_in_a_task" => {
                // Not awaited: it waits for the call as anyone does.
                tokio::spawn(Self::close(agent));
                Ok("spawned".to_owned())
            }
            other => panic!("{other}"),
        }
    }
}

#[async_trait]
impl ToolHandler for Does {
    fn definition(&self) -> ToolDefinition {
        RecordingTool::mutating(self.0).definition()
    }

    async fn call(&self, _: ToolInput, context: ToolContext) -> Result<ToolOutput, ToolError> {
        let done = Self::run(self.0, agent(&self.1)).await;
        if self.0 == "shutdown" {
            // It goes on meanwhile: it cancels the turn, and waits for the tool.
            context.cancel_requested.cancelled().await;
        }
        match done {
            Ok(done) => Ok(ToolOutput::text(done)),
            Err(error) => Err(ToolError::new(error)),
        }
    }
}

/// A rig whose one tool does this.
async fn doing(what: &'static str) -> Rig {
    let later = Later::default();
    let provider = provider()
        .reply([call("c1", what, "{}"), done()])
        .reply([text("ok"), done()]);
    let tool = Does(what, Arc::clone(&later));
    let rig = Rig::with(provider, config(), |builder| builder.tool(tool)).await;
    *later.lock().unwrap() = Some(rig.agent.clone());
    rig
}

#[tokio::test(start_paused = true)]
async fn a_tool_cannot_close_or_replace_its_own_session() {
    for (what, words) in [
        ("close", "close its session"),
        ("create", "replace its session"),
        ("resume", "replace its session"),
    ] {
        let rig = doing(what).await;
        let began = Instant::now();
        let refusal = format!(
            "failed c1 TOOL_EXECUTION_ERROR: TOOL_EXECUTION_ERROR: SESSION_BUSY: the tool \"{what}\" cannot {words} from inside its own call, because that waits for the call to end; do it after the turn, or in a task that the tool does not await"
        );
        assert_eq!(
            told(&rig.send("go").await),
            [
                "started",
                &format!("start c1 {what}"),
                &refusal,
                "text 1: ok",
                "completed: ok"
            ]
        );
        assert_eq!(began.elapsed(), Duration::ZERO);
        assert_eq!(rig.session.info().state, SessionState::Idle);
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_can_begin_a_shutdown_which_goes_on_when_it_has_returned() {
    let rig = doing("shutdown").await;
    let began = Instant::now();
    let events = told(&collect(rig.session.send("go").unwrap()).await);
    assert_eq!(
        events,
        [
            "started",
            "start c1 shutdown",
            "end c1: the tool \"shutdown\" began the shutdown from inside its own call, so its end cannot be awaited here; it goes on when the tool has returned",
            "cancelled"
        ]
    );
    assert_eq!(rig.agent.shutdown().await.problems, Vec::<String>::new());
    assert_eq!(began.elapsed(), Duration::ZERO);
    let refused = rig.agent.create_session(SessionConfig::default()).await;
    assert_eq!(refused.unwrap_err().code, ErrorCode::AgentShutDown);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_a_tool_starts_may_close_the_session() {
    let rig = doing("close_in_a_task").await;
    let events = told(&collect(rig.session.send("go").unwrap()).await);
    assert_eq!(events[2], "end c1: spawned");
    rig.session.close().await.unwrap();
    assert_eq!(rig.session.info().state, SessionState::Closed);
    rig.anew().await.epilogue().await;
}

/// On a runtime with several threads.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blocking_tool_cannot_wait_for_itself_either() {
    let later = Later::default();
    let closes = {
        let later = Arc::clone(&later);
        tool::typed_blocking("close", "Closes.", move |_: Nothing, _: ToolContext| {
            let handle = tokio::runtime::Handle::current();
            let closed = handle.block_on(Does::close(agent(&later)));
            closed.map_err(ToolError::new)
        })
    };
    let provider = provider()
        .reply([call("c1", "close", "{}"), done()])
        .reply([text("ok"), done()]);
    let rig = Rig::with(provider, config(), |builder| builder.tool(closes)).await;
    *later.lock().unwrap() = Some(rig.agent.clone());
    let events = told(&rig.send("go").await);
    assert!(events[2].contains("SESSION_BUSY"), "{events:?}");
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_tool_may_end_another_agent() {
    let other = doing("close").await;
    let second = other.agent.clone();
    let ends = tool::typed("end", "Ends.", move |_: Nothing, _: ToolContext| {
        let second = second.clone();
        async move {
            let session = second.current_session().expect("a session is open");
            session.close().await.map_err(ToolError::new)?;
            Ok(second.shutdown().await.problems)
        }
    });
    let provider = provider()
        .reply([call("c1", "end", "{}"), done()])
        .reply([text("ok"), done()]);
    let rig = Rig::with(provider, config(), |builder| builder.tool(ends)).await;
    assert_eq!(told(&rig.send("go").await)[2], "end c1: []");
    rig.epilogue().await;
}
