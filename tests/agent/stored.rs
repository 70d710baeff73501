//! Chapter 3.6: what is stored when, and what is read of a storage in disorder.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use youyou_agent::testing::{
    Fault, FaultySessions, Gate, InMemorySessions, RecordingTool, SessionOperation, When, call,
    done, kinds, metadata, text, user_message, wait,
};
use youyou_agent::{
    AgentBuilder, AgentEventKind, CompactionMethod, CompactionRecord, ErrorCode, ListPage,
    ResumeOptions, SessionEvent, SessionLog, SessionMetadata, SessionStorage, SessionSummary,
    StorageError,
};

use crate::histories::{STORED, marked_turns, markers, storage_with};
use crate::rig::{MODEL, Rig, config, provider};
use crate::said::{said, stored_lines};

#[tokio::test(start_paused = true)]
async fn what_happened_is_stored_when_it_happened() {
    // D5
    let gate = Gate::closed();
    let tool = RecordingTool::mutating("mu_write").gated(&gate);
    let provider = provider()
        .reply([text("look"), call("c1", "mu_write", "{}"), done()])
        .reply([wait()]);
    let rig = Rig::with(provider, config(), |builder| builder.tool(tool)).await;
    let turn = rig.session.send("q").unwrap();
    gate.arrived(1).await;
    let before_the_tool = stored_lines(&rig.stored());
    assert_eq!(
        before_the_tool,
        [
            "created: q",
            "user: q",
            "assistant: look <c1 mu_write>",
            "call c1"
        ]
    );
    gate.open();
    rig.provider.asked(2).await;
    // The process ends: nothing is closed, nothing is shut down.
    let storage = InMemorySessions::new();
    storage.preload(STORED, rig.stored());
    drop((turn, rig));
    let provider = crate::rig::provider().always(|_| [text("ok"), done()]);
    let rig = Rig::resumed(provider, config(), storage, STORED, |builder| builder).await;
    let mut expected = before_the_tool;
    expected.push("result c1: ok".to_owned());
    assert_eq!(stored_lines(&rig.stored()), expected);
    rig.send("next").await;
    assert_eq!(
        said(&rig.request(1)),
        [
            "user: q",
            "assistant: look <c1 mu_write>",
            "result c1: ok",
            "note: [此消息因程序中断而未完成]",
            "user: next"
        ]
    );
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn the_message_is_stored_before_the_model_is_asked() {
    let storage = InMemorySessions::new();
    let faulty = FaultySessions::new(storage.clone());
    let gate = Gate::closed();
    faulty.faults().inject(
        SessionOperation::Append,
        When::Nth(1),
        Fault::Gate(gate.clone()),
    );
    let provider = provider().reply([text("ok"), done()]);
    let rig = Rig::over(provider, config(), storage, faulty, |builder| builder).await;
    let turn = rig.session.send("q").unwrap();
    gate.arrived(1).await;
    assert_eq!(rig.provider.request_count(), 0);
    gate.open();
    turn.outcome().await;
    assert_eq!(rig.provider.request_count(), 1);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn stored_records_that_cannot_be_read_are_left_out_and_the_rest_loads() {
    // D19
    let history = marked_turns(4, 10);
    for broken in 1..=8_u64 {
        let storage = storage_with(history.clone());
        assert!(storage.corrupt(STORED, broken));
        let provider = provider().always(|_| [text("ok"), done()]);
        let rig = Rig::resumed(provider, config(), storage, STORED, |builder| builder).await;
        rig.send("next").await;
        let lines = said(&rig.request(1)).join("\n");
        let expected: Vec<usize> = (1..=8).filter(|n| *n as u64 != broken).collect();
        assert_eq!(markers(&lines), expected);
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_that_lost_its_first_record_still_resumes() {
    // D19
    let storage = storage_with(marked_turns(2, 10));
    assert!(storage.corrupt(STORED, 0));
    let provider = provider().always(|_| [text("ok"), done()]);
    let rig = Rig::resumed(provider, config(), storage, STORED, |builder| builder).await;
    assert_eq!(rig.session.info().model_id, MODEL, "the default model");
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_model_that_says_nothing_leaves_no_message() {
    let mut rig = Rig::new(provider().reply([done()])).await;
    let events = rig.send("q").await;
    assert_eq!(kinds(&events), ["turnStarted", "turnComplete"]);
    let AgentEventKind::TurnComplete {
        assistant_output, ..
    } = &events[1].kind
    else {
        panic!("{events:?}");
    };
    assert_eq!(**assistant_output, *"");
    assert_eq!(rig.provider.request_count(), 1, "no hidden second prompt");
    assert_eq!(
        stored_lines(&rig.stored()),
        ["created: q", "user: q", "silence"]
    );
    rig.reopen().await;
    let refused = rig.session.retry_turn().unwrap_err();
    assert_eq!(
        refused.code,
        ErrorCode::InvalidInput,
        "the turn was answered"
    );
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_stored_compaction_that_cannot_be_read_leaves_the_one_before() {
    // D19, C11
    let record = |summary: &str, boundary: u64| {
        SessionMetadata::Compacted(CompactionRecord {
            method: CompactionMethod::Summarized,
            summary: Some(summary.to_owned()),
            boundary,
            pinned: None,
            shortened: Vec::new(),
            tokens_before: 0,
            tokens_after: 0,
            usage: None,
        })
    };
    let mut history = marked_turns(2, 10);
    history.push(metadata(0, record("FIRST", 3)));
    history.extend(marked_turns(1, 10));
    history.push(metadata(0, record("SECOND", 6)));
    history.push(user_message(0, "later"));
    let storage = storage_with(history);
    assert!(storage.corrupt(STORED, 8));
    let provider = provider().always(|_| [text("ok"), done()]);
    let rig = Rig::resumed(provider, config(), storage, STORED, |builder| builder).await;
    rig.send("next").await;
    let lines = said(&rig.request(1));
    assert_eq!(lines[0], "summary: FIRST");
    assert_eq!(markers(&lines.join("\n")), [3, 4, 1, 2]);
    assert!(lines.contains(&"user: later".to_owned()));
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_storage_that_gives_records_twice_or_out_of_order_is_read_all_the_same() {
    // D19
    struct Shuffled(InMemorySessions);

    #[async_trait]
    impl SessionStorage for Shuffled {
        async fn append(
            &self,
            session_id: &str,
            events: &[SessionEvent],
        ) -> Result<(), StorageError> {
            self.0.append(session_id, events).await
        }

        async fn load(&self, session_id: &str) -> Result<Option<SessionLog>, StorageError> {
            Ok(self.0.load(session_id).await?.map(|mut log| {
                let again = log.events.clone();
                log.events.extend(again);
                log.events.reverse();
                log
            }))
        }

        async fn list(
            &self,
            cursor: Option<&str>,
            limit: NonZeroUsize,
        ) -> Result<ListPage, StorageError> {
            self.0.list(cursor, limit).await
        }

        async fn summary(&self, session_id: &str) -> Result<Option<SessionSummary>, StorageError> {
            self.0.summary(session_id).await
        }

        async fn find(&self, query: &str) -> Result<Vec<SessionSummary>, StorageError> {
            self.0.find(query).await
        }

        async fn rename(&self, session_id: &str, title: &str) -> Result<bool, StorageError> {
            self.0.rename(session_id, title).await
        }

        async fn delete(&self, session_id: &str) -> Result<bool, StorageError> {
            self.0.delete(session_id).await
        }
    }

    let storage = InMemorySessions::new();
    let shuffled = Shuffled(storage.clone());
    let provider = provider().always(|_| [text("ok"), done()]);
    let mut rig = Rig::over(provider, config(), storage, shuffled, |builder| builder).await;
    rig.send("one").await;
    rig.send("two").await;
    rig.reopen().await;
    rig.send("three").await;
    assert_eq!(
        said(&rig.request(3)),
        [
            "user: one",
            "assistant: ok",
            "user: two",
            "assistant: ok",
            "user: three"
        ]
    );
    rig.epilogue().await;
}

/// A storage like a file: a line of JSON per event. What cannot be read is left out.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Lines {
    fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().clone()
    }

    fn of(bytes: &[u8]) -> Self {
        Self(Arc::new(Mutex::new(bytes.to_vec())))
    }
}

#[async_trait]
impl SessionStorage for Lines {
    async fn append(&self, _: &str, events: &[SessionEvent]) -> Result<(), StorageError> {
        let mut file = self.0.lock().unwrap();
        // A torn last line is ended first, so that it takes nothing with it.
        if file.last().is_some_and(|last| *last != b'\n') {
            file.push(b'\n');
        }
        for event in events {
            let line = serde_json::to_vec(event).map_err(StorageError::new)?;
            file.extend(line);
            file.push(b'\n');
        }
        Ok(())
    }

    async fn load(&self, _: &str) -> Result<Option<SessionLog>, StorageError> {
        let mut log = SessionLog::default();
        for line in self.bytes().split(|byte| *byte == b'\n') {
            match serde_json::from_slice(line) {
                Ok(event) => log.events.push(event),
                Err(_) => log.unreadable += u32::from(!line.is_empty()),
            }
        }
        Ok((!log.events.is_empty()).then_some(log))
    }

    async fn list(&self, _: Option<&str>, _: NonZeroUsize) -> Result<ListPage, StorageError> {
        Ok(ListPage::default())
    }

    async fn summary(&self, _: &str) -> Result<Option<SessionSummary>, StorageError> {
        Ok(None)
    }

    async fn find(&self, _: &str) -> Result<Vec<SessionSummary>, StorageError> {
        Ok(Vec::new())
    }

    async fn rename(&self, _: &str, _: &str) -> Result<bool, StorageError> {
        Ok(false)
    }

    async fn delete(&self, _: &str) -> Result<bool, StorageError> {
        Ok(false)
    }
}

/// Opens what the file holds, sends a message, and answers what the model was told.
async fn told_after(lines: Lines) -> Vec<String> {
    let provider = provider().always(|_| [text("fine"), done()]);
    let agent = AgentBuilder::new(config())
        .provider(provider.clone())
        .session_storage(lines)
        .build()
        .await
        .unwrap();
    let session = agent
        .resume_session(STORED, ResumeOptions::default())
        .await
        .unwrap();
    let rig = Rig {
        agent,
        provider,
        storage: InMemorySessions::new(),
        session,
    };
    rig.send("next").await;
    let told = said(&rig.request(1));
    rig.epilogue().await;
    told
}

async fn file_of_two_turns() -> Lines {
    let lines = Lines::default();
    let provider = provider().always(|_| [text("回答"), done()]);
    let storage = InMemorySessions::new();
    let rig = Rig::over(provider, config(), storage, lines.clone(), |builder| {
        builder
    })
    .await;
    rig.send("第一个问题").await;
    rig.send("第二个问题").await;
    rig.session.close().await.unwrap();
    lines
}

#[tokio::test(start_paused = true)]
async fn a_record_torn_at_any_byte_costs_only_itself() {
    // D1
    let whole = file_of_two_turns().await.bytes();
    let body = whole.strip_suffix(b"\n").unwrap();
    let last = body.iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    for cut in last..body.len() {
        assert_eq!(
            told_after(Lines::of(&body[..cut])).await,
            [
                "user: 第一个问题",
                "assistant: 回答",
                "user: 第二个问题",
                "note: [此消息因程序中断而未完成]",
                "user: next"
            ],
            "cut at byte {cut}"
        );
    }
    let complete = told_after(Lines::of(body)).await;
    assert_eq!(complete[3], "assistant: 回答");
}

#[tokio::test(start_paused = true)]
async fn records_of_another_version_and_garbage_are_skipped() {
    // D19
    let whole = file_of_two_turns().await.bytes();
    let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
    let newer = br#"{"index":90,"timestamp":1,"turnId":"t","type":"hologram","shape":"cube"}"#;
    let newer_fact =
        br#"{"index":91,"timestamp":1,"turnId":"t","type":"metadata","metadata":{"type":"mood"}}"#;
    let nul = [0; 4_096];
    for place in 0..=lines.len() {
        for garbage in [
            &newer[..],
            newer_fact,
            &nul,
            b"\xff\xfe",
            b"[]",
            lines[1].trim_ascii(),
        ] {
            let mut file = lines[..place].concat();
            file.extend_from_slice(garbage);
            file.push(b'\n');
            file.extend(lines[place..].concat());
            assert_eq!(
                told_after(Lines::of(&file)).await,
                [
                    "user: 第一个问题",
                    "assistant: 回答",
                    "user: 第二个问题",
                    "assistant: 回答",
                    "user: next"
                ]
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_stored_compaction_cannot_have_removed_what_came_after_it() {
    // Found by `any_stored_history_resumes_into_valid_requests`
    let record = SessionMetadata::Compacted(CompactionRecord {
        method: CompactionMethod::Summarized,
        summary: None,
        boundary: 30,
        pinned: None,
        shortened: Vec::new(),
        tokens_before: 0,
        tokens_after: 0,
        usage: None,
    });
    let history = vec![metadata(0, record), user_message(0, "later")];
    let provider = provider().always(|_| [text("ok"), done()]);
    let rig = Rig::resumed(provider, config(), storage_with(history), STORED, |b| b).await;
    rig.send("next").await;
    let lines = said(&rig.request(1));
    assert_eq!(lines[0], "user: later");
    assert_eq!(*lines.last().unwrap(), "user: next");
    rig.epilogue().await;
}
