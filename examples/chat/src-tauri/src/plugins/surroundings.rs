//! Tells the model at each turn where it is and what time it is. Both may change in a session,
//! so they are dynamic sections at the end of the prompt: the part before stays cached.

use std::time::SystemTime;

use async_trait::async_trait;
use youyou_agent::{HookOutcome, HookRegistry, Plugin, PluginError, TurnStartChange};

use crate::workspace::Workspace;

/// Adds the workspace folder and the time to the system prompt.
pub struct Surroundings {
    workspace: Workspace,
}

impl Surroundings {
    /// Tells about this workspace.
    #[must_use]
    pub fn new(workspace: Workspace) -> Self {
        Self { workspace }
    }
}

#[async_trait]
impl Plugin for Surroundings {
    fn id(&self) -> &str {
        "surroundings"
    }

    fn display_name(&self) -> &str {
        "Surroundings"
    }

    fn apply(&self, hooks: &mut HookRegistry) -> Result<(), PluginError> {
        let workspace = self.workspace.clone();
        hooks.turn_start("tell", move |_hook| {
            let now = httpdate::fmt_http_date(SystemTime::now());
            let section = format!(
                "Workspace folder: {}\nTime: {now}",
                workspace.folder().display()
            );
            let change = TurnStartChange {
                user_input: None,
                prompt_sections: vec![section],
            };
            std::future::ready(Ok(HookOutcome::ContinueWith(change)))
        });
        Ok(())
    }
}
