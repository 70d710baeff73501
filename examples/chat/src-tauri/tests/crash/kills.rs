//! A conversation is killed again and again, and goes on each time.

use std::hash::{BuildHasher, RandomState};
use std::num::NonZeroUsize;
use std::path::Path;

use youyou_agent::{
    AgentEvent, AgentEventKind, SessionEvent, SessionEventKind, SessionLog, SessionStorage,
    TurnStatus,
};

use super::conversation::{self, LAST_ROUND, answer, message, sessions, tool_file};
use super::killed::{Speaker, open, runtime};
use super::verdict::{losses, said};

/// How often; `npm run test:crash` asks for more.
const KILLS: &str = "YOUYOU_CHAT_KILLS";
const FEW: u32 = 20;
/// A turn tells about forty events: the kill comes within the first few turns.
const LATEST: u64 = 100;

#[test]
fn a_conversation_killed_at_any_point_loses_nothing_that_was_stored_and_goes_on() {
    let kills = std::env::var(KILLS).map_or(FEW, |kills| kills.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let random = RandomState::new();
    let mut resumes = 0;
    let mut lost = Vec::new();
    let mut before = Vec::new();
    for kill in 1..=kills {
        let after = random.hash_one(kill) % LATEST;
        let mut speaker = Speaker::start(folder.path(), Some(kill * 1_000));
        for _ in 0..after {
            assert!(speaker.listen(), "it ended by itself");
        }
        let told = speaker.kill();
        let mut wrong = judge(folder.path(), &told, &before);
        match resume(folder.path(), kill * 1_000 + 999) {
            Ok(log) => {
                resumes += 1;
                before = log;
            }
            Err(problem) => wrong.push(problem),
        }
        lost.extend(
            wrong
                .into_iter()
                .map(|wrong| format!("kill {kill}, after {after} steps: {wrong}")),
        );
    }
    println!("\nkills {kills}, resumes {resumes}, losses {}", lost.len());
    assert!(lost.is_empty(), "{lost:#?}");
    assert_eq!(resumes, kills);
}

#[test]
fn a_long_answer_loses_at_most_its_last_moments() {
    let folder = tempfile::tempdir().unwrap();
    let mut speaker = Speaker::start(folder.path(), None);
    let mut began = None;
    // Stored every two seconds: a second of it must be there after four and a half.
    while speaker.told.last().is_none_or(|event| {
        let began = *began.get_or_insert(event.timestamp);
        event.timestamp < began + 4_500
    }) {
        assert!(speaker.listen(), "it ended by itself");
    }
    let told = speaker.kill();
    let due: String = told
        .iter()
        .filter(|event| event.timestamp < began.unwrap() + 1_000)
        .filter_map(delta)
        .collect();
    let all: String = told.iter().filter_map(delta).collect();
    let stored = load(folder.path());
    let stored: String = stored.events.iter().map(text).collect();
    assert!(!due.is_empty());
    assert!(stored.starts_with(&due), "stored only: {stored}");
    assert!(all.starts_with(&stored) || stored.starts_with(&all));
    resume(folder.path(), 1).unwrap();
}

fn delta(event: &AgentEvent) -> Option<&str> {
    match &event.kind {
        AgentEventKind::TextDelta { delta, .. } => Some(delta),
        _ => None,
    }
}

fn text(event: &SessionEvent) -> String {
    match &event.kind {
        SessionEventKind::AssistantMessage { parts, .. } => said(parts).text,
        _ => String::new(),
    }
}

/// All events of the only session; none if there is no session yet.
fn load(folder: &Path) -> SessionLog {
    runtime().block_on(async {
        let sessions = sessions(folder);
        let page = sessions
            .list(None, NonZeroUsize::MIN.saturating_add(1))
            .await
            .unwrap();
        assert!(page.sessions.len() < 2, "a second session");
        match page.sessions.first() {
            Some(stored) => sessions.load(&stored.session_id).await.unwrap().unwrap(),
            None => SessionLog::default(),
        }
    })
}

fn judge(folder: &Path, told: &[AgentEvent], before: &[SessionEvent]) -> Vec<String> {
    let log = load(folder);
    let left = std::fs::read_to_string(tool_file(folder)).unwrap_or_default();
    let mut wrong = losses(told, &log, &left);
    if !log.events.starts_with(before) {
        wrong.push("what was stored before the process began has changed".to_owned());
    }
    wrong
}

/// Goes on with the session in this process, by an ordinary message. Answers what is stored then.
fn resume(folder: &Path, number: u32) -> Result<Vec<SessionEvent>, String> {
    runtime().block_on(async {
        let agent = conversation::agent(folder).await;
        let session = open(&agent).await;
        let turn = session
            .send(message(number))
            .map_err(|error| error.to_string())?;
        let outcome = turn.outcome().await;
        agent.shutdown().await;
        if outcome.status != TurnStatus::Completed {
            return Err(format!(
                "a message after the kill failed: {:?}",
                outcome.error
            ));
        }
        if *outcome.assistant_output != *answer(number, LAST_ROUND) {
            return Err(format!("a wrong answer: {}", outcome.assistant_output));
        }
        Ok(())
    })?;
    Ok(load(folder).events)
}
