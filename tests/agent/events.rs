//! Chapter 7: the envelope, the order, and what goes over the wire.

use serde_json::{Value, json};
use youyou_agent::testing::{
    Gate, RecordingTool, assert_event_invariants, call, collect, done, done_with, error, kinds,
    reasoning, text, text_of,
};
use youyou_agent::{AgentEvent, AgentEventKind, ProviderErrorKind, Usage};

use crate::rig::{Rig, config, provider};
use crate::told::{read_until, told};

/// An event as JSON, without what changes from run to run.
fn wire(event: &AgentEvent) -> Value {
    let mut wire = serde_json::to_value(event).unwrap();
    let fields = wire.as_object_mut().unwrap();
    for field in ["sessionId", "turnId", "timestamp"] {
        assert!(fields.remove(field).is_some(), "{field} is missing");
    }
    wire
}

#[tokio::test(start_paused = true)]
async fn every_event_is_one_flat_object_with_a_type() {
    let usage = Usage {
        input_tokens: Some(12),
        output_tokens: Some(3),
        ..Usage::default()
    };
    let provider = provider()
        .reply([
            reasoning("Hm."),
            text("Let me look."),
            call("c1", "ro_echo", r#"{"a":1}"#),
            done(),
        ])
        .reply([text("Done."), done_with(usage, None)])
        .reply([error(ProviderErrorKind::Auth, "the key is wrong")]);
    let tool = RecordingTool::read_only("ro_echo")
        .saying("half way")
        .computing(|_| {
            let mut output = youyou_agent::ToolOutput::text("seen");
            output.metadata = Some(json!({"rows": 2}));
            Ok(output)
        });
    let rig = Rig::with(provider, config(), |builder| builder.tool(tool)).await;
    let events = rig.send("hi").await;
    for event in &events {
        assert_eq!(&*event.session_id, rig.session.id());
        assert_eq!(event.turn_id, events[0].turn_id);
        assert!(
            event.timestamp > 1_600_000_000_000,
            "milliseconds since 1970"
        );
    }
    let mut last = wire(events.last().unwrap());
    let context = last
        .as_object_mut()
        .unwrap()
        .remove("contextTokens")
        .unwrap();
    assert!(context.as_u64().unwrap() > 0);
    let mut wires: Vec<Value> = events.iter().map(wire).collect();
    wires.pop();
    assert_eq!(
        wires,
        [
            json!({"type": "turnStarted", "sequence": 1}),
            json!({
                "type": "reasoningDelta", "sequence": 2, "firstSequence": 2,
                "step": 0, "delta": "Hm."
            }),
            json!({
                "type": "textDelta", "sequence": 3, "firstSequence": 3,
                "step": 0, "delta": "Let me look."
            }),
            json!({
                "type": "toolCallStart", "sequence": 4, "step": 0, "callId": "c1",
                "toolName": "ro_echo", "arguments": {"a": 1}
            }),
            json!({
                "type": "toolProgress", "sequence": 5, "callId": "c1", "message": "half way"
            }),
            json!({
                "type": "toolCallEnd", "sequence": 6, "step": 0, "callId": "c1",
                "toolName": "ro_echo", "output": "seen", "metadata": {"rows": 2},
                "durationMs": 0, "success": true
            }),
            json!({
                "type": "textDelta", "sequence": 7, "firstSequence": 7,
                "step": 1, "delta": "Done."
            }),
        ]
    );
    assert_eq!(
        last,
        json!({
            "type": "turnComplete", "sequence": 8, "status": "completed",
            "assistantOutput": "Done.",
            "usage": {"inputTokens": 12, "outputTokens": 3},
            "sessionUsage": {"inputTokens": 12, "outputTokens": 3},
            "contextWindow": 128_000
        })
    );
    let failed = rig.send("again").await;
    assert_eq!(
        wire(&failed[1]),
        json!({
            "type": "error", "sequence": 10,
            "error": {
                "code": "PROVIDER_ERROR", "message": "scripted: the key is wrong",
                "retryable": false, "source": "provider",
                "details": {"kind": {"type": "auth"}}
            }
        })
    );
    for event in events.iter().chain(&failed) {
        let there_and_back: AgentEvent =
            serde_json::from_value(serde_json::to_value(event).unwrap()).unwrap();
        assert_eq!(there_and_back, *event);
    }
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn numbers_rise_for_the_life_of_the_agent() {
    let mut rig = Rig::new(provider().always(|_| [text("a"), done()])).await;
    let mut events = rig.send("1").await;
    events.extend(rig.send("2").await);
    rig.reopen().await;
    events.extend(rig.send("3").await);
    assert_event_invariants(&events);
    let numbers: Vec<u64> = events.iter().map(|event| event.sequence).collect();
    assert_eq!(numbers, (1..=9).collect::<Vec<u64>>());
    assert_eq!(rig.session.info().last_sequence, 9);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_keeps_up_gets_every_delta_by_itself() {
    let rig = Rig::new(provider()).await;
    let answer = rig.provider.manual();
    let mut turn = rig.session.send("hi").unwrap();
    for piece in 0..200 {
        answer.text(piece.to_string());
        let events = read_until(&mut turn, &format!("text 0: {piece}")).await;
        if piece > 0 {
            assert_eq!(events.len(), 1);
        }
    }
    answer.done();
    collect(turn).await;
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_lags_gets_neighbouring_deltas_of_one_kind_coalesced_and_nothing_else() {
    let thinking = (0..500).map(|_| reasoning("t"));
    let first = (0..1_000).map(|_| text("ab"));
    let calls = [call("c1", "ro_echo", "{}"), done()];
    let second = (0..300).map(|_| text("c")).chain([done()]);
    let provider = provider()
        .reply(thinking.chain(first).chain(calls))
        .reply(second);
    let rig = Rig::with(provider, config(), |builder| {
        builder.tool(RecordingTool::read_only("ro_echo"))
    })
    .await;
    let turn = rig.session.send("hi").unwrap();
    turn.outcome().await;
    let events = collect(turn).await;
    assert_event_invariants(&events);
    assert!(
        events.len() < 300,
        "{} events for 1,800 deltas",
        events.len()
    );
    let mut shape = kinds(&events);
    shape.dedup();
    assert_eq!(
        shape,
        [
            "turnStarted",
            "reasoningDelta",
            "textDelta",
            "toolCallStart",
            "toolCallEnd",
            "textDelta",
            "turnComplete"
        ]
    );
    assert_eq!(
        text_of(&events),
        format!("{}{}", "ab".repeat(1_000), "c".repeat(300))
    );
    // Every number is there exactly once.
    let mut next = 1;
    for event in &events {
        let first = match &event.kind {
            AgentEventKind::TextDelta { first_sequence, .. }
            | AgentEventKind::ReasoningDelta { first_sequence, .. } => *first_sequence,
            _ => event.sequence,
        };
        assert_eq!(first, next);
        next = event.sequence + 1;
    }
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn coalesced_deltas_stay_below_the_limit_of_fast_delivery() {
    // F16: always below 8,192 bytes of JSON, whatever the characters cost.
    for unit in ["x", "\u{1}", "频", "\"", "😀"] {
        let unit = unit.to_owned();
        let pieces = (0..5_000).map({
            let unit = unit.clone();
            move |_| text(unit.clone())
        });
        let rig = Rig::new(provider().reply(pieces.chain([done()]))).await;
        let turn = rig.session.send("hi").unwrap();
        turn.outcome().await;
        let events = collect(turn).await;
        assert_event_invariants(&events);
        assert_eq!(text_of(&events), unit.repeat(5_000));
        for event in &events[..events.len() - 1] {
            let bytes = serde_json::to_string(event).unwrap().len();
            assert!(bytes < 8_192, "{bytes} bytes of {unit:?}");
        }
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_long_delta_is_numbered_as_several() {
    for unit in ["x", "频", "a\n", "a\u{7}"] {
        let long = unit.repeat(40_000 / unit.len());
        let rig = Rig::new(provider().reply([text(long.clone()), done()])).await;
        let events = rig.send("hi").await;
        assert_eq!(text_of(&events), long);
        let deltas = &events[1..events.len() - 1];
        assert!(deltas.len() >= 5, "{}", deltas.len());
        for event in deltas {
            assert!(serde_json::to_string(event).unwrap().len() < 8_192);
        }
        let stored = crate::said::stored_lines(&rig.stored());
        assert_eq!(
            stored[2],
            format!("assistant: {long}"),
            "stored as one text"
        );
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn progress_comes_between_start_and_end_only() {
    let config = youyou_agent::AgentConfig {
        tool_timeout_ms: 100,
        ..config()
    };
    // It goes on talking after its time was up.
    let tool = RecordingTool::read_only("slow")
        .saying("one")
        .until_timed_out()
        .saying("two");
    let log = tool.log().clone();
    let door = Gate::closed();
    let provider = provider().reply([call("c1", "slow", "{}"), done()]).reply([
        youyou_agent::testing::gate(&door),
        text("ok"),
        done(),
    ]);
    let rig = Rig::with(provider, config, |builder| builder.tool(tool)).await;
    let turn = rig.session.send("hi").unwrap();
    log.ended(1).await;
    door.open();
    let events = collect(turn).await;
    assert_event_invariants(&events);
    let told = told(&events);
    assert_eq!(told[..3], ["started", "start c1 slow", "progress c1: one"]);
    assert!(told[3].starts_with("failed c1 TOOL_TIMEOUT"), "{told:?}");
    assert_eq!(told[4..], ["text 1: ok", "completed: ok"]);
    rig.epilogue().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn progress_never_overtakes_the_end_of_its_call() {
    // A tool that was given up goes on talking from a thread of its own.
    let config = youyou_agent::AgentConfig {
        tool_timeout_ms: 2,
        ..config()
    };
    let rig = Rig::with(provider(), config, |builder| builder.tool(Chatterbox)).await;
    for _ in 0..50 {
        rig.provider.queue([call("c1", "chatterbox", "{}"), done()]);
        rig.provider.queue([text("ok"), done()]);
        rig.send("hi").await;
    }
    rig.epilogue().await;
}

struct Chatterbox;

#[async_trait::async_trait]
impl youyou_agent::ToolHandler for Chatterbox {
    fn definition(&self) -> youyou_agent::ToolDefinition {
        let parameters = json!({"type": "object"});
        youyou_agent::ToolDefinition::new("chatterbox", "Talks all the time.", parameters)
    }

    async fn call(
        &self,
        _input: youyou_agent::ToolInput,
        context: youyou_agent::ToolContext,
    ) -> Result<youyou_agent::ToolOutput, youyou_agent::ToolError> {
        while !context.timed_out.is_cancelled() {
            context.progress("and another thing".to_owned());
            tokio::task::yield_now().await;
        }
        for _ in 0..100 {
            context.progress("and finally".to_owned());
        }
        Ok("done".into())
    }
}
