//! A benchmark: 100 agents in 4 processes on one database, each with a session of 20 turns.
//!
//! `cargo run --release -p youyou-agent-postgres --example hundred_agents`
//!
//! It starts a private server with its default settings, so each write is synced to the disk.
//! With a URL as its argument it uses that database and leaves a schema `hundred_agents` there.
#![expect(
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark that cannot go on fails"
)]

use std::num::NonZeroUsize;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use youyou_agent::testing::{ScriptedProvider, done, text, text_model};
use youyou_agent::{
    AgentBuilder, AgentConfig, EventPage, HeadMove, ListPage, PageRequest, SessionConfig,
    SessionEvent, SessionLog, SessionStorage, SessionSummary, StorageError, TurnStatus,
};
use youyou_agent_postgres::{Postgres, PostgresOptions, PostgresSessions};

#[path = "../tests/storage/server.rs"]
mod server;

const PROCESSES: usize = 4;
const AGENTS: usize = 100;
const TURNS: usize = 20;
const SCHEMA: &str = "hundred_agents";
/// Tells a process that it is one of the four.
const ROLE: &str = "HUNDRED_AGENTS_DATABASE";

async fn connect(url: &str) -> Postgres {
    PostgresOptions::new(url)
        .schema(SCHEMA)
        .connect()
        .await
        .unwrap()
}

/// Notes how long each write takes.
struct Timed {
    inner: PostgresSessions,
    writes: Arc<Mutex<Vec<Duration>>>,
}

#[async_trait]
impl SessionStorage for Timed {
    async fn append(&self, session_id: &str, events: &[SessionEvent]) -> Result<(), StorageError> {
        let start = Instant::now();
        let outcome = self.inner.append(session_id, events).await;
        self.writes.lock().unwrap().push(start.elapsed());
        outcome
    }

    async fn load(&self, session_id: &str) -> Result<Option<SessionLog>, StorageError> {
        self.inner.load(session_id).await
    }

    async fn load_page(
        &self,
        session_id: &str,
        request: PageRequest,
    ) -> Result<Option<EventPage>, StorageError> {
        self.inner.load_page(session_id, request).await
    }

    async fn head_moves(&self, session_id: &str) -> Result<Vec<HeadMove>, StorageError> {
        self.inner.head_moves(session_id).await
    }

    async fn summary(&self, session_id: &str) -> Result<Option<SessionSummary>, StorageError> {
        self.inner.summary(session_id).await
    }

    async fn list(
        &self,
        cursor: Option<&str>,
        limit: NonZeroUsize,
    ) -> Result<ListPage, StorageError> {
        self.inner.list(cursor, limit).await
    }

    async fn find(&self, query: &str) -> Result<Vec<SessionSummary>, StorageError> {
        self.inner.find(query).await
    }

    async fn rename(&self, session_id: &str, title: &str) -> Result<bool, StorageError> {
        self.inner.rename(session_id, title).await
    }

    async fn delete(&self, session_id: &str) -> Result<bool, StorageError> {
        self.inner.delete(session_id).await
    }
}

/// One agent with one session. Its model answers at once: what is measured is the storage.
async fn run_agent(storage: Timed) {
    let answer = "Two hundred characters of what models say. ".repeat(5);
    let provider = ScriptedProvider::new("scripted")
        .model(text_model("m1"))
        .always(move |_| [text(&answer), done()]);
    let agent = AgentBuilder::new(AgentConfig::new("m1"))
        .provider(provider)
        .session_storage(storage)
        .build()
        .await
        .unwrap();
    let session = agent
        .create_session(SessionConfig::default())
        .await
        .unwrap();
    for number in 0..TURNS {
        let turn = session.send(format!("Question {number}")).unwrap();
        let outcome = turn.outcome().await;
        assert_eq!(outcome.status, TurnStatus::Completed, "{:?}", outcome.error);
    }
    session.close().await.unwrap();
    agent.shutdown().await;
}

/// One of the four processes: its share of the agents, then the times of its writes, in
/// microseconds, a line each.
async fn run_process(url: &str) {
    let db = connect(url).await;
    let writes = Arc::new(Mutex::new(Vec::new()));
    let agents: Vec<_> = (0..AGENTS / PROCESSES)
        .map(|_| {
            tokio::spawn(run_agent(Timed {
                inner: db.sessions(),
                writes: Arc::clone(&writes),
            }))
        })
        .collect();
    for agent in agents {
        agent.await.unwrap();
    }
    for write in writes.lock().unwrap().iter() {
        println!("{}", write.as_micros());
    }
}

async fn measure(url: &str) {
    let db = connect(url).await;
    let before = db.sessions().list(None, NonZeroUsize::MAX).await.unwrap();
    let start = Instant::now();
    let children: Vec<_> = (0..PROCESSES)
        .map(|_| {
            Command::new(std::env::current_exe().unwrap())
                .env(ROLE, url)
                .stdout(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    let mut writes: Vec<u64> = Vec::new();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        let lines = String::from_utf8(output.stdout).unwrap();
        writes.extend(lines.lines().map(|line| line.parse::<u64>().unwrap()));
    }
    let seconds = start.elapsed().as_secs_f64();
    let after = db.sessions().list(None, NonZeroUsize::MAX).await.unwrap();
    assert_eq!(after.sessions.len() - before.sessions.len(), AGENTS);
    for row in &after.sessions {
        assert_eq!(row.message_count as usize, 2 * TURNS, "{}", row.session_id);
    }
    writes.sort_unstable();
    let part = |percent: usize| {
        let place = (writes.len() * percent / 100).min(writes.len() - 1);
        writes
            .get(place)
            .map_or(0.0, |micros| *micros as f64 / 1_000.0)
    };
    let turns = AGENTS * TURNS;
    println!("{AGENTS} agents in {PROCESSES} processes, {TURNS} turns each; nothing is missing");
    println!(
        "{seconds:.1} s with the start of the processes: {:.0} turns/s, {:.0} writes/s",
        turns as f64 / seconds,
        writes.len() as f64 / seconds,
    );
    println!(
        "a write takes {:.1} ms (median), {:.1} ms (95 %), {:.1} ms (99 %), {:.1} ms at most",
        part(50),
        part(95),
        part(99),
        part(100),
    );
}

fn main() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    if let Ok(url) = std::env::var(ROLE) {
        return runtime.block_on(run_process(&url));
    }
    if let Some(url) = std::env::args().nth(1) {
        return runtime.block_on(measure(&url));
    }
    if let Some(server) = server::start() {
        runtime.block_on(measure(&server.url()));
    }
}
