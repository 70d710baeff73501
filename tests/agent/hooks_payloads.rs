//! Requirements 3.5: what the handlers of every hook are given.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use youyou_agent::testing::{RecordingTool, ScriptedProvider, call, done, text};
use youyou_agent::{
    AfterToolUse, BeforeCompact, BeforeToolUse, ContentBlock, HookOutcome, HookRegistry,
    HookResult, SessionEnd, SessionStart, TurnEnd, TurnOrigin, TurnStart, TurnStartChange,
};

use crate::probe::{Kept, Probe};
use crate::rig::{Rig, config, provider};

/// One call of `ro_echo`; every later answer is "fine".
pub(crate) fn one_call_then_fine() -> ScriptedProvider {
    provider()
        .reply([call("c1", "ro_echo", r#"{"n":1}"#), done()])
        .always(|_| [text("fine"), done()])
}

/// A turn with a tool, further turns, a compaction and the close: every hook runs. Returns the
/// id of the first turn.
pub(crate) async fn whole_life(rig: &Rig) -> String {
    let turn = rig.session.send("hi").unwrap();
    let turn_id = turn.id().to_owned();
    turn.outcome().await;
    for _ in 0..12 {
        rig.send("word ".repeat(50)).await;
    }
    rig.session.compact().await.unwrap();
    rig.session.close().await.unwrap();
    turn_id
}

/// What the handlers of the seven hooks were given.
#[derive(Clone)]
struct Given {
    session_start: Kept<SessionStart>,
    session_end: Kept<SessionEnd>,
    turn_start: Kept<TurnStart>,
    turn_end: Kept<TurnEnd>,
    before_tool_use: Kept<BeforeToolUse>,
    after_tool_use: Kept<AfterToolUse>,
    before_compact: Kept<BeforeCompact>,
}

impl Given {
    fn new() -> Self {
        Self {
            session_start: Kept::new(),
            session_end: Kept::new(),
            turn_start: Kept::new(),
            turn_end: Kept::new(),
            before_tool_use: Kept::new(),
            after_tool_use: Kept::new(),
            before_compact: Kept::new(),
        }
    }

    /// Taps every hook with a handler that keeps what it is given.
    fn tap(&self, hooks: &mut HookRegistry) {
        macro_rules! keep {
            ($($method:ident),*) => {$(
                let kept = self.$method.clone();
                hooks.$method("keep", move |payload| {
                    kept.keep(payload);
                    async { Ok(HookOutcome::Continue) }
                });
            )*};
        }
        keep!(
            session_start,
            session_end,
            turn_start,
            turn_end,
            before_tool_use,
            after_tool_use,
            before_compact
        );
    }
}

/// Changes that the handlers behind it must see.
fn changing(hooks: &mut HookRegistry) {
    hooks.turn_start("sections", |turn: TurnStart| async move {
        Ok(HookOutcome::ContinueWith(TurnStartChange {
            user_input: Some([&turn.user_input[..], &[ContentBlock::text("please")]].concat()),
            prompt_sections: vec!["one".into(), "two".into()],
        }))
    });
    hooks.before_tool_use("arguments", |_| async {
        Ok(HookOutcome::ContinueWith(json!({"n": 2})))
    });
    hooks.after_tool_use("output", |call: AfterToolUse| async move {
        Ok(HookOutcome::ContinueWith(format!("<{}>", call.output)))
    });
    hooks.turn_end("output", |_| async {
        Ok(HookOutcome::ContinueWith("edited".into()))
    });
    hooks.before_compact("words", |_| async {
        Ok(HookOutcome::ContinueWith("be short".into()))
    });
}

#[tokio::test(start_paused = true)]
async fn every_payload_tells_whose_it_is_what_it_is_about_and_the_config_of_its_plugin() {
    let given = Given::new();
    let taps = given.clone();
    let keeper = Probe::tapping("keeper", move |hooks| taps.tap(hooks));
    let other = json!({"of": "changer"});
    let own = json!({"of": "keeper"});
    let mut rig = Rig::with(one_call_then_fine(), config(), |builder| {
        builder
            .plugin_with_config(Probe::tapping("changer", changing), other)
            .plugin_with_config(keeper, own.clone())
            .tool(
                RecordingTool::read_only("ro_echo")
                    .answering("out")
                    .taking(std::time::Duration::from_millis(40)),
            )
    })
    .await;
    let turn_id = &*whole_life(&rig).await;
    let id = rig.session.id().to_owned();
    let id = &*id;
    let resumed = rig.agent.resume_session(id, Default::default()).await;
    rig.session = resumed.unwrap();
    rig.session.close().await.unwrap();

    let starts = given.session_start.all();
    let starts: Vec<_> = starts
        .iter()
        .map(|start| (&*start.session_id, start.resumed, &*start.plugin_config))
        .collect();
    assert_eq!(starts, [(id, false, &own), (id, true, &own)]);

    let ends = given.session_end.all();
    let ends: Vec<_> = ends
        .iter()
        .map(|end| (&*end.session_id, end.message_count, &*end.plugin_config))
        .collect();
    // Thirteen messages, thirteen answers and the one with the call.
    assert_eq!(ends, [(id, 27, &own), (id, 27, &own)]);

    let turns = given.turn_start.all();
    assert_eq!(turns.len(), 13);
    let turn = &turns[0];
    assert_eq!(
        (
            &*turn.session_id,
            &*turn.turn_id,
            turn.origin,
            &*turn.plugin_config
        ),
        (id, turn_id, TurnOrigin::Send, &own)
    );
    assert_eq!(
        *turn.user_input,
        [ContentBlock::text("hi"), ContentBlock::text("please")]
    );
    assert_eq!(turn.sections, ["one", "two"]);

    let turn_ends = given.turn_end.all();
    assert_eq!(turn_ends.len(), 13);
    let end = &turn_ends[0];
    assert_eq!(
        (
            &*end.session_id,
            &*end.turn_id,
            &*end.assistant_output,
            &*end.plugin_config
        ),
        (id, turn_id, "edited", &own)
    );

    let [before] = &given.before_tool_use.all()[..] else {
        panic!("one call")
    };
    assert_eq!(
        (
            &*before.session_id,
            &*before.turn_id,
            &*before.call_id,
            &*before.tool_name
        ),
        (id, turn_id, "c1", "ro_echo")
    );
    assert_eq!(
        (&*before.arguments, &*before.plugin_config),
        (&json!({"n": 2}), &own)
    );

    let [after] = &given.after_tool_use.all()[..] else {
        panic!("one call")
    };
    assert_eq!(
        (
            &*after.session_id,
            &*after.turn_id,
            &*after.call_id,
            &*after.tool_name
        ),
        (id, turn_id, "c1", "ro_echo")
    );
    assert_eq!(
        (
            &*after.arguments,
            &*after.output,
            after.duration_ms,
            after.success
        ),
        (&json!({"n": 2}), "<out>", 40, true)
    );
    assert_eq!(*after.plugin_config, own);

    let [compact] = &given.before_compact.all()[..] else {
        panic!("one compaction")
    };
    assert_eq!(
        (
            &*compact.session_id,
            compact.message_count,
            &*compact.instructions
        ),
        // With the result of the call.
        (id, 28, "be short")
    );
    assert_eq!(*compact.plugin_config, own);
    // Twelve messages of 250 letters are most of it.
    let tokens = compact.estimated_tokens;
    assert!((600..1_200).contains(&tokens), "{tokens}");
}

#[test]
fn a_payload_can_be_made_to_test_a_handler_without_an_agent() {
    async fn limit(call: BeforeToolUse) -> HookResult<Value> {
        if call.cancel_requested().is_cancelled() {
            return Ok(HookOutcome::Abort("cancelled".into()));
        }
        Ok(
            match call.arguments["n"].as_u64() > call.plugin_config["most"].as_u64() {
                true => HookOutcome::ContinueWith(call.plugin_config["most"].clone()),
                false => HookOutcome::Continue,
            },
        )
    }
    let call = BeforeToolUse::new("s", "t", "c", "count", json!({"n": 9}));
    let ids = (
        &*call.session_id,
        &*call.turn_id,
        &*call.call_id,
        &*call.tool_name,
    );
    assert_eq!(ids, ("s", "t", "c", "count"));
    let mut strict = call.clone();
    strict.plugin_config = Arc::new(json!({"most": 5}));
    let token = CancellationToken::new();
    token.cancel();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let outcomes = runtime.block_on(async {
        [
            limit(strict.clone()).await.unwrap(),
            limit(strict.with_cancel_requested(token)).await.unwrap(),
        ]
    });
    assert_eq!(
        outcomes,
        [
            HookOutcome::ContinueWith(json!(5)),
            HookOutcome::Abort("cancelled".into())
        ]
    );

    // The others, with what they leave to their fields.
    assert!(SessionStart::new("s", true).resumed);
    assert_eq!(SessionEnd::new("s", 3_u32).message_count, 3);
    let turn = TurnStart::new("s", "t", vec![ContentBlock::text("hi")]);
    assert_eq!(*turn.user_input, [ContentBlock::text("hi")]);
    assert_eq!((turn.sections, turn.origin), (vec![], TurnOrigin::Send));
    assert_eq!(*TurnEnd::new("s", "t", "bye").assistant_output, *"bye");
    let after = AfterToolUse::new("s", "t", "c", "count", json!({}), "nine");
    assert_eq!(
        (&*after.output, after.duration_ms, after.success),
        ("nine", 0, true)
    );
    let compact = BeforeCompact::new("s", 4_u32, 900_u64);
    assert_eq!(
        (
            compact.message_count,
            compact.estimated_tokens,
            &*compact.instructions
        ),
        (4, 900, "")
    );
}
