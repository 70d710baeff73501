//! What is registered.

use tauri::State;

use crate::ModelEntry;
use crate::agent::error::AgentError;
use crate::agent::skill::SkillInfo;
use crate::agent::tool::ToolInfo;
use crate::ipc::state::Ipc;

/// The models that can be used right now.
#[tauri::command]
#[cfg_attr(feature = "bindings", specta::specta)]
pub(crate) async fn list_models(ipc: State<'_, Ipc>) -> Result<Vec<ModelEntry>, AgentError> {
    ipc.answer("list_models", async {
        ipc.agent.check_running()?;
        Ok(ipc.agent.models())
    })
    .await
}

/// The registered tools.
#[tauri::command]
#[cfg_attr(feature = "bindings", specta::specta)]
pub(crate) async fn list_tools(ipc: State<'_, Ipc>) -> Result<Vec<ToolInfo>, AgentError> {
    ipc.answer("list_tools", async {
        ipc.agent.check_running()?;
        Ok(ipc.agent.tools())
    })
    .await
}

/// The registered skills.
#[tauri::command]
#[cfg_attr(feature = "bindings", specta::specta)]
pub(crate) async fn list_skills(ipc: State<'_, Ipc>) -> Result<Vec<SkillInfo>, AgentError> {
    ipc.answer("list_skills", async {
        ipc.agent.check_running()?;
        Ok(ipc.agent.skills())
    })
    .await
}
