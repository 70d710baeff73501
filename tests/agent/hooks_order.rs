//! Requirements 3.5: in which order handlers run, by stages, `before` and registration.

use std::sync::Arc;

use youyou_agent::testing::{RecordingTool, done, text};
use youyou_agent::{AgentBuilder, AgentError, ErrorCode, HookOutcome, Tap};

use crate::hooks_payloads::{one_call_then_fine, whole_life};
use crate::probe::{Lines, Probe};
use crate::rig::{Rig, config, provider};

/// Name, stage, and the names it must come before.
type Spec = (&'static str, i32, &'static [&'static str]);

fn tap((name, stage, before): Spec) -> Tap {
    let tap = Tap::named(name).stage(stage);
    before.iter().fold(tap, |tap, before| tap.before(*before))
}

/// A plugin whose `TurnStart` taps note their names.
fn noting(id: &'static str, lines: &Lines, taps: &'static [Spec]) -> Probe {
    let noted = lines.clone();
    Probe::tapping(id, move |hooks| {
        for spec in taps {
            let (lines, name) = (noted.clone(), spec.0);
            hooks.turn_start(tap(*spec), move |_| {
                lines.add(name);
                async { Ok(HookOutcome::Continue) }
            });
        }
    })
}

/// The order in which the taps of two plugins ran.
async fn order_of(one: &'static [Spec], two: &'static [Spec]) -> Vec<String> {
    let lines = Lines::default();
    let rig = Rig::with(
        provider().always(|_| [text("ok"), done()]),
        config(),
        |builder| {
            builder
                .plugin(noting("one", &lines, one))
                .plugin(noting("two", &lines, two))
        },
    )
    .await;
    rig.send("hi").await;
    lines.all()
}

#[tokio::test(start_paused = true)]
async fn lower_stages_run_first_and_ties_keep_the_order_of_registration() {
    let order = order_of(
        &[("a", 0, &[]), ("b", 5, &[]), ("c", -1, &[])],
        &[
            ("d", 0, &[]),
            ("e", -1, &[]),
            ("f", i32::MAX, &[]),
            ("g", i32::MIN, &[]),
        ],
    )
    .await;
    assert_eq!(order, ["g", "c", "e", "a", "d", "b", "f"]);
}

#[tokio::test(start_paused = true)]
async fn a_tap_that_must_come_before_another_is_moved_right_before_it_and_nothing_else_is() {
    let cases: [(&[Spec], &[Spec], &[&str]); 8] = [
        // Across plugins.
        (
            &[("a", 0, &[]), ("b", 0, &[])],
            &[("c", 0, &["a"])],
            &["c", "a", "b"],
        ),
        (
            &[("a", 0, &[]), ("b", 0, &[])],
            &[("c", 0, &["b"])],
            &["a", "c", "b"],
        ),
        // Of one that is registered later nothing has to be moved.
        (
            &[("a", 0, &["c"]), ("b", 0, &[])],
            &[("c", 0, &[])],
            &["a", "b", "c"],
        ),
        // Several names, and several taps of one name.
        (
            &[("a", 0, &[]), ("b", 0, &[]), ("c", 0, &[])],
            &[("d", 0, &["c", "a"])],
            &["d", "a", "b", "c"],
        ),
        (
            &[("a", 0, &[]), ("log", 0, &[])],
            &[("log", 0, &[]), ("b", 0, &["log"])],
            &["a", "b", "log", "log"],
        ),
        // A chain.
        (
            &[("a", 0, &[]), ("b", 0, &["a"])],
            &[("c", 0, &["b"]), ("d", 0, &[])],
            &["c", "b", "a", "d"],
        ),
        // Within a stage, and before one of a higher stage, where it is anyway.
        (
            &[("a", 1, &[]), ("b", 2, &[])],
            &[("c", 1, &["a", "b"]), ("d", 0, &[])],
            &["d", "c", "a", "b"],
        ),
        // Its own name means the other taps of that name.
        (
            &[("log", 0, &[]), ("a", 0, &[])],
            &[("b", 0, &["log", "b"])],
            &["b", "log", "a"],
        ),
    ];
    for (one, two, expected) in cases {
        assert_eq!(order_of(one, two).await, expected, "{one:?} {two:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_name_that_no_tap_of_the_hook_has_is_ignored() {
    let order = order_of(&[("a", 0, &[])], &[("b", 0, &["nobody", "two"])]).await;
    assert_eq!(order, ["a", "b"]);

    // A tap of that name at another hook is another tap.
    let lines = Lines::default();
    let noted = lines.clone();
    let elsewhere = Probe::tapping("p", move |hooks| {
        let (first, second, end) = (noted.clone(), noted.clone(), noted.clone());
        hooks.turn_start("first", move |_| {
            first.add("first");
            async { Ok(HookOutcome::Continue) }
        });
        hooks.turn_start(Tap::named("second").before("end"), move |_| {
            second.add("second");
            async { Ok(HookOutcome::Continue) }
        });
        hooks.turn_end(Tap::named("end").before("first"), move |_| {
            end.add("end");
            async { Ok(HookOutcome::Continue) }
        });
    });
    let provider = provider().always(|_| [text("ok"), done()]);
    let rig = Rig::with(provider, config(), |builder| builder.plugin(elsewhere)).await;
    rig.send("hi").await;
    assert_eq!(lines.all(), ["first", "second", "end"]);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn every_hook_has_its_handlers_in_order() {
    let lines = Lines::default();
    let noted = lines.clone();
    let probe = Probe::tapping("p", move |hooks| {
        macro_rules! late_before_early {
            ($($method:ident),*) => {$(
                for (name, stage) in [("late", 1), ("early", 0)] {
                    let lines = noted.clone();
                    hooks.$method(Tap::named(name).stage(stage), move |_| {
                        lines.add(format!("{} {name}", stringify!($method)));
                        async { Ok(HookOutcome::Continue) }
                    });
                }
            )*};
        }
        late_before_early!(
            session_start,
            turn_start,
            before_tool_use,
            after_tool_use,
            turn_end,
            before_compact,
            session_end
        );
    });
    let rig = Rig::with(one_call_then_fine(), config(), |builder| {
        builder
            .plugin(probe)
            .tool(RecordingTool::read_only("ro_echo"))
    })
    .await;
    whole_life(&rig).await;
    let mut order = lines.all();
    order.dedup();
    let mut seen = Vec::new();
    order.retain(|line| {
        let is_new = !seen.contains(line);
        seen.push(line.clone());
        is_new
    });
    assert_eq!(
        order,
        [
            "session_start early",
            "session_start late",
            "turn_start early",
            "turn_start late",
            "before_tool_use early",
            "before_tool_use late",
            "after_tool_use early",
            "after_tool_use late",
            "turn_end early",
            "turn_end late",
            "before_compact early",
            "before_compact late",
            "session_end early",
            "session_end late",
        ]
    );
}

/// What a build with these taps says, and what the plugins lived through.
async fn refused(one: &'static [Spec], two: &'static [Spec]) -> (AgentError, Vec<String>) {
    let (calls, lines) = (Lines::default(), Lines::default());
    let error = AgentBuilder::new(config())
        .provider(provider())
        .plugin(noting("one", &calls, one).logged_in(&lines))
        .plugin(noting("two", &calls, two).logged_in(&lines))
        .build()
        .await
        .unwrap_err();
    assert_eq!(calls.all(), Vec::<String>::new());
    (error, lines.all())
}

#[tokio::test(start_paused = true)]
async fn an_impossible_order_fails_the_build_and_names_the_taps_that_make_it_so() {
    let cases: [(&[Spec], &[Spec], &[&str]); 5] = [
        (
            &[("a", 0, &["b"]), ("innocent", 0, &[])],
            &[("b", 0, &["a"])],
            &["\"a\" of the plugin \"one\"", "\"b\" of the plugin \"two\""],
        ),
        (
            &[("a", 0, &["b"]), ("b", 0, &["c"])],
            &[("c", 0, &["a"]), ("innocent", 0, &["c"])],
            &[
                "\"a\" of the plugin \"one\"",
                "\"b\" of the plugin \"one\"",
                "\"c\" of the plugin \"two\"",
            ],
        ),
        // Through a stage.
        (
            &[("a", 1, &["b"]), ("innocent", 7, &[])],
            &[("b", 0, &[])],
            &[
                "\"a\" of the plugin \"one\" (stage 1)",
                "\"b\" of the plugin \"two\" (stage 0)",
            ],
        ),
        // Through a stage and a third tap.
        (
            &[("a", 1, &["b"])],
            &[("b", 1, &["c"]), ("c", 0, &[]), ("innocent", 1, &["a"])],
            &[
                "\"b\" of the plugin \"two\" (stage 1)",
                "\"c\" of the plugin \"two\" (stage 0)",
            ],
        ),
        // Two plugins that both want to be first.
        (
            &[("log", 0, &["log"]), ("innocent", 0, &[])],
            &[("log", 0, &["log"])],
            &[
                "\"log\" of the plugin \"one\"",
                "\"log\" of the plugin \"two\"",
            ],
        ),
    ];
    for (one, two, named) in cases {
        let (error, lines) = refused(one, two).await;
        assert_eq!(error.code, ErrorCode::InvalidConfig);
        for part in named.iter().chain(&["TurnStart"]) {
            assert!(error.message.contains(part), "{part}: {}", error.message);
        }
        assert!(!error.message.contains("innocent"), "{}", error.message);
        // The order is known once all are applied; what was initialised is shut down.
        assert_eq!(
            lines,
            [
                "one initialize",
                "two initialize",
                "one apply",
                "two apply",
                "two shutdown",
                "one shutdown"
            ]
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_tap_is_made_of_any_kind_of_name() {
    let lines = Lines::default();
    let noted = lines.clone();
    let probe = Probe::tapping("p", move |hooks| {
        let names: [Tap; 3] = [
            "a".into(),
            String::from("b").into(),
            Arc::<str>::from("c").into(),
        ];
        for name in names {
            let lines = noted.clone();
            hooks.turn_start(name, move |_| {
                lines.add("called");
                async { Err(youyou_agent::HookError::new("named")) }
            });
        }
    });
    let provider = provider().always(|_| [text("ok"), done()]);
    let rig = Rig::with(provider, config(), |builder| builder.plugin(probe)).await;
    let events = rig.send("hi").await;
    let warned: Vec<String> = crate::look::warnings(&events)
        .into_iter()
        .map(|(_, warning)| warning)
        .collect();
    let named =
        |name| format!("the handler \"{name}\" of the plugin \"p\" failed in TurnStart: named");
    assert_eq!(warned, [named("a"), named("b"), named("c")]);
    assert_eq!(lines.all().len(), 3);
    rig.epilogue().await;
}
