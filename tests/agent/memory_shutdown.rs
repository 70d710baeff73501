//! Memories at shutdown: an extraction has what the other steps leave of the time, and what it
//! could not do is told.

use std::time::Duration;

use tokio::time::Instant;
use youyou_agent::ProviderErrorKind;
use youyou_agent::testing::{
    Gate, InMemoryMemories, RecordingTool, Step, call, done, error, gate, text, wait,
};

use crate::lifecycle_shutdown::witness;
use crate::memory::{extracting, extractions};
use crate::probe::Lines;
use crate::rig::{Rig, config};
use crate::said::stored_lines;

const TEA: &str = r#"[{"content":"tea"}]"#;

/// Opens a gate after this time.
fn open_after(millis: u64, door: &Gate) {
    let door = door.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(millis)).await;
        door.open();
    });
}

/// Shuts down after a turn, with a model for memories that takes this long. Returns what was
/// remembered and told, and how long the shutdown took.
async fn shut_down_with(millis: u64, with_plugin: bool) -> (usize, Vec<String>, Duration) {
    let door = Gate::closed();
    let behind = door.clone();
    let memories = InMemoryMemories::new();
    let provider = extracting(move || vec![gate(&behind), text(TEA), done()]);
    let rig = Rig::with(provider, config(), |builder| {
        let builder = builder.memory_storage(memories.clone());
        match with_plugin {
            true => builder.plugin(witness(&Lines::default())),
            false => builder,
        }
    })
    .await;
    rig.send("I like tea").await;
    open_after(millis, &door);
    let began = Instant::now();
    let report = rig.agent.shutdown().await;
    let noted = stored_lines(&rig.stored()).contains(&"memory checkpoint".to_owned());
    assert_eq!(noted, report.problems.is_empty());
    assert_eq!(rig.provider.streams_open(), 0);
    (memories.all().len(), report.problems, began.elapsed())
}

#[tokio::test(start_paused = true)]
async fn a_late_model_has_what_is_left_of_the_shutdown() {
    // C35
    for (millis, with_plugin) in [(800, false), (4_700, false), (800, true), (3_700, true)] {
        let (remembered, problems, took) = shut_down_with(millis, with_plugin).await;
        assert_eq!(problems, Vec::<String>::new(), "{millis} ms");
        assert_eq!(remembered, 1, "{millis} ms");
        assert_eq!(took, Duration::from_millis(millis));
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_shutdown_has_no_time_to_extract_is_told() {
    // C35
    for (millis, with_plugin) in [(4_800, false), (60_000, false), (3_800, true)] {
        let (remembered, problems, took) = shut_down_with(millis, with_plugin).await;
        let [problem] = &problems[..] else {
            panic!("{millis} ms: {problems:?}");
        };
        assert!(
            problem.contains("memories were not extracted (there was no time left)"),
            "{problem}"
        );
        assert!(problem.contains("when the session is resumed"), "{problem}");
        assert_eq!(remembered, 0);
        assert!(took <= Duration::from_secs(5), "{took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_extraction_has_what_a_running_turn_leaves() {
    // C35
    let door = Gate::closed();
    let behind = door.clone();
    let memories = InMemoryMemories::new();
    let tool = RecordingTool::mutating("slow").taking(Duration::from_millis(2_400));
    let log = tool.log().clone();
    let provider = extracting(move || vec![gate(&behind), text(TEA), done()]);
    let rig = Rig::with(provider, config(), |builder| {
        builder.tool(tool).memory_storage(memories.clone())
    })
    .await;
    rig.send("I like tea").await;
    rig.provider.queue([call("c1", "slow", "{}"), done()]);
    let _turn = rig.session.send("go").unwrap();
    log.started(1).await;
    open_after(4_700, &door);
    let report = rig.agent.shutdown().await;
    assert_eq!(report.problems, Vec::<String>::new());
    assert_eq!(memories.all().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_extraction_that_fails_at_shutdown_is_told_with_its_reason() {
    // C35
    type Answer = fn() -> Vec<Step>;
    let answers: [(Answer, &str); 3] = [
        (
            || vec![error(ProviderErrorKind::Auth, "wrong key")],
            "wrong key",
        ),
        (
            || vec![text("nothing"), done()],
            "holds no list of memories",
        ),
        (|| vec![text("[")], "ended before the answer was complete"),
    ];
    for (answer, reason) in answers {
        let rig = Rig::with(extracting(answer), config(), |builder| {
            builder.memory_storage(InMemoryMemories::new())
        })
        .await;
        rig.send("I like tea").await;
        let report = rig.agent.shutdown().await;
        let [problem] = &report.problems[..] else {
            panic!("{report:?}");
        };
        assert!(problem.contains(reason), "{problem}");
        assert_eq!(extractions(&rig.provider).len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_does_not_end_in_time_leaves_its_memories_out_and_that_is_told() {
    let tool = RecordingTool::mutating("hang").hanging();
    let log = tool.log().clone();
    let provider = extracting(|| vec![wait()]);
    let rig = Rig::with(provider, config(), |builder| {
        builder.tool(tool).memory_storage(InMemoryMemories::new())
    })
    .await;
    rig.provider.queue([call("c1", "hang", "{}"), done()]);
    let _turn = rig.session.send("go").unwrap();
    log.started(1).await;
    let report = rig.agent.shutdown().await;
    let [stopped, memories] = &report.problems[..] else {
        panic!("{report:?}");
    };
    assert!(stopped.contains("was stopped"), "{stopped}");
    assert!(
        memories.contains("memories were not extracted"),
        "{memories}"
    );
}
