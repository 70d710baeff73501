//! `list_dir`: what is in a folder.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use youyou_agent::{ToolError, ToolHandler, ToolOutput, tool};

use crate::workspace::Workspace;

const MOST_ENTRIES: usize = 500;

#[derive(Deserialize, JsonSchema)]
struct ListDir {
    /// The folder, relative to the workspace. Absent: the workspace itself.
    #[serde(default)]
    path: Option<String>,
}

pub(super) fn tool(workspace: Workspace) -> impl ToolHandler {
    tool::typed_blocking(
        "list_dir",
        "Lists the files and folders in a folder of the workspace.",
        move |args: ListDir, _context| list(&workspace, args.path.as_deref().unwrap_or(".")),
    )
}

fn list(workspace: &Workspace, path: &str) -> Result<ToolOutput, ToolError> {
    let folder = workspace.resolve(path)?;
    let entries = std::fs::read_dir(&folder)
        .map_err(|error| ToolError::new(format_args!("\"{path}\" cannot be listed: {error}")))?;
    let mut lines: Vec<String> = entries
        .flatten()
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            match entry.metadata() {
                Ok(data) if data.is_dir() => format!("{name}/"),
                Ok(data) if data.is_symlink() => format!("{name} (link)"),
                Ok(data) => format!("{name} ({} bytes)", data.len()),
                Err(_) => name,
            }
        })
        .collect();
    lines.sort_by_key(|line| (!line.ends_with('/'), line.to_lowercase()));
    let count = lines.len();
    if count > MOST_ENTRIES {
        lines.truncate(MOST_ENTRIES);
        lines.push(format!("... and {} more", count - MOST_ENTRIES));
    }
    let text = if lines.is_empty() {
        "(the folder is empty)".to_owned()
    } else {
        lines.join("\n")
    };
    Ok(ToolOutput::text(text).with_metadata(json!({ "entries": count })))
}
