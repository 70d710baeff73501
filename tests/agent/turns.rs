//! Chapter 5.1: the turn loop.

use std::sync::Arc;

use serde_json::json;
use youyou_agent::testing::{
    RecordingTool, ScriptedProvider, Step, call, collect, done, done_with, kinds, shape, text,
    text_model, text_of, wait,
};
use youyou_agent::{
    AfterToolUse, AgentEventKind, BeforeToolUse, ContentBlock, ErrorCode, HookOutcome, SendOptions,
    SessionState, SkillDefinition, Tap, TurnEnd, TurnStart, TurnStatus, Usage, UserInput,
};

use crate::probe::{Lines, Probe};
use crate::rig::{MODEL, Rig, config, provider};
use crate::said::stored_lines;
use crate::told::{cancel_at, read_until, told};

#[tokio::test(start_paused = true)]
async fn a_plain_answer_streams_and_completes() {
    let rig = Rig::new(provider().reply([text("Hel"), text("lo"), done()])).await;
    let events = rig.send("hi").await;
    assert_eq!(
        kinds(&events),
        ["turnStarted", "textDelta", "textDelta", "turnComplete"]
    );
    assert_eq!(text_of(&events), "Hello");
    let AgentEventKind::TurnComplete {
        status,
        error,
        assistant_output,
        ..
    } = &events.last().unwrap().kind
    else {
        panic!("{events:?}");
    };
    assert_eq!(*status, TurnStatus::Completed);
    assert_eq!(*error, None);
    assert_eq!(**assistant_output, *"Hello");
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_tool_round_goes_back_to_the_model() {
    let tool = RecordingTool::read_only("ro_echo").echo();
    let log = tool.log().clone();
    let provider = provider()
        .reply([
            call("c1", "ro_echo", json!({"text": "x"}).to_string()),
            done(),
        ])
        .reply([text("done"), done()]);
    let rig = Rig::with(provider, config(), |builder| builder.tool(tool)).await;
    let events = rig.send("use it").await;
    assert_eq!(
        shape(&events),
        [
            "turnStarted",
            "toolCallStart",
            "toolCallEnd",
            "textDelta",
            "turnComplete"
        ]
    );
    assert_eq!(log.inputs().len(), 1);
    assert_eq!(rig.provider.request_count(), 2);
    assert_eq!(
        stored_lines(&rig.stored()),
        [
            "created: use it",
            "user: use it",
            "assistant: <c1 ro_echo>",
            "call c1",
            r#"result c1: {"text":"x"}"#,
            "assistant: done"
        ]
    );
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn the_steps_of_a_turn_come_in_the_documents_order() {
    let lines = Lines::default();
    let plugin = {
        let lines = lines.clone();
        Probe::tapping("p", move |hooks| {
            let log = |name: &'static str| {
                let lines = lines.clone();
                move || lines.add(name)
            };
            let (start, end) = (log("TurnStart"), log("TurnEnd"));
            let (before, after) = (log("BeforeToolUse"), log("AfterToolUse"));
            hooks.turn_start("t", move |_: TurnStart| {
                start();
                async { Ok(HookOutcome::Continue) }
            });
            hooks.before_tool_use("t", move |_: BeforeToolUse| {
                before();
                async { Ok(HookOutcome::Continue) }
            });
            hooks.after_tool_use("t", move |_: AfterToolUse| {
                after();
                async { Ok(HookOutcome::Continue) }
            });
            hooks.turn_end("t", move |_: TurnEnd| {
                end();
                async { Ok(HookOutcome::Continue) }
            });
        })
    };
    let tool = {
        let lines = lines.clone();
        RecordingTool::read_only("ro_echo").computing(move |_| {
            lines.add("tool");
            Ok("ok".into())
        })
    };
    let answers = lines.clone();
    let provider = provider().intercept(move |request| {
        answers.add(format!("model with {} messages", request.messages.len()));
        None::<Vec<Step>>
    });
    provider.queue([call("c1", "ro_echo", "{}"), done()]);
    provider.queue([text("done"), done()]);
    let rig = Rig::with(provider, config(), |builder| {
        builder.tool(tool).plugin(plugin)
    })
    .await;
    rig.send("hi").await;
    assert_eq!(
        lines.all(),
        [
            "TurnStart",
            "model with 1 messages",
            "BeforeToolUse",
            "tool",
            "AfterToolUse",
            "model with 3 messages",
            "TurnEnd",
        ]
    );
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn usage_is_summed_over_the_turn_and_the_session() {
    let cost = |input, output| Usage {
        input_tokens: Some(input),
        output_tokens: Some(output),
        ..Usage::default()
    };
    let provider = provider()
        .reply([call("c1", "ro_echo", "{}"), done_with(cost(10, 1), None)])
        .reply([text("a"), done_with(cost(20, 2), None)])
        .reply([text("b"), done()])
        .reply([text("c"), done_with(cost(40, 4), None)]);
    let mut rig = Rig::with(provider, config(), |builder| {
        builder.tool(RecordingTool::read_only("ro_echo"))
    })
    .await;
    assert_eq!(costs(&rig.send("1").await), (cost(30, 3), cost(30, 3)));
    assert_eq!(costs(&rig.send("2").await), (Usage::default(), cost(30, 3)));
    rig.reopen().await;
    assert_eq!(costs(&rig.send("3").await), (cost(40, 4), cost(70, 7)));
    rig.epilogue().await;
}

fn costs(events: &[youyou_agent::AgentEvent]) -> (Usage, Usage) {
    match &events.last().unwrap().kind {
        AgentEventKind::TurnComplete {
            usage,
            session_usage,
            ..
        } => (*usage, *session_usage),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_turn_tells_what_it_cost() {
    let usage = Usage {
        input_tokens: Some(5),
        ..Usage::default()
    };
    let provider = provider()
        .reply([call("c1", "ro_echo", "{}"), done_with(usage, None)])
        .reply([text("a"), wait()]);
    let rig = Rig::with(provider, config(), |builder| {
        builder.tool(RecordingTool::read_only("ro_echo"))
    })
    .await;
    let turn = rig.session.send("hi").unwrap();
    let events = cancel_at(turn, "a").await;
    let AgentEventKind::TurnCancelled { usage: told } = events.last().unwrap().kind else {
        panic!("{events:?}");
    };
    assert_eq!(told, usage);
    let outcome = rig.agent.turn(&events[0].turn_id).unwrap().outcome().await;
    assert_eq!(
        (outcome.status, outcome.usage),
        (TurnStatus::Cancelled, usage)
    );
    assert_eq!(outcome.last_sequence, events.last().unwrap().sequence);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_refused_send_leaves_no_trace() {
    // 5.1: the five refusals.
    let skill = SkillDefinition {
        name: "commit".into(),
        display_name: "Commit".into(),
        description: "Writes a commit message.".into(),
        prompt: "Write it.".into(),
        required_tools: Vec::new(),
        allow_implicit_invocation: false,
    };
    let provider = ScriptedProvider::new("scripted").model(text_model(MODEL));
    let rig = Rig::with(provider, config(), |builder| builder.skill(skill)).await;
    let mut events = rig.agent.subscribe();
    let before = rig.session.info();
    let png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let refusals: [(UserInput, SendOptions, ErrorCode); 6] = [
        ("".into(), SendOptions::default(), ErrorCode::InvalidInput),
        (
            " \n\t".into(),
            SendOptions::default(),
            ErrorCode::InvalidInput,
        ),
        (
            Vec::new().into(),
            SendOptions::default(),
            ErrorCode::InvalidInput,
        ),
        (
            vec![ContentBlock::image("image/png", png)].into(),
            SendOptions::default(),
            ErrorCode::ContentNotSupported,
        ),
        (
            "/comit now".into(),
            SendOptions::default(),
            ErrorCode::SkillNotFound,
        ),
        (
            "hi".into(),
            on_model("no-such-model"),
            ErrorCode::ModelNotSupported,
        ),
    ];
    for (input, options, code) in refusals {
        let refused = rig.session.send_with(input, options).unwrap_err();
        assert_eq!(refused.code, code, "{refused}");
        assert_eq!(rig.session.info(), before);
    }
    assert!(events.try_next().is_none());
    assert!(rig.storage.session_ids().is_empty());
    assert_eq!(rig.provider.request_count(), 0);

    // The sixth, while a turn runs: the turn does not notice.
    rig.provider.queue([text("a"), wait()]);
    let turn = rig.session.send("hi").unwrap();
    rig.provider.asked(1).await;
    for input in ["second", "", "/comit"] {
        let refused = rig.session.send(input).unwrap_err();
        assert_eq!(refused.code, ErrorCode::SessionBusy, "{refused}");
        assert!(refused.retryable);
    }
    assert_eq!(
        rig.session.retry_turn().unwrap_err().code,
        ErrorCode::SessionBusy
    );
    let told_events = cancel_at(turn, "a").await;
    assert_eq!(told(&told_events), ["started", "text 0: a", "cancelled"]);
    rig.epilogue().await;
}

fn on_model(model_id: &str) -> SendOptions {
    SendOptions {
        model_id: Some(model_id.to_owned()),
        ..SendOptions::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_two_sends_at_the_same_instant_one_is_accepted() {
    // D14
    let rig = Rig::new(provider().always(|_| [wait()])).await;
    for round in 0..500 {
        let barrier = Arc::new(tokio::sync::Barrier::new(2));
        let tasks: Vec<_> = (0..2)
            .map(|_| {
                let (session, barrier) = (rig.session.clone(), Arc::clone(&barrier));
                tokio::spawn(async move {
                    barrier.wait().await;
                    session.send("hi")
                })
            })
            .collect();
        let mut accepted = Vec::new();
        for task in tasks {
            match task.await.unwrap() {
                Ok(turn) => accepted.push(turn),
                Err(refused) => assert_eq!(refused.code, ErrorCode::SessionBusy),
            }
        }
        assert_eq!(accepted.len(), 1, "round {round}");
        let turn = accepted.remove(0);
        assert!(turn.cancel());
        assert_eq!(told(&collect(turn).await), ["started", "cancelled"]);
    }
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn send_returns_at_once_and_everything_later_is_told() {
    // 5.1: TurnStarted is first even where the first hook hangs.
    let plugin = Probe::tapping("p", |hooks| {
        hooks.turn_start(Tap::named("t").no_limit(), |_: TurnStart| {
            std::future::pending()
        });
    });
    let rig = Rig::with(provider(), config(), |builder| builder.plugin(plugin)).await;
    let mut turn = rig.session.send("hi").unwrap();
    let events = read_until(&mut turn, "started").await;
    assert_eq!(events.len(), 1);
    assert_eq!(rig.session.info().state, SessionState::Running);
    // The hook hangs for ever and may: its tap says so. Only a shutdown ends it.
    let report = rig.agent.shutdown().await;
    assert_eq!(report.problems.len(), 1, "{report:?}");
    assert_eq!(told(&collect(turn).await), ["cancelled"]);
}
