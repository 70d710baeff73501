//! Requirements 3.5: stages and `before`, observers, and what every payload carries.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use youyou_agent::testing::{RecordingTool, call, done, error, text};
use youyou_agent::{
    AfterToolUse, BeforeCompact, BeforeToolUse, ContentBlock, ErrorCode, HookOutcome, HookReport,
    ProviderErrorKind, SessionEnd, SessionStart, Tap, TurnEnd, TurnOrigin, TurnStart,
    TurnStartChange,
};

use crate::hooks::Kept;
use crate::look::assert_completed;
use crate::probe::{Lines, Probe};
use crate::rig::{Rig, config, provider};
use crate::said::{said, stored_lines};

type Spec = (&'static str, i32, &'static [&'static str]);

/// A plugin whose `TurnStart` taps note their names.
fn noting(id: &'static str, lines: &Lines, taps: Vec<Spec>) -> Probe {
    let lines = lines.clone();
    Probe::tapping(id, move |hooks| {
        for (name, stage, before) in &taps {
            let lines = lines.clone();
            let tap = before
                .iter()
                .fold(Tap::named(*name).stage(*stage), |tap, before| {
                    tap.before(*before)
                });
            let name = *name;
            hooks.turn_start(tap, move |_| {
                lines.add(name);
                async { Ok(HookOutcome::Continue) }
            });
        }
    })
}

async fn order_of(first: Vec<Spec>, second: Vec<Spec>) -> Result<Vec<String>, String> {
    let lines = Lines::default();
    let (one, two) = (noting("one", &lines, first), noting("two", &lines, second));
    let built = youyou_agent::AgentBuilder::new(config())
        .provider(provider().always(|_| [text("ok"), done()]))
        .plugin(one)
        .plugin(two)
        .build()
        .await;
    match built {
        Ok(agent) => {
            let session = agent
                .create_session(youyou_agent::SessionConfig::default())
                .await
                .unwrap();
            session.send("hi").unwrap().outcome().await;
            Ok(lines.all())
        }
        Err(error) => {
            assert_eq!(error.code, ErrorCode::InvalidConfig);
            Err(error.message)
        }
    }
}

#[tokio::test(start_paused = true)]
async fn stages_and_before_decide_and_otherwise_the_order_of_registration() {
    let order = order_of(
        vec![("a", 0, &[]), ("b", 5, &[]), ("c", -1, &[])],
        vec![("d", 0, &[]), ("e", -1, &[]), ("f", 5, &["b"])],
    )
    .await;
    assert_eq!(order.unwrap(), ["c", "e", "a", "d", "f", "b"]);
    let order = order_of(
        vec![("a", 0, &[]), ("b", 0, &[])],
        vec![("c", 0, &["a"]), ("d", 0, &["nobody"])],
    )
    .await;
    assert_eq!(order.unwrap(), ["b", "c", "a", "d"]);
}

#[tokio::test(start_paused = true)]
async fn an_order_that_is_impossible_fails_the_build_and_names_the_taps() {
    for (first, second) in [
        (
            vec![("a", 0, &["b"] as &[_])],
            vec![("b", 0, &["a"] as &[_])],
        ),
        (vec![("a", 1, &["b"])], vec![("b", 0, &[])]),
    ] {
        let message = order_of(first, second).await.unwrap_err();
        assert!(
            message.contains("\"a\"") && message.contains("\"b\"") && message.contains("TurnStart"),
            "{message}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_observer_sees_every_call_of_a_handler_and_changes_nothing() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&seen);
    let watcher = Probe::tapping("watcher", move |hooks| {
        let kept = Arc::clone(&kept);
        hooks.observe(move |call| {
            let report = match call.report {
                HookReport::Continued => "continued".to_owned(),
                HookReport::Changed => "changed".to_owned(),
                HookReport::Aborted(reason) => format!("aborted: {reason}"),
                HookReport::Faulted(fault) => format!("faulted: {fault}"),
                other => panic!("{other:?}"),
            };
            kept.lock().unwrap().push(format!(
                "{} {}/{} {} ms {report}",
                call.hook,
                call.plugin_id,
                call.tap,
                call.duration.as_millis()
            ));
        });
        hooks.observe(|_| panic!("an observer that panics is passed over"));
    });
    let worker = Probe::tapping("worker", |hooks| {
        hooks.turn_start("slow", |_| async {
            tokio::time::sleep(Duration::from_millis(30)).await;
            Ok(HookOutcome::Continue)
        });
        hooks.turn_start("section", |_| async {
            let mut change = TurnStartChange::default();
            change.prompt_sections.push("more".into());
            Ok(HookOutcome::ContinueWith(change))
        });
        hooks.before_tool_use("no", |_| async { Ok(HookOutcome::Abort("not now".into())) });
        hooks.turn_end("broken", |_| async {
            Err(youyou_agent::HookError::new("out of order"))
        });
    });
    let provider = provider()
        .reply([call("c1", "ro_echo", "{}"), done()])
        .reply([text("ok"), done()]);
    let rig = Rig::with(provider, config(), |builder| {
        builder
            .plugin(worker)
            .plugin(watcher)
            .tool(RecordingTool::read_only("ro_echo"))
    })
    .await;
    assert_completed(&rig.send("hi").await, "ok");
    assert_eq!(
        *seen.lock().unwrap(),
        [
            "TurnStart worker/slow 30 ms continued",
            "TurnStart worker/section 0 ms changed",
            "BeforeToolUse worker/no 0 ms aborted: not now",
            "TurnEnd worker/broken 0 ms faulted: out of order",
        ]
    );
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn every_payload_tells_whose_it_is_and_the_config_of_its_plugin() {
    let starts = Kept::<SessionStart>::new();
    let ends = Kept::<SessionEnd>::new();
    let turns = Kept::<TurnStart>::new();
    let turn_ends = Kept::<TurnEnd>::new();
    let befores = Kept::<BeforeToolUse>::new();
    let afters = Kept::<AfterToolUse>::new();
    let compacts = Kept::<BeforeCompact>::new();
    let kept = (
        starts.clone(),
        ends.clone(),
        turns.clone(),
        turn_ends.clone(),
        befores.clone(),
        afters.clone(),
        compacts.clone(),
    );
    let probe = Probe::tapping("p", move |hooks| {
        let (a, b, c, d, e, f, g) = kept.clone();
        hooks.session_start("a", move |payload| {
            a.keep(payload);
            async { Ok(HookOutcome::Continue) }
        });
        hooks.session_end("b", move |payload| {
            b.keep(payload);
            async { Ok(HookOutcome::Continue) }
        });
        hooks.turn_start("section", |_| async {
            let mut change = TurnStartChange::default();
            change.prompt_sections.push("one".into());
            Ok(HookOutcome::ContinueWith(change))
        });
        hooks.turn_start("c", move |payload| {
            c.keep(payload);
            async { Ok(HookOutcome::Continue) }
        });
        hooks.turn_end("d", move |payload| {
            d.keep(payload);
            async { Ok(HookOutcome::Continue) }
        });
        hooks.before_tool_use("e", move |payload| {
            e.keep(payload);
            async { Ok(HookOutcome::ContinueWith(json!({ "used": true }))) }
        });
        hooks.after_tool_use("f", move |payload| {
            f.keep(payload);
            async { Ok(HookOutcome::Continue) }
        });
        hooks.before_compact("g", move |payload| {
            g.keep(payload);
            async { Ok(HookOutcome::Continue) }
        });
    });
    let provider = provider()
        .reply([call("c1", "ro_echo", "{}"), done()])
        .always(|_| [text("fine"), done()]);
    let registered = json!({ "level": 3 });
    let rig = Rig::with(provider, config(), |builder| {
        builder
            .plugin_with_config(probe, registered.clone())
            .tool(RecordingTool::read_only("ro_echo").answering("out"))
    })
    .await;
    let turn = rig.session.send("hi").unwrap();
    let turn_id = turn.id().to_owned();
    turn.outcome().await;
    for _ in 0..12 {
        rig.send("word ".repeat(50)).await;
    }
    rig.session.compact().await.unwrap();
    let id = rig.session.id().to_owned();
    rig.session.close().await.unwrap();

    let start = &starts.all()[0];
    assert_eq!((&*start.session_id, start.resumed), (&*id, false));
    let end = &ends.all()[0];
    assert_eq!((&*end.session_id, end.message_count), (&*id, 27));
    let turn = &turns.all()[0];
    assert_eq!((&*turn.session_id, &*turn.turn_id), (&*id, &*turn_id));
    assert_eq!(
        (&*turn.user_input, &turn.sections[..], turn.origin),
        (
            &[ContentBlock::text("hi")][..],
            &["one".to_owned()][..],
            TurnOrigin::Send
        )
    );
    let turn_end = &turn_ends.all()[0];
    assert_eq!(
        (
            &*turn_end.session_id,
            &*turn_end.turn_id,
            &*turn_end.assistant_output
        ),
        (&*id, &*turn_id, "fine")
    );
    let before = &befores.all()[0];
    assert_eq!(
        (
            &*before.session_id,
            &*before.turn_id,
            &*before.call_id,
            &*before.tool_name,
            &*before.arguments
        ),
        (&*id, &*turn_id, "c1", "ro_echo", &json!({}))
    );
    let after = &afters.all()[0];
    assert_eq!(
        (
            &*after.session_id,
            &*after.turn_id,
            &*after.call_id,
            &*after.tool_name,
            &*after.arguments,
            &*after.output,
            after.duration_ms,
            after.success
        ),
        (
            &*id,
            &*turn_id,
            "c1",
            "ro_echo",
            &json!({ "used": true }),
            "out",
            0,
            true
        )
    );
    let compact = &compacts.all()[0];
    assert_eq!((&*compact.session_id, compact.message_count), (&*id, 28));
    assert!(
        compact.estimated_tokens > 600,
        "{}",
        compact.estimated_tokens
    );
    for config in [
        &start.plugin_config,
        &end.plugin_config,
        &turn.plugin_config,
        &turn_end.plugin_config,
        &before.plugin_config,
        &after.plugin_config,
        &compact.plugin_config,
    ] {
        assert_eq!(**config, registered);
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_is_told_that_the_user_cancelled_and_is_waited_for() {
    let lines = Lines::default();
    let seen = lines.clone();
    let probe = Probe::tapping("asks", move |hooks| {
        let seen = seen.clone();
        hooks.before_tool_use(
            Tap::named("person").no_limit(),
            move |payload: BeforeToolUse| {
                let seen = seen.clone();
                async move {
                    payload.cancel_requested().cancelled().await;
                    seen.add("cancel seen");
                    Ok(HookOutcome::Abort("nobody answered".into()))
                }
            },
        );
    });
    let provider = provider().reply([call("c1", "ro_echo", "{}"), done()]);
    let rig = Rig::with(provider, config(), |builder| {
        builder
            .plugin(probe)
            .tool(RecordingTool::read_only("ro_echo"))
    })
    .await;
    let turn = rig.session.send("hi").unwrap();
    tokio::time::sleep(Duration::from_millis(10)).await;
    let began = tokio::time::Instant::now();
    assert!(turn.cancel());
    turn.outcome().await;
    assert!(began.elapsed() < Duration::from_millis(10));
    assert_eq!(lines.all(), ["cancel seen"]);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_change_of_turn_start_holds_when_the_turn_runs_again() {
    let origins = Lines::default();
    let seen = origins.clone();
    let probe = Probe::tapping("redact", move |hooks| {
        let seen = seen.clone();
        hooks.turn_start("secrets", move |turn: TurnStart| {
            seen.add(format!("{:?}", turn.origin));
            async move {
                let retried = turn.origin == TurnOrigin::Retry;
                let changed = vec![ContentBlock::text("redacted")];
                Ok(if retried {
                    let mut change = TurnStartChange::default();
                    change.user_input = Some(changed);
                    HookOutcome::ContinueWith(change)
                } else {
                    HookOutcome::Continue
                })
            }
        });
    });
    let provider = provider()
        .reply([error(ProviderErrorKind::Auth, "no key")])
        .reply([text("ok"), done()]);
    let mut rig = Rig::with(provider, config(), |builder| builder.plugin(probe)).await;
    rig.send("secret").await;
    assert_completed(
        &youyou_agent::testing::collect(rig.session.retry_turn().unwrap()).await,
        "ok",
    );
    assert_eq!(origins.all(), ["Send", "Retry"]);
    assert_eq!(said(&rig.request(2)), ["user: redacted"]);
    assert_eq!(
        stored_lines(&rig.stored()),
        [
            "created: secret",
            "user: redacted",
            "interrupted: Failed",
            "head: 1",
            "assistant: ok"
        ]
    );
    rig.reopen().await;
    rig.provider.queue([text("and on"), done()]);
    rig.send("next").await;
    assert_eq!(
        said(&rig.request(3)),
        ["user: redacted", "assistant: ok", "user: next"]
    );
    rig.epilogue().await;
}
