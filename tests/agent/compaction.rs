//! Chapter 5.2: compaction. What goes, what stays, and that it never goes on for ever.

use serde_json::json;
use youyou_agent::testing::{
    InMemorySessions, RecordingTool, Step, assistant_message, call, cut_message, done, done_with,
    error, kinds, reasoning, shape, text, text_part, user_message,
};
use youyou_agent::{
    AgentConfig, AgentEvent, AgentEventKind, CompactionMethod, Interruption, ProviderErrorKind,
    StopReason, Usage,
};

use crate::histories::{
    STORED, asks_for_summary, compacting, marked, marked_turns, markers, storage_with,
    summaries_asked, summarised_by, tool_round, tool_rounds, turns_asked, well_summarised,
};
use crate::rig::{Rig, provider, provider_with_window};
use crate::said::{all_said, said};

fn keeping(units: u32) -> AgentConfig {
    AgentConfig {
        compact_keep_recent: units,
        ..compacting()
    }
}

async fn resumed(config: AgentConfig, storage: InMemorySessions) -> Rig {
    let provider = well_summarised(provider()).always(|_| [text("ok"), done()]);
    Rig::resumed(provider, config, storage, STORED, |builder| builder).await
}

/// The compactions that the events tell of: how, tokens before, tokens after, messages gone.
pub(crate) fn compacted(events: &[AgentEvent]) -> Vec<(CompactionMethod, u64, u64, u32)> {
    events
        .iter()
        .filter_map(|event| match event.kind {
            AgentEventKind::ContextCompacted {
                method,
                tokens_before,
                tokens_after,
                messages_removed,
            } => Some((method, tokens_before, tokens_after, messages_removed)),
            _ => None,
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_call_and_its_results_are_kept_or_dropped_whole() {
    // C1
    for units in 1..=30 {
        for method in [CompactionMethod::Summarized, CompactionMethod::Truncated] {
            let provider = summarised_by(provider(), move || match method {
                CompactionMethod::Summarized => vec![text("SUMMARY"), done()],
                _ => vec![done()],
            })
            .always(|_| [text("ok"), done()]);
            let storage = storage_with(tool_rounds(10, &"out ".repeat(50)));
            let rig =
                Rig::resumed(provider, keeping(units), storage, STORED, |builder| builder).await;
            let outcome = rig.session.compact().await.unwrap();
            assert_eq!(outcome.method, Some(method), "keeping {units}");
            rig.send("next").await;
            let lines = said(turns_asked(&rig.provider).last().unwrap());
            assert!(lines[0].starts_with("summary: "), "{lines:?}");
            assert_eq!(
                lines[1], "user: Use the tool.",
                "the latest user message stays"
            );
            assert_eq!(*lines.last().unwrap(), "user: next");
            let calls = lines
                .iter()
                .filter(|line| line.contains("ro_echo>"))
                .count();
            let results = lines
                .iter()
                .filter(|line| line.starts_with("result "))
                .count();
            assert_eq!(calls, results, "{lines:?}");
            rig.epilogue().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn calls_of_the_newest_round_survive_a_compaction_with_their_results() {
    // C3
    for (tokens_of_history, size) in [(0, 900 * 1024), (40_000, 900 * 1024), (60_000, 300_000)] {
        let provider = well_summarised(provider())
            .reply([
                call("c1", "big", "{}"),
                call("c2", "ro_echo", json!({"n": 1}).to_string()),
                done(),
            ])
            .reply([text("seen"), done()]);
        let mut history = vec![];
        if tokens_of_history > 0 {
            history = marked_turns(2, tokens_of_history / 4);
        }
        let storage = storage_with(history);
        let rig = Rig::resumed(provider, compacting(), storage, STORED, |builder| {
            builder
                .tool(RecordingTool::read_only("big").big(size))
                .tool(RecordingTool::read_only("ro_echo").echo())
        })
        .await;
        let events = rig.send("look at both").await;
        assert_eq!(
            shape(&events),
            [
                "turnStarted",
                "toolCallStart",
                "toolCallStart",
                "toolCallEnd",
                "toolCallEnd",
                "contextCompacted",
                "textDelta",
                "turnComplete"
            ]
        );
        let (_, before, after, _) = compacted(&events)[0];
        assert!(after < before);
        assert!(after <= 128_000, "{after} tokens do not fit the window");
        let lines = said(turns_asked(&rig.provider).last().unwrap());
        let tail = &lines[lines.len() - 4..];
        assert_eq!(tail[0], "user: look at both");
        assert_eq!(tail[1], "assistant: <c1 big> <c2 ro_echo>");
        assert!(tail[2].starts_with("result c1: aaaa"), "the start is kept");
        assert_eq!(tail[3], r#"result c2: {"n":1}"#);
        if tokens_of_history == 0 {
            assert!(
                tail[2].contains("bytes left out"),
                "shortened with a notice"
            );
        }
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_summary_that_is_empty_or_cut_or_fails_is_replaced_by_truncation() {
    // C7
    let scripts: [fn() -> Vec<Step>; 8] = [
        || vec![done()],
        || vec![text("  \n"), done()],
        || vec![text("\u{3000}\u{00a0}"), done()],
        || vec![reasoning("think"), done()],
        || vec![call("s1", "ro_echo", "{}"), done()],
        || vec![text("cut in the mid"), done_with(None, StopReason::Length)],
        || vec![text("cut in the mid")],
        || vec![text("half"), error(ProviderErrorKind::Overloaded, "busy")],
    ];
    for script in scripts {
        let provider =
            summarised_by(provider_with_window(1_000), script).always(|_| [text("ok"), done()]);
        let storage = storage_with(marked_turns(10, 50));
        let rig = Rig::resumed(provider, keeping(4), storage, STORED, |builder| builder).await;
        let events = rig.send("next").await;
        assert_eq!(
            kinds(&events),
            [
                "turnStarted",
                "warning",
                "contextCompacted",
                "textDelta",
                "turnComplete"
            ]
        );
        assert_eq!(compacted(&events)[0].0, CompactionMethod::Truncated);
        assert_eq!(summaries_asked(&rig.provider), 1, "asked once, not again");
        let lines = said(turns_asked(&rig.provider).last().unwrap());
        let summaries: Vec<&String> = lines
            .iter()
            .filter(|line| line.starts_with("summary: "))
            .collect();
        assert_eq!(summaries.len(), 1);
        assert!(
            summaries[0].contains("removed"),
            "it says what happened: {summaries:?}"
        );
        assert_eq!(
            markers(summaries[0]),
            Vec::<usize>::new(),
            "no old reply as a summary"
        );
        assert_eq!(
            markers(&lines.join("\n")),
            [18, 19, 20],
            "the newest units stay"
        );
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_summary_that_could_not_be_used_is_paid_for_all_the_same() {
    let cost = Usage {
        input_tokens: Some(700),
        output_tokens: Some(70),
        ..Usage::default()
    };
    let scripts: [fn(Usage) -> Vec<Step>; 3] = [
        |cost| vec![text("SUMMARY"), done_with(cost, None)],
        |cost| vec![text(" "), done_with(cost, None)],
        |cost| vec![text("cut"), done_with(cost, StopReason::Length)],
    ];
    for script in scripts {
        for by_hand in [false, true] {
            let provider = summarised_by(provider_with_window(1_000), move || script(cost))
                .always(|_| [text("ok"), done()]);
            let storage = storage_with(marked_turns(10, 50));
            let rig = Rig::resumed(provider, keeping(4), storage, STORED, |builder| builder).await;
            if by_hand {
                rig.session.compact().await.unwrap();
            }
            let events = rig.send("next").await;
            let last = &events.last().unwrap().kind;
            let AgentEventKind::TurnComplete { session_usage, .. } = last else {
                panic!("{events:?}");
            };
            assert_eq!(
                (session_usage.input_tokens, session_usage.output_tokens),
                (Some(700), Some(70))
            );
            rig.epilogue().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_second_compaction_knows_all_that_the_first_one_kept() {
    // C9
    let rig = resumed(keeping(10), storage_with(marked_turns(20, 20))).await;
    rig.session.compact().await.unwrap();
    let first = rig.request(1);
    assert!(asks_for_summary(&first));
    let kept_from = markers(&all_said(&first)).len() + 1;
    assert_eq!(
        markers(&all_said(&first)),
        (1..kept_from).collect::<Vec<_>>()
    );

    for n in 41..=50 {
        rig.send(marked(n, 40).as_str()).await;
    }
    let before = said(turns_asked(&rig.provider).last().unwrap());
    assert_eq!(
        markers(&before.join("\n")),
        (kept_from..=50).collect::<Vec<_>>()
    );
    let outcome = rig.session.compact().await.unwrap();
    assert_eq!(outcome.method, Some(CompactionMethod::Summarized));
    let second = all_said(&rig.provider.last_request().unwrap());
    assert_eq!(
        second.matches("SUMMARY").count(),
        1,
        "the first summary is read"
    );
    rig.send("next").await;
    let after = said(turns_asked(&rig.provider).last().unwrap());
    let kept = markers(&after.join("\n"));
    let gone: Vec<usize> = (kept_from..kept[0]).collect();
    assert_eq!(
        markers(&second),
        gone,
        "each message that goes is read once"
    );
    assert_eq!(
        kept,
        (kept[0]..=50).collect::<Vec<_>>(),
        "nothing between is lost"
    );
    let summaries = after
        .iter()
        .filter(|line| line.starts_with("summary: "))
        .count();
    assert_eq!(summaries, 1);
    assert_eq!(
        outcome.messages_removed as usize,
        before.len() + 2 - after.len()
    );
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_compaction_survives_a_restart() {
    // C11
    for answer in [vec!["SUMMARY"], vec![]] {
        let scripted = answer.clone();
        let provider = summarised_by(provider(), move || {
            let mut steps: Vec<Step> = scripted.iter().map(|piece| text(*piece)).collect();
            steps.push(done());
            steps
        })
        .always(|_| [text("ok"), done()]);
        let storage = storage_with(marked_turns(20, 20));
        let mut rig = Rig::resumed(provider, keeping(6), storage, STORED, |builder| builder).await;
        rig.session.compact().await.unwrap();
        rig.send("before").await;
        let mut expected = said(&rig.provider.last_request().unwrap());
        assert!(markers(&expected.join("\n")).len() < 20, "{expected:?}");
        for n in 0..3 {
            rig.reopen().await;
            let next = format!("after {n}");
            rig.send(next.as_str()).await;
            expected.extend(["assistant: ok".to_owned(), format!("user: {next}")]);
            assert_eq!(said(&rig.provider.last_request().unwrap()), expected);
        }
        assert_eq!(summaries_asked(&rig.provider), 1, "no new compaction");
        let history = rig.agent.session_history(STORED, None, None).await.unwrap();
        let users_and_answers = history
            .events
            .iter()
            .filter(|event| event.is_message())
            .count();
        assert_eq!(users_and_answers, 40 + 8, "the whole history can be shown");
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_note_lives_exactly_as_long_as_its_message() {
    // C12
    let mut history = marked_turns(2, 100);
    history.push(user_message(0, &marked(101, 100)));
    history.push(cut_message(0, "CUT-A", Interruption::Cancelled));
    history.extend(marked_turns(3, 20));
    history.push(user_message(0, &marked(102, 20)));
    history.push(cut_message(0, "CUT-B", Interruption::Failed));
    history.extend(marked_turns(1, 20));
    let provider = summarised_by(provider(), || vec![done()]).always(|_| [text("ok"), done()]);
    let rig = Rig::resumed(
        provider,
        keeping(8),
        storage_with(history),
        STORED,
        |builder| builder,
    )
    .await;
    rig.send("look").await;
    let whole = rig.request(1);
    let mut remaining = Vec::new();
    for round in 0..3 {
        rig.session.compact().await.unwrap();
        rig.send(format!("round {round}").as_str()).await;
        let request = rig.provider.last_request().unwrap();
        assert_eq!(request.system, whole.system, "the system prompt is whole");
        let lines = said(&request);
        for (cut, note) in [
            ("assistant: CUT-A", "note: [此消息因用户取消而中断]"),
            ("assistant: CUT-B", "note: [此消息因错误而中断]"),
        ] {
            let at = lines.iter().position(|line| line == cut);
            let notes = lines.iter().filter(|line| *line == note).count();
            assert_eq!(notes, usize::from(at.is_some()), "{lines:?}");
            if let Some(at) = at {
                assert_eq!(lines[at + 1], note);
            }
        }
        remaining.push(
            lines
                .iter()
                .filter(|line| line.starts_with("note: "))
                .count(),
        );
    }
    assert_eq!(remaining[0], 1, "one note went, one stayed: {remaining:?}");
    assert_eq!(remaining[2], 0, "{remaining:?}");
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn the_note_of_a_message_that_is_kept_alone_is_kept_too() {
    // C12: a turn that failed, was run again, and fills the context with its rounds
    let mut history = marked_turns(2, 50);
    history.push(user_message(0, "The task."));
    history.push(youyou_agent::testing::metadata(
        0,
        youyou_agent::SessionMetadata::TurnInterrupted {
            interruption: Interruption::Failed,
        },
    ));
    for round in 0..12 {
        history.extend(tool_round(round, &"o".repeat(400)));
    }
    history.push(assistant_message(0, [text_part("Done.")]));
    let rig = resumed(keeping(3), storage_with(history)).await;
    rig.session.compact().await.unwrap();
    rig.send("next").await;
    let lines = said(&rig.provider.last_request().unwrap());
    assert_eq!(
        lines[1..3],
        ["user: The task.", "note: [此消息因错误而中断]"],
        "{lines:?}"
    );
    rig.epilogue().await;
}
