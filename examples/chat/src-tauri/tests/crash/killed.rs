//! The process that is killed: it goes on with the session, or begins it, and tells every
//! event once it was published.

use std::io::{BufRead, BufReader, Lines, Write as _};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use futures_util::StreamExt;
use youyou_agent::{Agent, AgentEvent, ResumeOptions, Session, SessionConfig};

use super::conversation::{self, ENDLESS, message};

const PLACE: &str = "YOUYOU_CHAT_CRASH_CONVERSATION";
/// The number of the first turn, or nothing for the endless answer.
const FIRST: &str = "YOUYOU_CHAT_CRASH_FIRST";
/// Begins the lines of the process that are events.
const TOLD: &str = "event ";
/// Begins the lines about what it does before the first event.
const DOES: &str = "does ";

pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .unwrap()
}

/// Opens the only session of the folder, or a new one.
pub(crate) async fn open(agent: &Agent) -> Session {
    let page = agent
        .list_sessions(None, NonZeroUsize::new(2))
        .await
        .unwrap();
    assert!(page.sessions.len() < 2, "a second session: {page:?}");
    match page.sessions.first() {
        Some(stored) => {
            let session = agent.resume_session(&stored.session_id, ResumeOptions::default());
            session.await.unwrap()
        }
        None => agent
            .create_session(SessionConfig::default())
            .await
            .unwrap(),
    }
}

/// Not a test of its own: the process that is killed.
#[test]
#[ignore = "it is the process that the tests kill"]
fn speaker() {
    let Ok(folder) = std::env::var(PLACE).map(PathBuf::from) else {
        return;
    };
    let first = std::env::var(FIRST)
        .ok()
        .map(|first| first.parse().unwrap());
    runtime().block_on(async {
        say(DOES, "start");
        let agent = conversation::agent(&folder).await;
        say(DOES, "resume");
        let session = open(&agent).await;
        say(DOES, "talk");
        let messages: Box<dyn Iterator<Item = String>> = match first {
            Some(first) => Box::new((first..).map(message)),
            None => Box::new(std::iter::once(ENDLESS.to_owned())),
        };
        for message in messages {
            let mut turn = session.send(message).unwrap();
            while let Some(event) = turn.next().await {
                say(TOLD, &serde_json::to_string(&event).unwrap());
            }
        }
    });
}

fn say(kind: &str, what: &str) {
    let mut out = std::io::stdout().lock();
    // A line of its own: the test harness may have begun one.
    write!(out, "\n{kind}{what}\n").unwrap();
    out.flush().unwrap();
}

/// That process, seen from outside.
pub(crate) struct Speaker {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
    /// The events it told so far.
    pub(crate) told: Vec<AgentEvent>,
}

impl Speaker {
    /// Starts it; without a number it gives the endless answer.
    pub(crate) fn start(folder: &Path, first: Option<u32>) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["killed::speaker", "--exact", "--ignored", "--nocapture"])
            .env(PLACE, folder)
            .stdout(Stdio::piped());
        if let Some(first) = first {
            command.env(FIRST, first.to_string());
        }
        let mut process = command.spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Self {
            process,
            lines,
            told: Vec::new(),
        }
    }

    /// Waits for its next step or event. False if it ended by itself.
    pub(crate) fn listen(&mut self) -> bool {
        for line in self.lines.by_ref() {
            // Killed in the middle of a character.
            let Ok(line) = line else { return false };
            if line.starts_with(DOES) {
                return true;
            }
            if let Some(event) = line.strip_prefix(TOLD) {
                // Killed in the middle of a line.
                let Ok(event) = serde_json::from_str(event) else {
                    return false;
                };
                self.told.push(event);
                return true;
            }
        }
        false
    }

    /// Kills it. Answers everything it told.
    pub(crate) fn kill(mut self) -> Vec<AgentEvent> {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        while self.listen() {}
        self.told
    }
}
