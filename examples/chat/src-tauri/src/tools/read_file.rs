//! `read_file`: the text of a file, or a part of it.

use std::io::Read as _;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use youyou_agent::{ToolError, ToolHandler, ToolOutput, tool};

use crate::workspace::Workspace;

/// The largest file that is opened.
const MOST_BYTES: u64 = 10 * 1024 * 1024;
/// The lines given when the model does not say how many.
const DEFAULT_LINES: usize = 2_000;

#[derive(Deserialize, JsonSchema)]
struct ReadFile {
    /// The file, relative to the workspace.
    path: String,
    /// The first line to read, counted from 1. Absent: the beginning.
    #[serde(default)]
    start_line: Option<usize>,
    /// How many lines to read. Absent: 2,000.
    #[serde(default)]
    lines: Option<usize>,
}

pub(super) fn tool(workspace: Workspace) -> impl ToolHandler {
    tool::typed_blocking(
        "read_file",
        "Reads a text file of the workspace. Long files are read in parts with start_line and lines.",
        move |args: ReadFile, _context| read(&workspace, &args),
    )
}

fn read(workspace: &Workspace, args: &ReadFile) -> Result<ToolOutput, ToolError> {
    let path = &args.path;
    let failed = |why: &dyn std::fmt::Display| {
        ToolError::new(format_args!("\"{path}\" cannot be read: {why}"))
    };
    let real = workspace.resolve(path)?;
    let data = real.metadata().map_err(|error| failed(&error))?;
    if data.is_dir() {
        return Err(failed(&"it is a folder; use list_dir"));
    }
    // Opening a pipe or a device would wait for ever.
    if !data.is_file() {
        return Err(failed(&"it is no regular file"));
    }
    if data.len() > MOST_BYTES {
        return Err(failed(&format_args!(
            "it has {} bytes, more than {MOST_BYTES}; search it instead",
            data.len()
        )));
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(&real).map_err(|error| failed(&error))?;
    file.take(MOST_BYTES)
        .read_to_end(&mut bytes)
        .map_err(|error| failed(&error))?;
    if bytes.contains(&0) {
        return Err(failed(&"it is not a text file"));
    }
    let text = String::from_utf8_lossy(&bytes);
    let total = text.lines().count();
    let start = args.start_line.unwrap_or(1).max(1);
    let count = args.lines.unwrap_or(DEFAULT_LINES);
    let part: String = text
        .split_inclusive('\n')
        .skip(start - 1)
        .take(count)
        .collect();
    let last = (start - 1).saturating_add(count).min(total);
    let rest = if last < total {
        format!(
            "\n[lines {start} to {last} of {total}; go on with start_line {}]",
            last + 1
        )
    } else if start > total && total > 0 {
        format!("[the file has only {total} lines]")
    } else {
        String::new()
    };
    let shown = if total == 0 {
        "(the file is empty)".to_owned()
    } else {
        part + &rest
    };
    Ok(ToolOutput::text(shown).with_metadata(json!({ "bytes": bytes.len(), "lines": total })))
}
