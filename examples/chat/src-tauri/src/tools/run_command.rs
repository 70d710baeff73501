//! `run_command`: a command of the system's shell, in the workspace.
//!
//! The command itself can reach whatever the user can: confinement ends here, and the app
//! says so where tools are listed.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use youyou_agent::{ToolContext, ToolError, ToolHandler, ToolOutput, tool};

use crate::models;
use crate::workspace::Workspace;

/// What is kept of the output: the beginning and the end.
const MOST_BYTES: usize = 200_000;
/// How long output of what a command left behind is waited for.
const AFTERMATH: Duration = Duration::from_millis(300);

#[derive(Deserialize, JsonSchema)]
struct RunCommand {
    /// The command line, for the system's shell.
    command: String,
}

pub(super) fn tool(workspace: Workspace) -> impl ToolHandler {
    tool::typed(
        "run_command",
        "Runs a shell command in the workspace and gives its output and exit status. It gets no input, \
         and whatever it leaves running is ended with it.",
        move |args: RunCommand, context| run(workspace.clone(), args.command, context),
    )
    .mutating()
}

async fn run(
    workspace: Workspace,
    command: String,
    context: ToolContext,
) -> Result<ToolOutput, ToolError> {
    if command.trim().is_empty() {
        return Err(ToolError::new("the command is empty"));
    }
    let mut child = shell(&command)
        .current_dir(workspace.root()?)
        .spawn()
        .map_err(|error| ToolError::new(format_args!("the shell cannot be started: {error}")))?;
    // Ends the whole family however this function is left, also when its future is dropped.
    let _family = Family::of(&child);
    let (lines, mut output) = mpsc::channel(64);
    read_lines(child.stdout.take(), lines.clone());
    read_lines(child.stderr.take(), lines);
    let mut kept = Kept::default();
    let status = loop {
        tokio::select! {
            biased;
            () = context.timed_out.cancelled() => {
                return Err(ToolError::new(format_args!(
                    "the command took too long and was ended; so far it wrote:\n{}", kept.text()
                )));
            }
            Some(line) = output.recv() => {
                context.progress(line.as_str());
                kept.push(&line);
            }
            status = child.wait() => break status,
        }
    };
    let status =
        status.map_err(|error| ToolError::new(format_args!("the command was lost: {error}")))?;
    // The pipes stay open as long as a background process holds them.
    let rest = async {
        while let Some(line) = output.recv().await {
            kept.push(&line);
        }
    };
    // Either way what was read is kept.
    let _ = tokio::time::timeout(AFTERMATH, rest).await;
    Ok(report(status, &kept.text()))
}

fn report(status: ExitStatus, text: &str) -> ToolOutput {
    let text = if text.is_empty() { "(no output)" } else { text };
    let metadata = json!({ "exitCode": status.code() });
    let output = if status.success() {
        ToolOutput::text(text)
    } else {
        ToolOutput::error(format!("the command failed ({status}):\n{text}"))
    };
    output.with_metadata(metadata)
}

fn shell(command: &str) -> Command {
    let (program, flag) = if cfg!(windows) {
        ("cmd", "/C")
    } else {
        ("sh", "-c")
    };
    let mut shell = Command::new(program);
    shell
        .arg(flag)
        .arg(command)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    #[cfg(unix)]
    shell.process_group(0);
    // Keys are the app's, not the model's.
    for (_, variable) in models::key_variables() {
        shell.env_remove(variable);
    }
    shell
}

/// Sends the lines of a pipe until it ends or nobody listens. Bytes that are no UTF-8 are replaced.
fn read_lines(pipe: Option<impl AsyncRead + Unpin + Send + 'static>, lines: mpsc::Sender<String>) {
    let Some(pipe) = pipe else { return };
    tokio::spawn(async move {
        let mut reader = BufReader::new(pipe);
        let mut line = Vec::new();
        while reader
            .read_until(b'\n', &mut line)
            .await
            .is_ok_and(|read| read > 0)
        {
            let text = String::from_utf8_lossy(&line)
                .trim_end_matches(['\r', '\n'])
                .to_owned();
            line.clear();
            if lines.send(text).await.is_err() {
                return;
            }
        }
    });
}

/// The first and the last part of a long output.
#[derive(Default)]
struct Kept {
    head: String,
    tail: String,
    cut: bool,
}

impl Kept {
    fn push(&mut self, line: &str) {
        let half = MOST_BYTES / 2;
        if self.tail.is_empty() && self.head.len() + line.len() < half {
            self.head.push_str(line);
            self.head.push('\n');
            return;
        }
        self.tail.push_str(line);
        self.tail.push('\n');
        if self.tail.len() > 2 * half {
            let from = self.tail.len() - half;
            let from = (from..self.tail.len())
                .find(|at| self.tail.is_char_boundary(*at))
                .unwrap_or(from);
            self.tail.drain(..from);
            self.cut = true;
        }
    }

    fn text(&self) -> String {
        let gap = if self.cut {
            "[... the middle was left out ...]\n"
        } else {
            ""
        };
        format!("{}{gap}{}", self.head, self.tail)
            .trim_end()
            .to_owned()
    }
}

/// The process group of a command.
struct Family {
    #[cfg(unix)]
    group: Option<rustix::process::Pid>,
}

impl Family {
    fn of(child: &Child) -> Self {
        #[cfg(not(unix))]
        let _ = child;
        Self {
            #[cfg(unix)]
            group: child
                .id()
                .and_then(|id| i32::try_from(id).ok())
                .and_then(rustix::process::Pid::from_raw),
        }
    }
}

impl Drop for Family {
    fn drop(&mut self) {
        #[cfg(unix)]
        if let Some(group) = self.group {
            // Usually everybody has gone already.
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
}
