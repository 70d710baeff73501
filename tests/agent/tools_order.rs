//! Chapters 3.6 and 5.4: what is told of a call, and that nothing is shown before it is stored.

use futures_util::StreamExt as _;
use serde_json::json;
use youyou_agent::testing::{
    Fault, FaultySessions, Gate, InMemorySessions, RecordingTool, SessionOperation, When, call,
    collect, done, text,
};
use youyou_agent::{AgentEvent, AgentEventKind, ToolDefinition, ToolHandler, Turn};

use crate::rig::{Rig, config, provider};
use crate::told::told;

/// What a turn has told by now: readers never wait for what is there.
async fn by_now(turn: &mut Turn) -> Vec<AgentEvent> {
    let mut events = Vec::new();
    while let Some(Some(event)) = futures_util::FutureExt::now_or_never(turn.next()) {
        events.push(event);
    }
    events
}

#[tokio::test(start_paused = true)]
async fn neither_a_call_nor_its_result_is_shown_before_it_is_stored() {
    // Appends of the turn: the message, the answer, the call, its result.
    for (nth, shown) in [
        (3, ["started"].as_slice()),
        (4, ["started", "start c1 tool"].as_slice()),
    ] {
        let storage = InMemorySessions::new();
        let wrapped = FaultySessions::new(storage.clone());
        let writing = Gate::closed();
        wrapped.faults().inject(
            SessionOperation::Append,
            When::Nth(nth),
            Fault::Gate(writing.clone()),
        );
        let tool = RecordingTool::read_only("tool").answering("out");
        let log = tool.log().clone();
        let provider = provider()
            .reply([call("c1", "tool", "{}"), done()])
            .reply([text("ok"), done()]);
        let rig = Rig::over(provider, config(), storage, wrapped, |b| b.tool(tool)).await;
        let mut turn = rig.session.send("hi").unwrap();
        writing.arrived(1).await;
        let mut events = by_now(&mut turn).await;
        assert_eq!(told(&events), shown);
        assert_eq!(log.inputs().len(), nth - 3, "it starts once it is stored");
        writing.open();
        events.extend(collect(turn).await);
        assert_eq!(
            told(&events),
            [
                "started",
                "start c1 tool",
                "end c1: out",
                "text 1: ok",
                "completed: ok"
            ]
        );
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_call_is_not_shown_before_its_result_is_stored() {
    let storage = InMemorySessions::new();
    let wrapped = FaultySessions::new(storage.clone());
    let writing = Gate::closed();
    let fault = Fault::Gate(writing.clone());
    let faults = wrapped.faults();
    faults.inject(SessionOperation::Append, When::Nth(3), fault);
    let provider = provider()
        .reply([call("c1", "nope", "{}"), done()])
        .reply([text("ok"), done()]);
    let rig = Rig::over(provider, config(), storage, wrapped, |builder| builder).await;
    let mut turn = rig.session.send("hi").unwrap();
    writing.arrived(1).await;
    assert_eq!(told(&by_now(&mut turn).await), ["started"]);
    writing.open();
    collect(turn).await;
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn events_of_tools_carry_the_step_of_the_answer_that_asked_for_them() {
    let provider = provider()
        .reply([call("c1", "tool", "{}"), call("c2", "nope", "{}"), done()])
        .reply([call("c3", "tool", "{}"), done()])
        .reply([text("ok"), done()]);
    let rig = Rig::with(provider, config(), |builder| {
        builder.tool(RecordingTool::mutating("tool"))
    })
    .await;
    let events = rig.send("go").await;
    let steps: Vec<(String, u32)> = events
        .iter()
        .filter_map(|event| match &event.kind {
            AgentEventKind::ToolCallStart { call_id, step, .. } => {
                Some((format!("start {call_id}"), *step))
            }
            AgentEventKind::ToolCallEnd { call_id, step, .. } => {
                Some((format!("end {call_id}"), *step))
            }
            AgentEventKind::TextDelta { delta, step, .. } => Some((delta.clone(), *step)),
            _ => None,
        })
        .collect();
    let expected = [
        ("start c1", 0),
        ("end c1", 0),
        ("start c2", 0),
        ("end c2", 0),
        ("start c3", 1),
        ("end c3", 1),
        ("ok", 2),
    ];
    assert_eq!(steps, expected.map(|(what, step)| (what.to_owned(), step)));
    rig.epilogue().await;
}

/// A tool that is never called, with this definition.
struct Described(ToolDefinition);

#[async_trait::async_trait]
impl ToolHandler for Described {
    fn definition(&self) -> ToolDefinition {
        self.0.clone()
    }

    async fn call(
        &self,
        _: youyou_agent::ToolInput,
        _: youyou_agent::ToolContext,
    ) -> Result<youyou_agent::ToolOutput, youyou_agent::ToolError> {
        Ok("not called".into())
    }
}

#[tokio::test(start_paused = true)]
async fn name_description_and_schema_of_a_tool_are_part_of_the_estimate() {
    // 40 characters are 10 tokens.
    let tokens = async |name: &str, description: &str, schema: serde_json::Value| {
        let settings = youyou_agent::AgentConfig {
            tool_definitions_in_prompt: false,
            ..config()
        };
        let provider = provider().always(|_| [text("okay"), done()]);
        let tool = Described(ToolDefinition::new(name, description, schema));
        let rig = Rig::with(provider, settings, |builder| builder.tool(tool)).await;
        rig.send("hi").await;
        let tokens = rig.session.info().context_tokens;
        rig.epilogue().await;
        tokens
    };
    let plain = json!({ "type": "object" });
    let base = tokens("t", "d", plain.clone()).await;
    let long = "x".repeat(41);
    assert_eq!(tokens(&long, "d", plain.clone()).await, base + 10);
    assert_eq!(tokens("t", &long, plain).await, base + 10);
    let described = json!({ "type": "object", "title": "x".repeat(29) });
    // `,"title":""` has 11 characters.
    assert_eq!(tokens("t", "d", described).await, base + 10);
}
