//! `search_files`: where a text occurs. Files that Git ignores, hidden and binary ones are left out.

use std::path::Path;

use ignore::WalkBuilder;
use regex::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use youyou_agent::{ToolContext, ToolError, ToolHandler, ToolOutput, tool};

use crate::workspace::Workspace;

const MOST_MATCHES: usize = 200;
const MOST_BYTES: u64 = 2 * 1024 * 1024;
const LONGEST_LINE: usize = 300;

#[derive(Deserialize, JsonSchema)]
struct SearchFiles {
    /// What to look for. Upper and lower case are the same.
    query: String,
    /// Whether the query is a regular expression. Absent: plain text.
    #[serde(default)]
    regex: bool,
    /// The folder to search, relative to the workspace. Absent: all of it.
    #[serde(default)]
    path: Option<String>,
}

pub(super) fn tool(workspace: Workspace) -> impl ToolHandler {
    tool::typed_blocking(
        "search_files",
        "Searches the text files of the workspace and gives the lines that match, with file and line number.",
        move |args: SearchFiles, context| search(&workspace, &args, &context),
    )
}

fn search(
    workspace: &Workspace,
    args: &SearchFiles,
    context: &ToolContext,
) -> Result<ToolOutput, ToolError> {
    if args.query.trim().is_empty() {
        return Err(ToolError::new("the query is empty; say what to look for"));
    }
    let pattern = if args.regex {
        args.query.clone()
    } else {
        regex::escape(&args.query)
    };
    let pattern = RegexBuilder::new(&pattern)
        .case_insensitive(true)
        .build()
        .map_err(|error| {
            ToolError::new(format_args!(
                "the query is no valid regular expression: {error}"
            ))
        })?;
    let root = workspace.root()?;
    let start = workspace.resolve(args.path.as_deref().unwrap_or("."))?;
    let mut matches = Vec::new();
    let mut files = 0_usize;
    // Links are not followed, so the walk stays where it started.
    for entry in WalkBuilder::new(&start)
        .sort_by_file_path(Ord::cmp)
        .require_git(false)
        .build()
        .flatten()
    {
        if context.timed_out.is_cancelled() {
            return Err(ToolError::new(
                "the search took too long; search a smaller folder",
            ));
        }
        if !entry.file_type().is_some_and(|kind| kind.is_file()) {
            continue;
        }
        files += 1;
        if files.is_multiple_of(500) {
            context.progress(format!("{files} files, {} matches", matches.len()));
        }
        search_file(&root, entry.path(), &pattern, &mut matches);
        if matches.len() >= MOST_MATCHES {
            matches.truncate(MOST_MATCHES);
            matches.push(format!(
                "... more than {MOST_MATCHES} matches; make the query narrower"
            ));
            break;
        }
    }
    let metadata = json!({ "files": files, "matches": matches.len() });
    let text = if matches.is_empty() {
        format!("no match in {files} files")
    } else {
        matches.join("\n")
    };
    Ok(ToolOutput::text(text).with_metadata(metadata))
}

/// A file that is too large, binary or cannot be read has no matches.
fn search_file(root: &Path, path: &Path, pattern: &Regex, matches: &mut Vec<String>) {
    if path.metadata().map_or(true, |data| data.len() > MOST_BYTES) {
        return;
    }
    let Ok(text) = std::fs::read_to_string(path) else {
        return;
    };
    let name = Workspace::shown(root, path);
    for (number, line) in text
        .lines()
        .enumerate()
        .filter(|(_, line)| pattern.is_match(line))
    {
        let shown: String = line.trim().chars().take(LONGEST_LINE).collect();
        matches.push(format!("{name}:{}: {shown}", number + 1));
    }
}
