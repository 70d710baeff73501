//! The storage alone: batches are there whole, or not at all.

use std::io::{BufRead, BufReader, Write as _};
use std::num::NonZeroUsize;
use std::path::Path;
use std::process::{Command, Stdio};

use youyou_agent::SessionStorage;
use youyou_agent::testing::{at, session_created, user_message};
use youyou_agent_sqlite::Sqlite;

const PLACE: &str = "YOUYOU_CHAT_CRASH_BATCHES";

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
}

/// Not a test of its own: the process that is killed. It writes batches for ever and says each
/// one that `append` has answered for.
#[test]
#[ignore = "it is the process that the other test kills"]
fn writer() {
    let Ok(place) = std::env::var(PLACE) else {
        return;
    };
    runtime().block_on(async {
        let sessions = Sqlite::open(Path::new(&place)).unwrap().sessions();
        let from = sessions
            .load("s")
            .await
            .unwrap()
            .map_or(0, |log| log.events.len() as u64);
        let mut out = std::io::stdout();
        for index in (from..).step_by(2) {
            let batch = [
                at(index, user_message(index, "one")),
                at(index, user_message(index + 1, "two")),
            ];
            sessions.append("s", &batch).await.unwrap();
            writeln!(out, "wrote {index}").unwrap();
            out.flush().unwrap();
        }
    });
}

#[test]
fn a_killed_process_loses_nothing_it_was_told_is_stored_and_leaves_no_half_batch() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("chat.sqlite");
    let first = runtime().block_on(async {
        let sessions = Sqlite::open(&place).unwrap().sessions();
        sessions
            .append(
                "s",
                &[session_created(0, "t", "m"), user_message(1, "first")],
            )
            .await
    });
    first.unwrap();
    for round in 0..12 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["batches::writer", "--exact", "--ignored", "--nocapture"])
            .env(PLACE, &place)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut last = None;
        // Each round is killed after another number of batches, with the next one under way.
        while last.is_none_or(|(_, count)| count < 3 + round * 2) {
            let line = said.next().unwrap().unwrap();
            if let Some((_, index)) = line.split_once("wrote ") {
                last = Some((
                    index.parse::<u64>().unwrap(),
                    last.map_or(1, |(_, count)| count + 1),
                ));
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let (promised, _) = last.unwrap();
        runtime().block_on(async {
            let sessions = Sqlite::open(&place).unwrap().sessions();
            let log = sessions.load("s").await.unwrap().unwrap();
            assert_eq!(log.unreadable, 0);
            assert!(
                log.events.len() as u64 >= promised + 2,
                "{} events, {promised} promised",
                log.events.len()
            );
            assert_eq!(log.events.len() % 2, 0, "half a batch");
            let gap = log
                .events
                .iter()
                .zip(0..)
                .find(|(event, index)| event.index != *index);
            assert_eq!(gap, None);
            let listed = sessions.list(None, NonZeroUsize::MIN).await.unwrap();
            assert_eq!(
                listed.sessions[0].message_count as usize,
                log.events.len() - 1
            );
        });
    }
}
