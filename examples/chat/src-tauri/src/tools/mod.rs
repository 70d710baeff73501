//! What the model can do in the workspace.

mod list_dir;
mod read_file;
mod run_command;
mod search_files;
mod write_file;

use std::sync::Arc;

use youyou_agent::ToolHandler;

use crate::workspace::Workspace;

/// All tools of the app.
#[must_use]
pub fn all(workspace: &Workspace) -> Vec<Arc<dyn ToolHandler>> {
    vec![
        Arc::new(list_dir::tool(workspace.clone())),
        Arc::new(read_file::tool(workspace.clone())),
        Arc::new(search_files::tool(workspace.clone())),
        Arc::new(write_file::tool(workspace.clone())),
        Arc::new(run_command::tool(workspace.clone())),
    ]
}
