//! Random lives of a session: what may happen to it from one start of a process to its end,
//! and the promises that are checked on the way.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use proptest::prelude::*;
use youyou_agent::testing::{
    Fault, FaultySessions, Gate, InMemorySessions, RecordingTool, ScriptedProvider,
    SessionOperation, Step, When, assert_event_invariants, call, collect, done, error, gate, kinds,
    panic_in_chat, panic_with, reasoning, refuse, text, wait, yield_once,
};
use youyou_agent::{
    AgentBuilder, AgentConfig, AgentEvent, AgentEventKind, AssistantPart, ErrorCode, ProviderError,
    ProviderErrorKind, ResumeOptions, Session, SessionConfig, SessionEventKind, Turn,
};

use crate::histories::{asks_for_summary, compacting};
use crate::properties::process;
use crate::rig::{Rig, provider_with_window};
use crate::said::said;

/// From the start of a process to its end.
#[derive(Debug, Clone)]
pub(crate) struct Life {
    acts: Vec<Act>,
    end: End,
}

/// How a process ends.
#[derive(Debug, Clone)]
enum End {
    /// The session is closed.
    Close,
    /// Between two turns.
    Idle,
    /// While a turn runs.
    InATurn(Script, Moment),
}

#[derive(Debug, Clone)]
enum Act {
    Send {
        message: &'static str,
        scripts: Vec<Script>,
        cancel: Option<Moment>,
    },
    Retry(Script),
    Compact {
        cancel: Option<Moment>,
    },
    Reopen,
    Break {
        fault: usize,
        nth: usize,
        for_good: bool,
    },
    Heal,
}

/// A moment in a turn: so many seconds and steps of the scheduler after its start.
#[derive(Debug, Clone, Copy)]
struct Moment {
    seconds: u64,
    steps: usize,
}

impl Moment {
    async fn comes(self) {
        if self.seconds > 0 {
            tokio::time::sleep(Duration::from_secs(self.seconds)).await;
        }
        for _ in 0..self.steps {
            tokio::task::yield_now().await;
        }
    }
}

fn moment() -> impl Strategy<Value = Moment> {
    (prop_oneof![Just(0), 0..12_u64], 0..40_usize)
        .prop_map(|(seconds, steps)| Moment { seconds, steps })
}

/// The answer to one request.
#[derive(Debug, Clone)]
struct Script {
    pieces: Vec<Piece>,
    last: Last,
}

#[derive(Debug, Clone)]
enum Piece {
    Text(&'static str),
    Reasoning(&'static str),
    Call(&'static str, &'static str, &'static str),
    Pause,
    /// Three seconds of silence, so that what was shown so far is stored.
    Silence,
}

#[derive(Debug, Clone)]
enum Last {
    Done,
    Nothing,
    Silence,
    Error(ProviderErrorKind),
    Refusal(ProviderErrorKind),
    Panic,
    PanicAtOnce,
}

impl Script {
    fn steps(&self) -> Vec<Step> {
        match &self.last {
            Last::Refusal(kind) => {
                return vec![refuse(ProviderError::new(kind.clone(), "refused"))];
            }
            Last::PanicAtOnce => return vec![panic_in_chat("broken")],
            _ => {}
        }
        let mut silences = 0;
        let pieces = self.pieces.iter().map(|piece| match piece {
            Piece::Text(own) => text(*own),
            Piece::Reasoning(own) => reasoning(*own),
            Piece::Call(id, tool, arguments) => call(*id, *tool, *arguments),
            Piece::Pause => yield_once(),
            Piece::Silence => {
                silences += 1;
                silence_until(3 * silences)
            }
        });
        let last = match &self.last {
            Last::Done => Some(done()),
            Last::Silence => Some(wait()),
            Last::Error(kind) => Some(error(kind.clone(), "it went wrong")),
            Last::Panic => Some(panic_with("broken")),
            Last::Nothing | Last::Refusal(_) | Last::PanicAtOnce => None,
        };
        pieces.chain(last).collect()
    }
}

/// Silence until so many seconds after now.
fn silence_until(seconds: u64) -> Step {
    let door = Gate::closed();
    let opener = door.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        opener.open();
    });
    gate(&door)
}

fn kind() -> impl Strategy<Value = ProviderErrorKind> {
    prop::sample::select(vec![
        ProviderErrorKind::ContextLengthExceeded,
        ProviderErrorKind::ContextLengthExceeded,
        ProviderErrorKind::RateLimited {
            retry_after_ms: Some(20),
        },
        ProviderErrorKind::Overloaded,
        ProviderErrorKind::Network,
        ProviderErrorKind::Auth,
        ProviderErrorKind::Other,
    ])
}

fn script() -> impl Strategy<Value = Script> {
    let piece = prop_oneof![
        4 => prop::sample::select(vec!["a", "", "\n", " b ", "频", "🎉z"]).prop_map(Piece::Text),
        1 => Just(Piece::Text(LONG)),
        1 => prop::sample::select(vec!["", "hm"]).prop_map(Piece::Reasoning),
        4 => (
            prop::sample::select(vec!["", "c1", "c2", "c3"]),
            prop::sample::select(vec!["ro", "mu", "big", "boom", "hang", "absent"]),
            prop::sample::select(vec!["{}", "", r#"{"n":1}"#, "{\"n\":", "[1]", "null"]),
        )
            .prop_map(|(id, tool, arguments)| Piece::Call(id, tool, arguments)),
        2 => Just(Piece::Pause),
        2 => Just(Piece::Silence),
    ];
    let last = prop_oneof![
        8 => Just(Last::Done),
        1 => Just(Last::Nothing),
        1 => Just(Last::Silence),
        2 => kind().prop_map(Last::Error),
        1 => kind().prop_map(Last::Refusal),
        1 => Just(Last::Panic),
        1 => Just(Last::PanicAtOnce),
    ];
    (prop::collection::vec(piece, 0..5), last).prop_map(|(pieces, last)| Script { pieces, last })
}

/// Longer than the small window of these lives leaves room for, a few times over.
const LONG: &str = "一二三四五六七八九十一二三四五六七八九十一二三四五六七八九十一二三四五六七八九十一二三四五六七八九十一二三四五六七八九十一二三四五六七八九十一二三四五六七八九十一二三四五六七八九十一二三四五六七八九十";
/// Longer than the whole window.
const HUGE: &str = concat!(
    "The quick brown fox jumps over the lazy dog, again and again. ",
    "敏捷的棕色狐狸一次又一次地跳过懒狗，一直跳到天黑，又从天黑跳到天亮，再从天亮跳到天黑。",
    "敏捷的棕色狐狸一次又一次地跳过懒狗，一直跳到天黑，又从天黑跳到天亮，再从天亮跳到天黑。",
    "敏捷的棕色狐狸一次又一次地跳过懒狗，一直跳到天黑，又从天黑跳到天亮，再从天亮跳到天黑。",
    "敏捷的棕色狐狸一次又一次地跳过懒狗，一直跳到天黑，又从天黑跳到天亮，再从天亮跳到天黑。",
    "敏捷的棕色狐狸一次又一次地跳过懒狗，一直跳到天黑，又从天黑跳到天亮，再从天亮跳到天黑。",
    "敏捷的棕色狐狸一次又一次地跳过懒狗，一直跳到天黑，又从天黑跳到天亮，再从天亮跳到天黑。",
    "敏捷的棕色狐狸一次又一次地跳过懒狗，一直跳到天黑，又从天黑跳到天亮，再从天亮跳到天黑。",
    "敏捷的棕色狐狸一次又一次地跳过懒狗，一直跳到天黑，又从天黑跳到天亮，再从天亮跳到天黑。",
);
/// Tokens.
const WINDOW: u32 = 300;

fn act() -> impl Strategy<Value = Act> {
    let cancel = || prop::option::weighted(0.3, moment());
    prop_oneof![
        8 => (
            prop::sample::select(vec!["hi", "go on", " ", LONG, HUGE]),
            prop::collection::vec(script(), 0..4),
            cancel(),
        )
            .prop_map(|(message, scripts, cancel)| Act::Send { message, scripts, cancel }),
        2 => script().prop_map(Act::Retry),
        2 => cancel().prop_map(|cancel| Act::Compact { cancel }),
        1 => Just(Act::Reopen),
        2 => (0..FAULTS, 1..6_usize, any::<bool>())
            .prop_map(|(fault, nth, for_good)| Act::Break { fault, nth, for_good }),
        1 => Just(Act::Heal),
    ]
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![
        2 => Just(End::Close),
        1 => Just(End::Idle),
        2 => (script(), moment()).prop_map(|(script, moment)| End::InATurn(script, moment)),
    ]
}

/// A session that goes through several processes.
pub(crate) fn several() -> impl Strategy<Value = Vec<Life>> {
    let life =
        (prop::collection::vec(act(), 0..8), end()).prop_map(|(acts, end)| Life { acts, end });
    prop::collection::vec(life, 1..4)
}

const FAULTS: usize = 5;

fn fault(number: usize) -> Fault {
    match number {
        0 => Fault::Error("down".to_owned()),
        1 => Fault::ErrorAfter("connection lost".to_owned()),
        2 => Fault::Hang,
        3 => Fault::HangAfter,
        _ => Fault::Panic("poisoned".to_owned()),
    }
}

/// What outlives a process.
struct World {
    provider: ScriptedProvider,
    /// How many summaries were asked for.
    summaries: Arc<AtomicUsize>,
    storage: InMemorySessions,
    wrapped: FaultySessions<InMemorySessions>,
    session_id: Option<String>,
}

/// Goes through the lives, each in a process of its own, and then checks that the session
/// is as good as new.
pub(crate) fn live(lives: &[Life]) {
    let storage = InMemorySessions::new();
    let mut world = World {
        provider: provider_with_window(WINDOW),
        summaries: Arc::default(),
        wrapped: FaultySessions::new(storage.clone()),
        storage,
        session_id: None,
    };
    for life in lives {
        // Dropping the runtime ends whatever runs, as the end of a process does.
        process().block_on(async { world.go_through(life).await });
    }
    world.wrapped.faults().heal();
    process().block_on(async {
        world.play(&[]);
        let rig = world.begin().await;
        looks_the_same_after_a_resume(rig).await;
    });
}

async fn looks_the_same_after_a_resume(mut rig: Rig) {
    rig.send("live").await;
    let live = said(&rig.provider.last_request().expect("a request"));
    rig.reopen().await;
    let events = rig.send("resumed").await;
    let resumed = said(&rig.provider.last_request().expect("a request"));
    if !kinds(&events).contains(&"contextCompacted") {
        assert_eq!(resumed[..live.len()], live);
    }
    rig.epilogue().await;
}

impl World {
    /// An agent as a process starts it, with the session opened again.
    async fn begin(&mut self) -> Rig {
        let config = AgentConfig {
            tool_timeout_ms: 1_000,
            compact_keep_recent: 3,
            max_tool_calls_per_turn: 6,
            ..compacting()
        };
        let agent = AgentBuilder::new(config)
            .provider(self.provider.clone())
            .session_storage(self.wrapped.clone())
            .tool(RecordingTool::read_only("ro").echo())
            .tool(RecordingTool::mutating("mu"))
            .tool(RecordingTool::read_only("big").big(3_000))
            .tool(RecordingTool::read_only("boom").panicking("boom"))
            .tool(RecordingTool::mutating("hang").hanging())
            .build()
            .await
            .expect("the agent builds");
        let mut rig = Rig {
            session: agent
                .create_session(SessionConfig::default())
                .await
                .expect("a session is created"),
            agent,
            provider: self.provider.clone(),
            storage: self.storage.clone(),
        };
        if let Some(id) = self.session_id.clone() {
            rig.session.close().await.expect("an unused session closes");
            rig.session = self.open(&rig, &id).await;
        }
        self.session_id = Some(rig.session.id().to_owned());
        rig
    }

    /// The session again, or a new one if nothing of it was ever stored.
    async fn open(&self, rig: &Rig, id: &str) -> Session {
        match rig.agent.resume_session(id, ResumeOptions::default()).await {
            Ok(session) => session,
            Err(error) => {
                assert_eq!(error.code, ErrorCode::SessionNotFound);
                assert!(self.storage.events(id).is_empty(), "what is stored resumes");
                let created = rig.agent.create_session(SessionConfig::default()).await;
                created.expect("a session is created")
            }
        }
    }

    async fn go_through(&mut self, life: &Life) {
        let mut rig = self.begin().await;
        let mut shown: Vec<AgentEvent> = Vec::new();
        for act in &life.acts {
            match act {
                Act::Send {
                    message,
                    scripts,
                    cancel,
                } => {
                    self.play(scripts);
                    match rig.session.send(*message) {
                        Ok(turn) => shown.extend(watched(turn, *cancel).await),
                        Err(error) => {
                            assert_eq!(error.code, ErrorCode::InvalidInput);
                            assert!(message.trim().is_empty());
                        }
                    }
                }
                Act::Retry(script) => {
                    self.play(std::slice::from_ref(script));
                    match rig.session.retry_turn() {
                        Ok(turn) => shown.extend(watched(turn, None).await),
                        Err(error) => assert_eq!(error.code, ErrorCode::InvalidInput),
                    }
                }
                Act::Compact { cancel } => {
                    self.play(&[]);
                    compacted(&rig.session, *cancel).await;
                }
                Act::Reopen => {
                    let closed = rig.session.close().await;
                    self.check_what_was_shown(&rig, &shown, closed.is_ok());
                    shown.clear();
                    rig.session = self.open(&rig, rig.session.id()).await;
                    self.session_id = Some(rig.session.id().to_owned());
                }
                Act::Break {
                    fault: number,
                    nth,
                    for_good,
                } => {
                    let when = if *for_good {
                        When::From(*nth)
                    } else {
                        When::Nth(*nth)
                    };
                    let faults = self.wrapped.faults();
                    faults.inject(SessionOperation::Append, when, fault(*number));
                }
                Act::Heal => self.wrapped.faults().heal(),
            }
        }
        match &life.end {
            End::Close => {
                let closed = rig.session.close().await;
                self.check_what_was_shown(&rig, &shown, closed.is_ok());
            }
            End::Idle => {}
            End::InATurn(script, moment) => {
                self.play(std::slice::from_ref(script));
                let _turn = rig.session.send("the last words").expect("it is idle");
                moment.comes().await;
            }
        }
    }

    /// What the model answers from now on: these, then always "ok". Summaries are good, blank,
    /// long and refused in turn.
    fn play(&self, scripts: &[Script]) {
        self.provider.forget_scripts();
        let summaries = Arc::clone(&self.summaries);
        let _same = self.provider.clone().intercept(move |request| {
            asks_for_summary(request).then(|| match summaries.fetch_add(1, Ordering::Relaxed) % 4 {
                1 => vec![text(" "), done()],
                2 => vec![text(LONG), text(LONG), done()],
                3 => vec![error(ProviderErrorKind::Overloaded, "busy")],
                _ => vec![text("SUMMARY"), done()],
            })
        });
        for script in scripts {
            self.provider.queue(script.steps());
        }
        self.provider.fall_back(|_| [text("ok"), done()]);
    }

    /// INV-6: the text that was shown is the text that is stored, unless a close said that
    /// some of it is lost.
    fn check_what_was_shown(&self, rig: &Rig, shown: &[AgentEvent], nothing_lost: bool) {
        if !nothing_lost {
            return;
        }
        let stored = self.storage.events(rig.session.id());
        let mut turns: Vec<&Arc<str>> = shown.iter().map(|event| &event.turn_id).collect();
        turns.dedup();
        for turn in turns {
            let of_turn = shown.iter().filter(|event| event.turn_id == *turn);
            let mut answers: Vec<(u32, String)> = Vec::new();
            for event in of_turn {
                if let AgentEventKind::TextDelta { step, delta, .. } = &event.kind {
                    match answers.last_mut() {
                        Some((last, answer)) if last == step => answer.push_str(delta),
                        _ => answers.push((*step, delta.clone())),
                    }
                }
            }
            let shown: Vec<String> = answers
                .into_iter()
                .map(|(_, answer)| answer)
                .filter(|answer| !answer.trim().is_empty())
                .collect();
            let stored: Vec<String> = stored
                .iter()
                .filter(|event| event.turn_id == *turn)
                .filter_map(|event| match &event.kind {
                    SessionEventKind::AssistantMessage { parts, .. } => Some(text_in(parts)),
                    _ => None,
                })
                .filter(|answer| !answer.trim().is_empty())
                .collect();
            assert_eq!(stored, shown, "shown and stored differ");
        }
    }
}

fn text_in(parts: &[AssistantPart]) -> String {
    parts
        .iter()
        .filter_map(|part| match part {
            AssistantPart::Text { text, .. } => Some(&**text),
            _ => None,
        })
        .collect()
}

/// Reads a turn to its end, cancelling it on the way where that is wanted. INV-2.
async fn watched(turn: Turn, cancel: Option<Moment>) -> Vec<AgentEvent> {
    if let Some(moment) = cancel {
        moment.comes().await;
        let _in_time = turn.cancel();
    }
    let events = collect(turn).await;
    assert_event_invariants(&events);
    events
}

async fn compacted(session: &Session, cancel: Option<Moment>) {
    let compacting = session.clone();
    let compacting = tokio::spawn(async move { compacting.compact().await });
    if let Some(moment) = cancel {
        moment.comes().await;
        let _in_time = session.cancel(None);
    }
    match compacting.await.expect("it does not panic") {
        Ok(outcome) => assert!(outcome.tokens_after <= outcome.tokens_before, "{outcome:?}"),
        Err(error) => assert!(
            [ErrorCode::RequestCancelled, ErrorCode::StorageError].contains(&error.code),
            "{error:?}"
        ),
    }
}
