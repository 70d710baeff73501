//! Chapter 5.1: `retry_turn` runs the last message again without storing it twice.

use youyou_agent::testing::{
    Fault, Faults, FaultySessions, InMemorySessions, RecordingTool, ScriptedProvider,
    SessionOperation, When, call, collect, done, error, text, text_model, user_message, wait,
};
use youyou_agent::{
    AgentConfig, ContentBlock, ErrorCode, HookError, HookOutcome, OnFault, ProviderErrorKind,
    SendOptions, SkillDefinition, Tap, TurnStart, TurnStartChange, TurnStatus,
};

use crate::probe::Probe;
use crate::rig::{Rig, config, provider};
use crate::said::{said, stored_lines};
use crate::told::{cancel_at, told};

const FAILED: &str = "note: [此消息因错误而中断]";

async fn retried(rig: &Rig) -> Vec<String> {
    let turn = rig
        .session
        .retry_turn()
        .expect("there is something to run again");
    told(&collect(turn).await)
}

#[tokio::test(start_paused = true)]
async fn a_failed_turn_runs_again_and_its_message_is_stored_once() {
    let rig = Rig::new(
        provider()
            .reply([error(ProviderErrorKind::Auth, "no key")])
            .reply([text("ok"), done()]),
    )
    .await;
    rig.send("hi").await;
    assert_eq!(
        retried(&rig).await,
        ["started", "text 0: ok", "completed: ok"]
    );
    assert_eq!(said(&rig.request(2)), ["user: hi"]);
    assert_eq!(
        stored_lines(&rig.stored()),
        [
            "created: hi",
            "user: hi",
            "interrupted: Failed",
            "head: 1",
            "assistant: ok"
        ]
    );
    assert_eq!(rig.session.info().message_count, 2);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_turn_runs_again_also_after_a_resume() {
    for resumed in [false, true] {
        let mut rig = Rig::new(provider().reply([text("par"), wait()])).await;
        cancel_at(rig.session.send("hi").unwrap(), "par").await;
        if resumed {
            rig.reopen().await;
        }
        rig.provider.queue([text("whole"), done()]);
        assert_eq!(
            retried(&rig).await,
            ["started", "text 0: whole", "completed: whole"]
        );
        assert_eq!(
            said(&rig.request(2)),
            ["user: hi"],
            "the cut answer stays behind, on a branch of its own"
        );
        assert_eq!(
            stored_lines(&rig.stored()),
            [
                "created: hi",
                "user: hi",
                "assistant: par (Cancelled)",
                "head: 1",
                "assistant: whole"
            ]
        );
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_may_fail_and_run_again_many_times() {
    let provider = provider();
    for _ in 0..3 {
        provider.queue([error(ProviderErrorKind::Quota, "no credit")]);
    }
    provider.queue([text("ok"), done()]);
    let rig = Rig::new(provider).await;
    rig.send("hi").await;
    for _ in 0..2 {
        assert_eq!(
            retried(&rig).await,
            ["started", "error PROVIDER_ERROR", "failed PROVIDER_ERROR"]
        );
    }
    assert_eq!(retried(&rig).await.last().unwrap(), "completed: ok");
    let users = said(&rig.request(4))
        .iter()
        .filter(|line| line.starts_with("user"))
        .count();
    assert_eq!(users, 1);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn what_was_answered_or_never_sent_cannot_run_again() {
    let rig = Rig::new(provider().reply([text("ok"), done()]).reply([done()])).await;
    let refused = rig.session.retry_turn().unwrap_err();
    assert_eq!(refused.code, ErrorCode::InvalidInput);
    for message in ["answered", "answered with nothing"] {
        rig.send(message).await;
        let refused = rig.session.retry_turn().unwrap_err();
        assert_eq!(refused.code, ErrorCode::InvalidInput);
    }
    assert_eq!(rig.provider.request_count(), 2);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_the_process_left_open_runs_again_after_a_resume() {
    let storage = InMemorySessions::new();
    storage.preload(
        "s1",
        [
            youyou_agent::testing::session_created(0, "A title", "m1"),
            user_message(1, "hello"),
        ],
    );
    let rig = Rig::resumed(provider(), config(), storage, "s1", |builder| builder).await;
    rig.provider.queue([text("ok"), done()]);
    assert_eq!(retried(&rig).await.last().unwrap(), "completed: ok");
    assert_eq!(said(&rig.request(1)), ["user: hello"]);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn tool_rounds_of_the_failed_turn_are_not_run_twice() {
    let tool = RecordingTool::mutating("mu_write").answering("written");
    let log = tool.log().clone();
    let provider = provider()
        .reply([call("c1", "mu_write", "{}"), done()])
        .reply([error(ProviderErrorKind::Auth, "key expired")])
        .reply([text("done"), done()]);
    let rig = Rig::with(provider, config(), |builder| builder.tool(tool)).await;
    rig.send("write").await;
    assert_eq!(retried(&rig).await.last().unwrap(), "completed: done");
    assert_eq!(log.inputs().len(), 1);
    assert_eq!(
        said(&rig.request(3)),
        [
            "user: write",
            "assistant: <c1 mu_write>",
            "result c1: written"
        ]
    );
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn the_skill_of_the_message_counts_again() {
    let skill = SkillDefinition::new("commit", "MARK: write a commit message.");
    let provider = provider()
        .reply([error(ProviderErrorKind::Auth, "no key")])
        .reply([text("ok"), done()]);
    let rig = Rig::with(provider, config(), |builder| builder.skill(skill)).await;
    rig.send("/commit now").await;
    retried(&rig).await;
    for number in [1, 2] {
        let lines = said(&rig.request(number));
        assert!(
            lines[0].starts_with("skill: ") && lines[0].contains("MARK"),
            "{lines:?}"
        );
        assert_eq!(lines[1], "user: /commit now");
    }
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn hooks_run_again_and_may_add_sections_or_refuse() {
    let plugin = Probe::tapping("p", |hooks| {
        let seen = std::sync::atomic::AtomicU32::new(0);
        let tap = Tap::named("t").on_fault(OnFault::Deny);
        hooks.turn_start(tap, move |_: TurnStart| {
            let turn = seen.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            async move {
                match turn {
                    1 => Err(HookError::new("not now")),
                    _ => Ok(HookOutcome::ContinueWith(TurnStartChange {
                        user_input: None,
                        prompt_sections: vec![format!("section {turn}")],
                    })),
                }
            }
        });
    });
    let provider = provider()
        .reply([error(ProviderErrorKind::Auth, "no key")])
        .reply([text("ok"), done()]);
    let rig = Rig::with(provider, config(), |builder| builder.plugin(plugin)).await;
    rig.send("hi").await;
    assert_eq!(
        retried(&rig).await,
        ["started", "error HOOK_ABORTED", "failed HOOK_ABORTED"]
    );
    assert_eq!(rig.provider.request_count(), 1);
    assert_eq!(retried(&rig).await.last().unwrap(), "completed: ok");
    assert!(crate::look::system(&rig.request(2)).ends_with("section 2"));
    rig.epilogue().await;
}

/// A rig whose last message failed before it was stored, after one that failed later.
async fn with_a_lost_message(aborted: bool) -> (Rig, Faults<SessionOperation>) {
    let plugin = Probe::tapping("p", |hooks| {
        hooks.turn_start(Tap::named("t"), |start: TurnStart| async move {
            let words = start.user_input.iter().find_map(ContentBlock::as_text);
            match words {
                Some("lost") => Ok(HookOutcome::Abort("not now".into())),
                _ => Ok(HookOutcome::Continue),
            }
        });
    });
    let storage = FaultySessions::new(InMemorySessions::new());
    let faults = storage.faults().clone();
    let inner = storage.inner().clone();
    let provider = provider().reply([error(ProviderErrorKind::Auth, "no key")]);
    let rig = Rig::over(provider, config(), inner, storage, |builder| {
        if aborted {
            builder.plugin(plugin)
        } else {
            builder
        }
    })
    .await;
    rig.send("first").await;
    if !aborted {
        faults.fail(SessionOperation::Append, When::Nth(1));
    }
    let code = if aborted {
        "HOOK_ABORTED"
    } else {
        "STORAGE_ERROR"
    };
    assert_eq!(
        told(&rig.send("lost").await),
        [
            "started",
            &format!("error {code}"),
            &format!("failed {code}")
        ]
    );
    (rig, faults)
}

#[tokio::test(start_paused = true)]
async fn a_message_that_was_never_stored_runs_again_as_a_new_one() {
    let (rig, _faults) = with_a_lost_message(false).await;
    rig.provider.queue([text("ok"), done()]);
    assert_eq!(retried(&rig).await.last().unwrap(), "completed: ok");
    assert_eq!(
        said(&rig.request(2)),
        ["user: first", FAILED, "user: lost"],
        "its own message, not the one before"
    );
    assert_eq!(
        stored_lines(&rig.stored()),
        [
            "created: first",
            "user: first",
            "interrupted: Failed",
            "user: lost",
            "assistant: ok"
        ]
    );
    let refused = rig.session.retry_turn().unwrap_err();
    assert_eq!(refused.code, ErrorCode::InvalidInput, "it is answered now");
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_message_that_a_hook_refused_is_asked_about_again() {
    let (rig, _faults) = with_a_lost_message(true).await;
    for _ in 0..2 {
        assert_eq!(
            retried(&rig).await,
            ["started", "error HOOK_ABORTED", "failed HOOK_ABORTED"]
        );
    }
    assert_eq!(rig.provider.request_count(), 1);
    assert_eq!(
        stored_lines(&rig.stored()),
        ["created: first", "user: first", "interrupted: Failed"]
    );
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_message_that_was_never_stored_is_kept_until_the_next_one_or_the_close() {
    for replaced in [true, false] {
        let (mut rig, _faults) = with_a_lost_message(false).await;
        if replaced {
            rig.provider
                .queue([error(ProviderErrorKind::Auth, "no key")]);
            rig.send("next").await;
        } else {
            rig.reopen().await;
        }
        rig.provider.queue([text("ok"), done()]);
        retried(&rig).await;
        let asked = said(&rig.provider.last_request().unwrap());
        assert!(!asked.contains(&"user: lost".to_owned()), "{asked:?}");
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_that_is_lost_again_and_again_is_stored_once_in_the_end() {
    let (rig, faults) = with_a_lost_message(false).await;
    for _ in 0..2 {
        faults.fail(SessionOperation::Append, When::Nth(1));
        assert_eq!(
            retried(&rig).await,
            ["started", "error STORAGE_ERROR", "failed STORAGE_ERROR"]
        );
    }
    rig.provider.queue([text("ok"), done()]);
    assert_eq!(retried(&rig).await.last().unwrap(), "completed: ok");
    let lines = stored_lines(&rig.stored());
    assert_eq!(lines.iter().filter(|line| *line == "user: lost").count(), 1);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_model_that_only_a_lost_message_named_is_stored_with_the_turn_that_runs_on_it() {
    let storage = FaultySessions::new(InMemorySessions::new());
    let faults = storage.faults().clone();
    let inner = storage.inner().clone();
    let other = ScriptedProvider::new("other").model(text_model("o1"));
    let config = AgentConfig {
        max_retries: 0,
        ..config()
    };
    let mut rig = Rig::over(provider(), config, inner, storage, |builder| {
        builder.provider(other.clone())
    })
    .await;
    rig.provider
        .queue([error(ProviderErrorKind::Network, "gone")]);
    rig.send("hi").await;
    faults.inject(
        SessionOperation::Append,
        When::Nth(1),
        Fault::Error("down".into()),
    );
    let options = SendOptions {
        model_id: Some("o1".to_owned()),
        ..SendOptions::default()
    };
    let lost = rig
        .session
        .send_with("lost", options)
        .unwrap()
        .outcome()
        .await;
    assert_eq!(lost.status, TurnStatus::Failed);
    other.queue([text("ok"), done()]);
    assert_eq!(retried(&rig).await.last().unwrap(), "completed: ok");
    assert_eq!(
        stored_lines(&rig.stored()),
        [
            "created: hi",
            "user: hi",
            "interrupted: Failed",
            "model: o1",
            "user: lost",
            "assistant: ok"
        ]
    );
    rig.reopen().await;
    assert_eq!(rig.session.info().model_id, "o1");
}
