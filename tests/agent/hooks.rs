//! Requirements 3.5: what the hooks of sessions and turns get and may change.

use std::sync::{Arc, Mutex};

use serde_json::json;
use youyou_agent::testing::{collect, done, kinds, text};
use youyou_agent::{
    AfterToolUse, AgentConfig, BeforeCompact, BeforeToolUse, ContentBlock, ErrorCode, ErrorOrigin,
    HookOutcome, ResumeOptions, SessionConfig, SessionEnd, SessionStart, TurnEnd, TurnStart,
    TurnStartChange, TurnStatus, UserOrigin,
};

use crate::look::{assert_completed, assert_failed, completion, system, user_side, warnings};
use crate::probe::{Kept, Lines, Probe};
use crate::rig::{Rig, config, provider};

fn answer() -> youyou_agent::testing::ScriptedProvider {
    provider().always(|_| [text("answer"), done()])
}

#[tokio::test(start_paused = true)]
async fn sessions_and_turns_tell_their_hooks_what_they_are() {
    let (starts, ends) = (Kept::<SessionStart>::new(), Kept::<SessionEnd>::new());
    let (turns, turn_ends) = (Kept::<TurnStart>::new(), Kept::<TurnEnd>::new());
    let (a, b, c, d) = (
        starts.clone(),
        ends.clone(),
        turns.clone(),
        turn_ends.clone(),
    );
    let probe = Probe::tapping("p", move |hooks| {
        let (a, b, c, d) = (a.clone(), b.clone(), c.clone(), d.clone());
        hooks.session_start("start", move |payload| {
            a.keep(payload);
            async { Ok(HookOutcome::Continue) }
        });
        hooks.session_end("end", move |payload| {
            b.keep(payload);
            async { Ok(HookOutcome::Continue) }
        });
        hooks.turn_start("turn", move |payload| {
            c.keep(payload);
            async { Ok(HookOutcome::Continue) }
        });
        hooks.turn_end("turn end", move |payload| {
            d.keep(payload);
            async { Ok(HookOutcome::Continue) }
        });
    });
    let config_value = json!({"level": 3});
    let mut rig = Rig::with(answer(), config(), |builder| {
        builder.plugin_with_config(probe, config_value.clone())
    })
    .await;
    let id = rig.session.id().to_owned();
    let events = rig.send("hi").await;
    rig.reopen().await;

    let started: Vec<_> = starts
        .all()
        .iter()
        .map(|start| (start.session_id.to_string(), start.resumed))
        .collect();
    assert_eq!(started, [(id.clone(), false), (id.clone(), true)]);
    let ended: Vec<_> = ends
        .all()
        .iter()
        .map(|end| (end.session_id.to_string(), end.message_count))
        .collect();
    assert_eq!(ended, [(id.clone(), 2)]);
    let [turn] = &turns.all()[..] else {
        panic!("one turn")
    };
    assert_eq!(*turn.turn_id, *events[0].turn_id);
    assert_eq!(*turn.session_id, *id);
    assert_eq!(*turn.user_input, [ContentBlock::text("hi")]);
    let [end] = &turn_ends.all()[..] else {
        panic!("one turn")
    };
    assert_eq!(*end.assistant_output, *"answer");
    assert_eq!(
        (&*end.turn_id, &*end.session_id),
        (&*events[0].turn_id, &*id)
    );
    for given in [
        &starts.all()[0].plugin_config,
        &ends.all()[0].plugin_config,
        &turn.plugin_config,
        &end.plugin_config,
    ] {
        assert_eq!(**given, config_value);
    }
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_session_start_that_is_aborted_frees_the_slot() {
    let lines = Lines::default();
    let seen = lines.clone();
    let probe = Probe::tapping("gate", move |hooks| {
        let (start, late, end) = (seen.clone(), seen.clone(), seen.clone());
        hooks.session_start("first", move |_| {
            start.add("start");
            let refuse = start.all().len() == 1;
            async move {
                Ok(if refuse {
                    HookOutcome::Abort("not on a Sunday".into())
                } else {
                    HookOutcome::Continue
                })
            }
        });
        hooks.session_start("second", move |_| {
            late.add("second");
            async { Ok(HookOutcome::Continue) }
        });
        hooks.session_end("end", move |_| {
            end.add("end");
            async { Ok(HookOutcome::Continue) }
        });
    });
    let storage = youyou_agent::testing::InMemorySessions::new();
    let agent = youyou_agent::AgentBuilder::new(config())
        .provider(answer())
        .session_storage(storage.clone())
        .plugin(probe)
        .build()
        .await
        .unwrap();
    let error = agent
        .create_session(SessionConfig::default())
        .await
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::HookAborted);
    assert_eq!(error.origin, ErrorOrigin::Plugin);
    assert!(error.message.contains("\"gate\"") && error.message.contains("not on a Sunday"));
    assert!(agent.current_session().is_none());
    assert_eq!(lines.all(), ["start"]);
    assert_eq!(storage.session_ids(), Vec::<String>::new());
    let session = agent
        .create_session(SessionConfig::default())
        .await
        .unwrap();
    let outcome = session.send("hi").unwrap().outcome().await;
    assert_eq!(*outcome.assistant_output, *"answer");
    session.close().await.unwrap();
    assert_eq!(lines.all(), ["start", "start", "second", "end"]);
}

#[tokio::test(start_paused = true)]
async fn a_resume_that_is_aborted_opens_nothing_and_changes_nothing() {
    let refuse = Arc::new(Mutex::new(false));
    let refusing = Arc::clone(&refuse);
    let probe = Probe::tapping("gate", move |hooks| {
        let refusing = Arc::clone(&refusing);
        hooks.session_start("ask", move |_| {
            let refuse = *refusing.lock().unwrap();
            async move {
                Ok(if refuse {
                    HookOutcome::Abort("no".into())
                } else {
                    HookOutcome::Continue
                })
            }
        });
    });
    let rig = Rig::with(answer(), config(), |builder| builder.plugin(probe)).await;
    rig.send("hi").await;
    rig.session.close().await.unwrap();
    let before = rig.stored();
    *refuse.lock().unwrap() = true;
    let resumed = rig
        .agent
        .resume_session(rig.session.id(), ResumeOptions::default())
        .await;
    assert_eq!(resumed.unwrap_err().code, ErrorCode::HookAborted);
    assert!(rig.agent.current_session().is_none());
    assert_eq!(rig.stored(), before);
}

#[tokio::test(start_paused = true)]
async fn a_turn_start_changes_the_input_and_adds_sections_behind_the_stable_prompt() {
    let add = Probe::tapping("add", |hooks| {
        hooks.turn_start("translate", |turn: TurnStart| async move {
            let ContentBlock::Text { text } = &turn.user_input[0] else {
                panic!("text")
            };
            Ok(HookOutcome::ContinueWith(TurnStartChange {
                user_input: Some(vec![ContentBlock::text(format!("{text}, please"))]),
                prompt_sections: vec!["SECTION ONE".into()],
            }))
        });
    });
    let again = Probe::tapping("again", |hooks| {
        hooks.turn_start("shout", |turn: TurnStart| async move {
            let ContentBlock::Text { text } = &turn.user_input[0] else {
                panic!("text")
            };
            Ok(HookOutcome::ContinueWith(TurnStartChange {
                user_input: Some(vec![ContentBlock::text(text.to_uppercase())]),
                prompt_sections: vec![" ".into(), "SECTION TWO".into()],
            }))
        });
    });
    let config = AgentConfig {
        system_instructions: vec!["Be good.".into()],
        ..config()
    };
    let rig = Rig::with(answer(), config, |b| b.plugin(add).plugin(again)).await;
    rig.send("help").await;
    let request = rig.request(1);
    assert_eq!(user_side(&request, UserOrigin::Input), ["HELP, PLEASE"]);
    let blocks: Vec<(&str, bool)> = request
        .system
        .iter()
        .map(|block| (&*block.text, block.stable))
        .collect();
    assert_eq!(
        blocks,
        [
            ("Be good.", true),
            ("SECTION ONE", false),
            ("SECTION TWO", false)
        ]
    );
    // The title is the stored text's.
    assert_eq!(rig.session.info().title.as_deref(), Some("HELP, PLEASE"));
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_changed_input_is_checked_like_an_input() {
    for bad in [
        vec![],
        vec![ContentBlock::text("  ")],
        vec![ContentBlock::image("image/png", "AAAA")],
    ] {
        let probe = Probe::tapping("bad", move |hooks| {
            let bad = bad.clone();
            hooks.turn_start("spoil", move |_| {
                let change = TurnStartChange {
                    user_input: Some(bad.clone()),
                    prompt_sections: vec!["NOT THIS".into()],
                };
                async { Ok(HookOutcome::ContinueWith(change)) }
            });
        });
        let rig = Rig::with(answer(), config(), |builder| builder.plugin(probe)).await;
        let events = rig.send("as it was").await;
        let [(ErrorOrigin::Plugin, warning)] = &warnings(&events)[..] else {
            panic!("{events:?}")
        };
        assert!(
            warning.contains("\"bad\"") && warning.contains("\"spoil\""),
            "{warning}"
        );
        assert_eq!(user_side(&rig.request(1), UserOrigin::Input), ["as it was"]);
        assert_eq!(system(&rig.request(1)), "");
        assert_completed(&events, "answer");
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_start_that_is_aborted_leaves_no_trace() {
    let lines = Lines::default();
    let seen = lines.clone();
    let probe = Probe::tapping("filter", move |hooks| {
        let seen = seen.clone();
        hooks.turn_start("words", |turn: TurnStart| async move {
            Ok(if *turn.user_input == [ContentBlock::text("bad word")] {
                HookOutcome::Abort("mind your language".into())
            } else {
                HookOutcome::Continue
            })
        });
        hooks.turn_end("end", move |_| {
            seen.add("turn end");
            async { Ok(HookOutcome::Continue) }
        });
    });
    let rig = Rig::with(answer(), config(), |builder| builder.plugin(probe)).await;
    let events = rig.send("bad word").await;
    assert_eq!(kinds(&events), ["turnStarted", "error", "turnComplete"]);
    let error = assert_failed(&events, ErrorCode::HookAborted);
    assert_eq!(error.origin, ErrorOrigin::Plugin);
    assert!(error.message.contains("\"filter\"") && error.message.contains("mind your language"));
    assert_eq!(rig.provider.request_count(), 0);
    assert_eq!(rig.stored(), []);
    assert_eq!(rig.session.info().title, None);
    assert_eq!(lines.all(), Vec::<String>::new());

    assert_completed(&rig.send("good word").await, "answer");
    assert_eq!(user_side(&rig.request(1), UserOrigin::Input), ["good word"]);
    assert_eq!(rig.session.info().title.as_deref(), Some("good word"));
    assert_eq!(lines.all(), ["turn end"]);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_turn_end_changes_what_is_reported_and_not_what_is_stored() {
    let probe = Probe::tapping("mask", |hooks| {
        hooks.turn_end("one", |turn: TurnEnd| async move {
            Ok(HookOutcome::ContinueWith(format!(
                "[{}]",
                turn.assistant_output
            )))
        });
        hooks.turn_end("two", |turn: TurnEnd| async move {
            Ok(HookOutcome::ContinueWith(format!(
                "({})",
                turn.assistant_output
            )))
        });
        hooks.turn_end("three", |_| async {
            Ok(HookOutcome::Abort("too late".into()))
        });
        hooks.turn_end("four", |_| async { panic!("not called after an abort") });
    });
    let rig = Rig::with(answer(), config(), |builder| builder.plugin(probe)).await;
    let events = rig.send("hi").await;
    assert_completed(&events, "([answer])");
    let [(ErrorOrigin::Plugin, warning)] = &warnings(&events)[..] else {
        panic!("{events:?}")
    };
    assert!(
        warning.contains("\"mask\"") && warning.contains("too late"),
        "{warning}"
    );
    rig.send("more").await;
    let said: Vec<String> = rig
        .request(2)
        .messages
        .iter()
        .map(|message| message.text())
        .collect();
    assert_eq!(said, ["hi", "answer", "more"]);
    assert!(format!("{:?}", rig.stored()).contains("\"answer\""));
    assert!(!format!("{:?}", rig.stored()).contains("[answer]"));
}

#[tokio::test(start_paused = true)]
async fn turn_end_runs_for_failed_and_cancelled_turns_too() {
    let outputs = Lines::default();
    let seen = outputs.clone();
    let probe = Probe::tapping("end", move |hooks| {
        let seen = seen.clone();
        hooks.turn_end("note", move |turn: TurnEnd| {
            seen.add(&*turn.assistant_output);
            async { Ok(HookOutcome::Continue) }
        });
    });
    let kind = youyou_agent::ProviderErrorKind::Auth;
    let provider = provider()
        .reply([text("half"), youyou_agent::testing::error(kind, "no key")])
        .reply([text("a bit"), youyou_agent::testing::wait()]);
    let rig = Rig::with(provider, config(), |builder| builder.plugin(probe)).await;
    assert_failed(&rig.send("one").await, ErrorCode::ProviderError);
    let turn = rig.session.send("two").unwrap();
    rig.provider.asked(2).await;
    tokio::task::yield_now().await;
    assert!(turn.cancel());
    let events = collect(turn).await;
    assert_eq!(*kinds(&events).last().unwrap(), "turnCancelled");
    assert_eq!(outputs.all(), ["half", "a bit"]);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn handlers_run_by_plugin_then_by_tap_in_order_of_registration() {
    let lines = Lines::default();
    let tap = |id: &'static str, taps: &'static [&'static str]| {
        let lines = lines.clone();
        Probe::tapping(id, move |hooks| {
            for name in taps {
                let lines = lines.clone();
                hooks.turn_start(*name, move |_| {
                    lines.add(format!("{id} {name}"));
                    async { Ok(HookOutcome::Continue) }
                });
            }
        })
    };
    let (z, a) = (tap("z", &["2", "1"]), tap("a", &["x"]));
    let rig = Rig::with(answer(), config(), |b| b.plugin(z).plugin(a)).await;
    rig.send("hi").await;
    assert_eq!(lines.all(), ["z 2", "z 1", "a x"]);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_session_end_cannot_be_stopped() {
    let probe = Probe::tapping("clingy", |hooks| {
        hooks.session_end("stay", |_| async { Ok(HookOutcome::Abort("stay".into())) });
    });
    let rig = Rig::with(answer(), config(), |builder| builder.plugin(probe)).await;
    rig.send("hi").await;
    rig.session.close().await.unwrap();
    assert!(rig.agent.current_session().is_none());
}

/// Each hook has its own type of change: a change of another hook does not compile. This
/// holds the types themselves.
#[test]
fn each_hook_has_its_own_change() {
    fn changes<H: youyou_agent::Hook<Change = C>, C>() -> &'static str {
        H::NAME
    }
    let names = [
        changes::<SessionStart, std::convert::Infallible>(),
        changes::<SessionEnd, std::convert::Infallible>(),
        changes::<TurnStart, TurnStartChange>(),
        changes::<TurnEnd, String>(),
        changes::<BeforeToolUse, serde_json::Value>(),
        changes::<AfterToolUse, String>(),
        changes::<BeforeCompact, String>(),
    ];
    assert_eq!(
        names,
        [
            "SessionStart",
            "SessionEnd",
            "TurnStart",
            "TurnEnd",
            "BeforeToolUse",
            "AfterToolUse",
            "BeforeCompact"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_turn_of_a_session_without_hooks_has_no_warnings() {
    let rig = Rig::with(answer(), config(), |builder| builder).await;
    let events = rig.send("hi").await;
    assert_eq!(completion(&events).0, TurnStatus::Completed);
    assert_eq!(warnings(&events), []);
    rig.epilogue().await;
}
