//! An app with the plugin, its pages, and what arrives in their channels.

use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tauri::ipc::{CallbackFn, InvokeBody, InvokeResponse, InvokeResponseBody};
use tauri::test::{INVOKE_KEY, MockRuntime, mock_builder, mock_context, noop_assets};
use tauri::utils::acl::ExecutionContext;
use tauri::webview::InvokeRequest;
use tauri::{App, Builder, Context, WebviewWindow, WebviewWindowBuilder};
use youyou_agent::testing::{InMemorySessions, ScriptedProvider, vision_model};
use youyou_agent::{AgentBuilder, AgentConfig, PluginBuilder, ipc_testing};

/// After this a test has failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// What came through a channel.
#[derive(Debug, Clone)]
pub(crate) struct Message {
    pub(crate) page: String,
    pub(crate) channel: u32,
    pub(crate) index: usize,
    pub(crate) bytes: usize,
    pub(crate) event: Value,
}

impl Message {
    pub(crate) fn kind(&self) -> &str {
        self.event["type"].as_str().unwrap()
    }

    pub(crate) fn sequence(&self) -> u64 {
        self.event["sequence"].as_u64().unwrap()
    }

    pub(crate) fn delta(&self) -> &str {
        self.event["delta"].as_str().unwrap_or_default()
    }

    pub(crate) fn is_heartbeat(&self) -> bool {
        self.kind() == "heartbeat"
    }

    pub(crate) fn is_last(&self) -> bool {
        matches!(self.kind(), "turnComplete" | "turnCancelled")
    }
}

/// Everything that came through any channel, in order.
#[derive(Debug, Default)]
struct Inbox {
    messages: Mutex<Vec<Message>>,
    arrived: Condvar,
}

pub(crate) struct Harness {
    pub(crate) app: App<MockRuntime>,
    pub(crate) provider: ScriptedProvider,
    pub(crate) sessions: InMemorySessions,
    inbox: Arc<Inbox>,
}

/// A page of the app: the only webview of its window.
pub(crate) struct Page<'a> {
    pub(crate) window: WebviewWindow<MockRuntime>,
    harness: &'a Harness,
}

/// The provider and storage of most tests.
pub(crate) fn scripted() -> ScriptedProvider {
    ScriptedProvider::new("scripted").model(vision_model("m1"))
}

pub(crate) fn builder(provider: &ScriptedProvider) -> AgentBuilder {
    AgentBuilder::new(AgentConfig::new("m1")).provider(provider.clone())
}

/// A context in which every command of the plugin is allowed.
pub(crate) fn allowing() -> Context<MockRuntime> {
    let mut context = mock_context(noop_assets());
    for command in ipc_testing::commands() {
        context.runtime_authority_mut().__allow_command(
            format!("plugin:youyou-agent|{command}"),
            ExecutionContext::Local,
        );
    }
    context
}

impl Harness {
    pub(crate) fn new() -> Self {
        Self::with(|builder| builder, |plugin| plugin)
    }

    /// With further registrations and options.
    pub(crate) fn with(
        register: impl FnOnce(AgentBuilder) -> AgentBuilder,
        options: impl FnOnce(PluginBuilder<MockRuntime>) -> PluginBuilder<MockRuntime>,
    ) -> Self {
        let provider = scripted();
        let sessions = InMemorySessions::new();
        let agent = register(builder(&provider).session_storage(sessions.clone()));
        let inbox = Arc::<Inbox>::default();
        let app = receiving(&inbox)
            .plugin(options(PluginBuilder::new(agent)).build())
            .build(allowing())
            .unwrap();
        Self {
            app,
            provider,
            sessions,
            inbox,
        }
    }

    /// Opens a window with a page in it.
    pub(crate) fn page(&self, label: &str) -> Page<'_> {
        let window = WebviewWindowBuilder::new(&self.app, label, Default::default())
            .build()
            .unwrap();
        Page {
            window,
            harness: self,
        }
    }

    /// Waits until what has arrived satisfies the condition, and gives it.
    pub(crate) fn until<T>(&self, found: impl Fn(&[Message]) -> Option<T>) -> T {
        let messages = self.inbox.messages.lock().unwrap();
        let mut result = None;
        let (messages, timeout) = self
            .inbox
            .arrived
            .wait_timeout_while(messages, PATIENCE, |messages| {
                result = found(messages);
                result.is_none()
            })
            .unwrap();
        assert!(!timeout.timed_out(), "never came; there was {messages:#?}");
        result.unwrap()
    }

    /// What has arrived in a channel so far.
    pub(crate) fn arrived(&self, channel: u32) -> Vec<Message> {
        of(&self.inbox.messages.lock().unwrap(), channel)
    }

    /// Waits for the last event of a turn and gives all that came through the channel.
    pub(crate) fn whole_turn(&self, channel: u32) -> Vec<Message> {
        self.until(|messages| {
            let messages = of(messages, channel);
            messages
                .last()
                .is_some_and(Message::is_last)
                .then_some(messages)
        })
    }

    /// Waits until the texts that came through the channel are this.
    pub(crate) fn text(&self, channel: u32, text: &str) {
        self.until(|messages| (text_of(&of(messages, channel)) == text).then_some(()));
    }

    /// Waits until so many subscriptions are open.
    pub(crate) fn subscriptions(&self, expected: usize) {
        let started = std::time::Instant::now();
        while ipc_testing::subscriptions(&self.app) != expected {
            assert!(started.elapsed() < PATIENCE, "subscriptions stay open");
            std::thread::yield_now();
        }
    }
}

/// A mock app whose channels end in the inbox.
fn receiving(inbox: &Arc<Inbox>) -> Builder<MockRuntime> {
    let inbox = Arc::clone(inbox);
    mock_builder().channel_interceptor(move |webview, channel, index, body| {
        let InvokeResponseBody::Json(json) = body else {
            panic!("events are JSON");
        };
        inbox.messages.lock().unwrap().push(Message {
            page: webview.label().to_owned(),
            channel: channel.0,
            index,
            bytes: json.len(),
            event: serde_json::from_str(json).unwrap(),
        });
        inbox.arrived.notify_all();
        true
    })
}

fn of(messages: &[Message], channel: u32) -> Vec<Message> {
    let of_channel = |message: &&Message| message.channel == channel;
    messages.iter().filter(of_channel).cloned().collect()
}

pub(crate) fn text_of(messages: &[Message]) -> String {
    let texts = messages
        .iter()
        .filter(|message| message.kind() == "textDelta");
    texts.map(Message::delta).collect()
}

pub(crate) fn kinds(messages: &[Message]) -> Vec<&str> {
    messages.iter().map(Message::kind).collect()
}

/// A command argument that stands for a channel.
pub(crate) fn on(channel: u32) -> String {
    format!("__CHANNEL__:{channel}")
}

pub(crate) type Answer = Result<Value, Value>;

impl Page<'_> {
    /// Invokes a command and does not wait for its answer.
    pub(crate) fn begin(&self, command: &str, arguments: Value) -> Receiver<Answer> {
        let (answered, answer) = channel();
        let request = InvokeRequest {
            cmd: format!("plugin:youyou-agent|{command}"),
            callback: CallbackFn(0),
            error: CallbackFn(1),
            url: self.window.url().unwrap(),
            body: InvokeBody::Json(arguments),
            headers: Default::default(),
            invoke_key: INVOKE_KEY.to_owned(),
        };
        self.window.as_ref().clone().on_message(
            request,
            Box::new(move |_, _, response, _, _| {
                let answer = match response {
                    InvokeResponse::Ok(body) => Ok(body.deserialize().unwrap()),
                    InvokeResponse::Err(error) => Err(error.0),
                };
                // A test that has seen enough does not wait for every answer.
                let _ = answered.send(answer);
            }),
        );
        answer
    }

    pub(crate) fn invoke(&self, command: &str, arguments: Value) -> Answer {
        let answer = self.begin(command, arguments).recv_timeout(PATIENCE);
        answer.unwrap_or_else(|_| panic!("{command} never answered"))
    }

    /// Invokes a command that must succeed.
    pub(crate) fn get(&self, command: &str, arguments: Value) -> Value {
        let answer = self.invoke(command, arguments);
        answer.unwrap_or_else(|error| panic!("{command} failed: {error}"))
    }

    /// Invokes a command that must fail, and gives its code.
    pub(crate) fn refused(&self, command: &str, arguments: Value) -> String {
        let answer = self.invoke(command, arguments);
        let error = answer.expect_err(command);
        error["code"]
            .as_str()
            .unwrap_or_else(|| panic!("{error}"))
            .to_owned()
    }

    /// Creates a session and gives its id.
    pub(crate) fn session(&self) -> String {
        let info = self.get("create_session", json!({}));
        info["sessionId"].as_str().unwrap().to_owned()
    }

    /// Sends a text; events come through the channel. Gives turn id and subscription.
    pub(crate) fn send(&self, session: &str, text: &str, channel: u32) -> (String, u64) {
        let accepted = self.get(
            "send_message",
            json!({ "sessionId": session, "content": text, "onEvent": on(channel) }),
        );
        let turn_id = accepted["turnId"].as_str().unwrap().to_owned();
        (turn_id, accepted["subscription"].as_u64().unwrap())
    }

    /// Attaches to a session.
    pub(crate) fn attach(&self, session: &str, after: Option<u64>, channel: u32) -> Value {
        self.get(
            "attach",
            json!({ "sessionId": session, "afterSequence": after, "onEvent": on(channel) }),
        )
    }

    /// Cancels the running turn.
    pub(crate) fn cancel(&self) -> Value {
        self.get("cancel", json!({}))
    }

    /// As if the page was reloaded.
    pub(crate) fn reload(&self) {
        ipc_testing::page_loads(&self.harness.app, self.window.label());
    }

    /// As if the window was destroyed.
    pub(crate) fn destroy(self) {
        ipc_testing::window_destroyed(&self.harness.app, self.window.label());
    }
}
