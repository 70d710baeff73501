//! `write_file`: a new file, or a new content of one.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use youyou_agent::{ToolError, ToolHandler, ToolOutput, tool};

use crate::workspace::Workspace;

const MOST_BYTES: usize = 5 * 1024 * 1024;

#[derive(Deserialize, JsonSchema)]
struct WriteFile {
    /// The file, relative to the workspace. Missing folders are made.
    path: String,
    /// The whole new content.
    content: String,
}

pub(super) fn tool(workspace: Workspace) -> impl ToolHandler {
    tool::typed_blocking(
        "write_file",
        "Writes a text file of the workspace. An existing file is replaced.",
        move |args: WriteFile, _context| write(&workspace, &args),
    )
    .mutating()
}

fn write(workspace: &Workspace, args: &WriteFile) -> Result<ToolOutput, ToolError> {
    let path = &args.path;
    let failed = |why: &dyn std::fmt::Display| {
        ToolError::new(format_args!("\"{path}\" cannot be written: {why}"))
    };
    if args.content.len() > MOST_BYTES {
        return Err(failed(&format_args!(
            "the content has more than {MOST_BYTES} bytes"
        )));
    }
    let real = workspace.resolve(path)?;
    if real.is_dir() {
        return Err(failed(&"it is a folder"));
    }
    let existed = real.exists();
    if existed && !real.is_file() {
        return Err(failed(&"it is no regular file"));
    }
    let folder = real.parent().ok_or_else(|| failed(&"it has no folder"))?;
    std::fs::create_dir_all(folder).map_err(|error| failed(&error))?;
    std::fs::write(&real, &args.content).map_err(|error| failed(&error))?;
    let what = if existed { "replaced" } else { "created" };
    let bytes = args.content.len();
    Ok(ToolOutput::text(format!("{what} {path} ({bytes} bytes)"))
        .with_metadata(json!({ "bytes": bytes, "created": !existed })))
}
