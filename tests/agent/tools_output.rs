//! Area B, fourth part: what a tool's output looks like when it enters the context (chapter
//! 5.4, section 12).

use youyou_agent::testing::{RecordingTool, call, done, text};
use youyou_agent::{AgentConfig, HookOutcome, ToolOutput};

use crate::look::{assert_completed, ends, result, stored_results};
use crate::probe::Probe;
use crate::rig::{Rig, config, provider_with_window};

const LIMIT: usize = 1_048_576;

/// Runs a tool that answers this, and gives what everyone saw of it: event, context and
/// storage hold the same.
async fn seen(tool: RecordingTool, config: AgentConfig, probe: Option<Probe>) -> String {
    let provider = provider_with_window(100_000_000)
        .reply([call("c1", "t", "{}"), done()])
        .reply([text("ok"), done()]);
    let rig = Rig::with(provider, config, |builder| {
        let builder = builder.tool(tool);
        match probe {
            Some(probe) => builder.plugin(probe),
            None => builder,
        }
    })
    .await;
    let events = rig.send("go").await;
    assert_completed(&events, "ok");
    let shown = ends(&events)[0].output.clone();
    let in_context = result(&rig.request(2), "c1");
    if shown.trim().is_empty() {
        assert_eq!(in_context, "(no output)");
    } else {
        assert_eq!(in_context, shown);
    }
    assert_eq!(
        stored_results(&rig.stored()),
        [("c1".to_owned(), shown.clone())]
    );
    rig.epilogue().await;
    shown
}

async fn answered(output: impl Into<ToolOutput>) -> String {
    seen(
        RecordingTool::read_only("t").answering(output),
        config(),
        None,
    )
    .await
}

fn changing(change: impl Fn(&str) -> String + Clone + Send + Sync + 'static) -> Probe {
    Probe::tapping("changes", move |hooks| {
        let change = change.clone();
        hooks.after_tool_use("change", move |call| {
            let changed = change(&call.output);
            async move { Ok(HookOutcome::ContinueWith(changed)) }
        });
    })
}

/// What is left of a cut output: head, tail, and the notices.
#[track_caller]
fn assert_cut(shown: &str, original: &str, limit: usize) {
    let (head, rest) = shown.split_once("\n[... ").expect("a notice at the cut");
    let (_, rest) = rest.split_once("left out ...]\n").expect("the notice ends");
    let (tail, notice) = rest
        .rsplit_once("\n[Output truncated: ")
        .expect("a notice at the end");
    assert!(
        notice.starts_with(&format!("{} bytes", original.len())),
        "{notice}"
    );
    assert!(original.starts_with(head) && original.ends_with(tail));
    let kept = head.len() + tail.len();
    assert!(kept <= limit && kept + 8 > limit, "{kept}");
    assert!(!head.is_empty() && !tail.is_empty());
    assert!(shown.len() <= limit + 200, "{}", shown.len());
}

#[tokio::test(start_paused = true)]
async fn long_output_is_cut_at_characters_with_its_size_told() {
    // B15
    for output in [
        format!("{}{}", "a".repeat(LIMIT - 1), "频".repeat(5)),
        "😀".repeat(300_000),
        "a".repeat(LIMIT + 1),
        "频".repeat(LIMIT),
        format!("a{}", "é".repeat(LIMIT)),
    ] {
        let shown = answered(output.as_str()).await;
        assert_cut(&shown, &output, LIMIT);
    }
}

#[tokio::test(start_paused = true)]
async fn output_of_exactly_the_limit_is_not_cut() {
    // B15
    for output in [
        "a".repeat(LIMIT),
        "😀".repeat(LIMIT / 4),
        "a".repeat(LIMIT - 1),
    ] {
        assert_eq!(answered(output.as_str()).await, output);
    }
}

#[tokio::test(start_paused = true)]
async fn a_small_limit_holds_too() {
    for limit in [1, 2, 3, 7, 100] {
        let config = AgentConfig {
            tool_output_limit_bytes: limit,
            ..config()
        };
        let tool = RecordingTool::read_only("t").answering("频道😀".repeat(50));
        let shown = seen(tool, config, None).await;
        assert!(shown.contains("500 bytes"), "{shown}");
        let original = "频道😀".repeat(50);
        let (head, rest) = shown.split_once("\n[... ").unwrap();
        let (tail, _) = rest
            .split_once("left out ...]\n")
            .unwrap()
            .1
            .rsplit_once("\n[Output truncated")
            .unwrap();
        assert!(head.len() + tail.len() <= limit);
        assert!(original.starts_with(head) && original.ends_with(tail));
    }
}

#[tokio::test(start_paused = true)]
async fn the_text_of_a_failure_is_cut_and_cleaned_like_any_output() {
    // B15
    let message = format!("\0{}", "频".repeat(LIMIT));
    for tool in [
        RecordingTool::read_only("t").failing(message.clone()),
        RecordingTool::read_only("t").panicking(message.clone()),
        RecordingTool::read_only("t").answering(ToolOutput::error(message.clone())),
    ] {
        let shown = seen(tool, config(), None).await;
        assert!(shown.len() <= LIMIT + 200, "{}", shown.len());
        assert!(shown.contains("[Output truncated: "));
        assert!(!shown.contains('\0'));
    }
}

#[tokio::test(start_paused = true)]
async fn control_characters_become_replacement_characters() {
    let dirty = "a\0b\u{1b}[31mred\u{7}\tkept\r\n\u{1f}\u{7f}end";
    let clean = "a\u{fffd}b\u{fffd}[31mred\u{fffd}\tkept\r\n\u{fffd}\u{7f}end";
    assert_eq!(answered(dirty).await, clean);
    let tool = RecordingTool::read_only("t");
    assert_eq!(
        seen(tool, config(), Some(changing(move |_| dirty.to_owned()))).await,
        clean
    );
}

#[tokio::test(start_paused = true)]
async fn hooks_see_clean_output() {
    let tool = RecordingTool::read_only("t").answering("\0");
    let shown = seen(
        tool,
        config(),
        Some(changing(|output| format!("saw {output:?}"))),
    )
    .await;
    assert_eq!(shown, "saw \"\u{fffd}\"");
}

#[tokio::test(start_paused = true)]
async fn empty_output_is_shown_as_it_is_and_told_as_none() {
    for output in ["", " ", "\n\t"] {
        assert_eq!(answered(output).await, output);
    }
}

#[tokio::test(start_paused = true)]
async fn the_limits_hold_after_the_hook() {
    // G7
    let grown = "频".repeat(LIMIT);
    let output = grown.clone();
    let tool = RecordingTool::read_only("t");
    let shown = seen(tool, config(), Some(changing(move |_| output.clone()))).await;
    assert_cut(&shown, &grown, LIMIT);

    let tool = RecordingTool::read_only("t").answering("something");
    assert_eq!(
        seen(tool, config(), Some(changing(|_| String::new()))).await,
        ""
    );
}

#[tokio::test(start_paused = true)]
async fn the_original_size_is_told_though_a_hook_adds_a_line() {
    // G7
    let output = "a".repeat(3 * LIMIT);
    let tool = RecordingTool::read_only("t").answering(output.as_str());
    let shown = seen(
        tool,
        config(),
        Some(changing(|output| format!("{output}\nchecked"))),
    )
    .await;
    assert!(shown.len() <= LIMIT + 400, "{}", shown.len());
    assert!(
        shown.contains(&format!("{} bytes", 3 * LIMIT)),
        "{}",
        &shown[LIMIT - 100..]
    );
    assert!(shown.ends_with("checked") || shown.contains("checked\n[Output truncated"));
}
