//! A log of what the agent did and when: sessions, turns, tools. Never what was said.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use serde_json::{Value, json};
use youyou_agent::{HookError, HookOutcome, HookRegistry, HookResult, Plugin, PluginError};

/// Above this size the file is moved aside once and begun anew.
const LARGEST: u64 = 5 * 1024 * 1024;

/// Writes one JSON line per hook into a file. Tapped into every hook, it changes nothing.
pub struct AuditLog {
    log: Arc<Log>,
}

struct Log {
    path: PathBuf,
    /// Opened by `initialize`.
    file: Mutex<Option<File>>,
}

impl AuditLog {
    /// A log in this file.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self {
            log: Arc::new(Log {
                path,
                file: Mutex::default(),
            }),
        }
    }
}

#[async_trait]
impl Plugin for AuditLog {
    fn id(&self) -> &str {
        "audit-log"
    }

    fn display_name(&self) -> &str {
        "Audit log"
    }

    async fn initialize(&self, _config: Arc<Value>) -> Result<(), PluginError> {
        let file = open(&self.log.path).map_err(|error| {
            PluginError::new(format_args!("{}: {error}", self.log.path.display()))
        })?;
        *self.log.file.lock().unwrap_or_else(PoisonError::into_inner) = Some(file);
        Ok(())
    }

    fn apply(&self, hooks: &mut HookRegistry) -> Result<(), PluginError> {
        let log = &self.log;
        let write = log.writer();
        hooks.session_start("log", move |hook| {
            write(
                "sessionStart",
                json!({ "session": &*hook.session_id, "resumed": hook.resumed }),
            )
        });
        let write = log.writer();
        hooks.session_end("log", move |hook| {
            write(
                "sessionEnd",
                json!({ "session": &*hook.session_id, "messages": hook.message_count }),
            )
        });
        let write = log.writer();
        hooks.turn_start("log", move |hook| {
            write("turnStart", json!({ "session": &*hook.session_id, "turn": &*hook.turn_id, "blocks": hook.user_input.len() }))
        });
        let write = log.writer();
        hooks.turn_end("log", move |hook| {
            let characters = hook.assistant_output.chars().count();
            write("turnEnd", json!({ "session": &*hook.session_id, "turn": &*hook.turn_id, "characters": characters }))
        });
        let write = log.writer();
        hooks.before_tool_use("log", move |hook| {
            write(
                "beforeToolUse",
                json!({ "turn": &*hook.turn_id, "tool": &*hook.tool_name }),
            )
        });
        let write = log.writer();
        hooks.after_tool_use("log", move |hook| {
            write(
                "afterToolUse",
                json!({
                    "turn": &*hook.turn_id, "tool": &*hook.tool_name, "success": hook.success,
                    "durationMs": hook.duration_ms, "bytes": hook.output.len(),
                }),
            )
        });
        let write = log.writer();
        hooks.before_compact("log", move |hook| {
            write(
                "beforeCompact",
                json!({ "session": &*hook.session_id, "messages": hook.message_count, "tokens": hook.estimated_tokens }),
            )
        });
        Ok(())
    }

    async fn shutdown(&self) -> Result<(), PluginError> {
        let file = self
            .log
            .file
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        file.map_or(Ok(()), |file| file.sync_all())
            .map_err(PluginError::new)
    }
}

impl Log {
    /// A function that writes an entry and lets the hook go on.
    fn writer<C>(
        self: &Arc<Self>,
    ) -> impl Fn(&'static str, Value) -> std::future::Ready<HookResult<C>> + use<C> {
        let log = Arc::clone(self);
        move |hook, entry| {
            std::future::ready(log.write(hook, entry).map(|()| HookOutcome::Continue))
        }
    }

    /// One short line: it costs less than handing it to another thread.
    fn write(&self, hook: &str, mut entry: Value) -> Result<(), HookError> {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        if let Value::Object(entry) = &mut entry {
            entry.insert(
                "time".into(),
                json!(u64::try_from(now.as_millis()).unwrap_or(u64::MAX)),
            );
            entry.insert("hook".into(), hook.into());
        }
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let file = file
            .as_mut()
            .ok_or_else(|| HookError::new("the audit log is closed"))?;
        file.write_all(format!("{entry}\n").as_bytes())
            .map_err(HookError::new)
    }
}

fn open(path: &Path) -> std::io::Result<File> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    if path.metadata().is_ok_and(|data| data.len() > LARGEST) {
        std::fs::rename(path, path.with_extension("old.log"))?;
    }
    OpenOptions::new().create(true).append(true).open(path)
}
