//! What the handlers of each hook are given.
//!
//! The agent makes a payload once per run of a hook; each handler gets a copy that carries the
//! config of its own plugin.

use std::sync::Arc;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::agent::message::ContentBlock;

/// A session was created or resumed. `Abort`: it is not opened (`HOOK_ABORTED`).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SessionStart {
    /// The session.
    pub session_id: Arc<str>,
    /// Whether it was stored before.
    pub resumed: bool,
    /// The config this handler's plugin was registered with.
    pub plugin_config: Arc<Value>,
    pub(crate) cancel: Option<CancellationToken>,
}

/// A session is closed. Too late to abort.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SessionEnd {
    /// The session.
    pub session_id: Arc<str>,
    /// User and assistant messages in it.
    pub message_count: u32,
    /// The config this handler's plugin was registered with.
    pub plugin_config: Arc<Value>,
    pub(crate) cancel: Option<CancellationToken>,
}

/// A turn starts. `Abort`: it fails with `HOOK_ABORTED`; a message that is not stored yet is not
/// stored.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TurnStart {
    /// The session.
    pub session_id: Arc<str>,
    /// The turn.
    pub turn_id: Arc<str>,
    /// What the user sent, as the handlers before left it.
    pub user_input: Arc<[ContentBlock]>,
    /// The sections of the system prompt that the handlers before added for this turn.
    pub sections: Vec<String>,
    /// Where the message comes from.
    pub origin: TurnOrigin,
    /// The config this handler's plugin was registered with.
    pub plugin_config: Arc<Value>,
    pub(crate) cancel: Option<CancellationToken>,
}

/// Where the message of a `TurnStart` comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum TurnOrigin {
    /// The user sent it, and it is not stored yet. Also where `retry_turn` runs a message again
    /// whose first turn ended before it was stored: the handlers see it as the user wrote it.
    #[default]
    Send,
    /// `retry_turn` runs a stored message again: the handlers see it with the changes they made
    /// when it was stored. What they change now is stored in its place.
    Retry,
    /// The user gave it to the turn that is running.
    Steer,
}

/// What a `TurnStart` handler may change.
#[derive(Debug, Clone, Default)]
pub struct TurnStartChange {
    /// Replaces the user's input; checked like the input itself.
    pub user_input: Option<Vec<ContentBlock>>,
    /// Sections added at the end of the system prompt, for this turn.
    pub prompt_sections: Vec<String>,
}

/// A turn ended: completed, failed or cancelled. Too late to abort.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TurnEnd {
    /// The session.
    pub session_id: Arc<str>,
    /// The turn.
    pub turn_id: Arc<str>,
    /// Text of the last response, as the handlers before left it. A change is reported in
    /// `TurnComplete`; what is stored stays what the model said.
    pub assistant_output: Arc<str>,
    /// The config this handler's plugin was registered with.
    pub plugin_config: Arc<Value>,
    pub(crate) cancel: Option<CancellationToken>,
}

/// A tool is about to run. `Abort`: it does not, and the model is told why.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct BeforeToolUse {
    /// The session.
    pub session_id: Arc<str>,
    /// The turn.
    pub turn_id: Arc<str>,
    /// The call, unique in its session; the same in both hooks and in the turn's events.
    pub call_id: Arc<str>,
    /// The tool.
    pub tool_name: Arc<str>,
    /// The arguments, as the handlers before left them. A change is validated again.
    pub arguments: Arc<Value>,
    /// The config this handler's plugin was registered with.
    pub plugin_config: Arc<Value>,
    pub(crate) cancel: Option<CancellationToken>,
}

/// A tool ran. `Abort`: its output is withheld, and the model is told why.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AfterToolUse {
    /// The session.
    pub session_id: Arc<str>,
    /// The turn.
    pub turn_id: Arc<str>,
    /// The call, unique in its session.
    pub call_id: Arc<str>,
    /// The tool.
    pub tool_name: Arc<str>,
    /// The arguments the tool ran with, after the changes of `BeforeToolUse` handlers.
    pub arguments: Arc<Value>,
    /// What the model will see, as the handlers before left it.
    pub output: Arc<str>,
    /// How long the tool ran, in milliseconds.
    pub duration_ms: u64,
    /// Whether it succeeded.
    pub success: bool,
    /// The config this handler's plugin was registered with.
    pub plugin_config: Arc<Value>,
    pub(crate) cancel: Option<CancellationToken>,
}

/// The context is about to be compacted. `Abort`: it is not.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct BeforeCompact {
    /// The session.
    pub session_id: Arc<str>,
    /// Messages in the context.
    pub message_count: u32,
    /// Estimated size of the context, in tokens.
    pub estimated_tokens: u64,
    /// Instructions for the summary that the handlers before added. A change replaces them.
    pub instructions: Arc<str>,
    /// The config this handler's plugin was registered with.
    pub plugin_config: Arc<Value>,
    pub(crate) cancel: Option<CancellationToken>,
}

/// Gives a payload its constructor and its view of a cancel. Fields that most tests of a handler
/// do not care about have a default here and can be set afterwards.
macro_rules! payloads {
    ($($hook:ident($($field:ident: $type:ty),*) $({ $($preset:ident: $value:expr),* })?;)*) => {$(
        impl $hook {
            /// The payload as the agent makes it, to test a handler with: the config of the
            /// plugin is null, and nobody cancels. What is not an argument has a plain value and
            /// can be set in the field.
            pub fn new($($field: impl Into<$type>),*) -> Self {
                Self {
                    $($field: $field.into(),)*
                    $($($preset: $value,)*)?
                    plugin_config: Arc::default(),
                    cancel: None,
                }
            }

            /// The same with a token that stands for the user's cancel, to test a handler with.
            #[must_use]
            pub fn with_cancel_requested(mut self, token: CancellationToken) -> Self {
                self.cancel = Some(token);
                self
            }

            /// A token that fires when the user cancels or the session is closed. The agent
            /// waits for the handler all the same: one that asks a person or a server can end
            /// early, others ignore it.
            ///
            /// In `SessionStart` it fires when another session is to replace the one that is
            /// being opened; in `SessionEnd` it has fired already. Each call gives a token of its
            /// own: firing it cancels nothing else.
            #[must_use]
            pub fn cancel_requested(&self) -> CancellationToken {
                let cancel = self.cancel.as_ref();
                cancel.map_or_else(CancellationToken::new, CancellationToken::child_token)
            }
        }
    )*};
}

payloads! {
    SessionStart(session_id: Arc<str>, resumed: bool);
    SessionEnd(session_id: Arc<str>, message_count: u32);
    TurnStart(session_id: Arc<str>, turn_id: Arc<str>, user_input: Arc<[ContentBlock]>) {
        sections: Vec::new(),
        origin: TurnOrigin::Send
    };
    TurnEnd(session_id: Arc<str>, turn_id: Arc<str>, assistant_output: Arc<str>);
    BeforeToolUse(
        session_id: Arc<str>,
        turn_id: Arc<str>,
        call_id: Arc<str>,
        tool_name: Arc<str>,
        arguments: Arc<Value>
    );
    AfterToolUse(
        session_id: Arc<str>,
        turn_id: Arc<str>,
        call_id: Arc<str>,
        tool_name: Arc<str>,
        arguments: Arc<Value>,
        output: Arc<str>
    ) {
        duration_ms: 0,
        success: true
    };
    BeforeCompact(session_id: Arc<str>, message_count: u32, estimated_tokens: u64) {
        instructions: Arc::default()
    };
}
