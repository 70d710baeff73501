//! Chapter 5.1: what is tried again, when, and what is not.

use std::time::Duration;

use tokio::time::Instant;
use youyou_agent::testing::{
    Step, assert_event_invariants, collect, done, done_with, error, refuse, text, wait,
};
use youyou_agent::{
    AgentConfig, AgentEventKind, ErrorCode, ProviderError, ProviderErrorKind, SessionState, Usage,
};

use crate::look::assert_failed;
use crate::rig::{Rig, config, provider};
use crate::said::{said, stored_lines};
use crate::told::{read_until, told};

fn rate_limited(retry_after_ms: impl Into<Option<u64>>) -> ProviderErrorKind {
    ProviderErrorKind::RateLimited {
        retry_after_ms: retry_after_ms.into(),
    }
}

fn failing(kind: ProviderErrorKind) -> [Step; 1] {
    [error(kind, "try again")]
}

/// The delays of the retries that were told.
fn delays(events: &[youyou_agent::AgentEvent]) -> Vec<(u32, u64)> {
    let delay = |event: &youyou_agent::AgentEvent| match &event.kind {
        AgentEventKind::ProviderRetry {
            attempt, delay_ms, ..
        } => Some((*attempt, *delay_ms)),
        _ => None,
    };
    events.iter().filter_map(delay).collect()
}

#[tokio::test(start_paused = true)]
async fn a_server_that_names_a_wait_is_not_asked_before() {
    // E12 (a)
    for as_error in [true, false] {
        let refusal = ProviderError::new(rate_limited(3_000), "slow down");
        let first = if as_error {
            error(refusal.kind.clone(), "slow down")
        } else {
            refuse(refusal)
        };
        let rig = Rig::new(provider().reply([first]).reply([text("ok"), done()])).await;
        let began = Instant::now();
        let mut turn = rig.session.send("hi").unwrap();
        let mut events = read_until(&mut turn, "retry 2 in 3000 ms").await;
        tokio::time::advance(Duration::from_millis(2_990)).await;
        tokio::task::yield_now().await;
        assert_eq!(rig.provider.request_count(), 1);
        events.extend(collect(turn).await);
        assert!(began.elapsed() >= Duration::from_secs(3));
        assert!(began.elapsed() < Duration::from_millis(3_100));
        assert_event_invariants(&events);
        assert_eq!(
            told(&events),
            [
                "started",
                "retry 2 in 3000 ms",
                "text 0: ok",
                "completed: ok"
            ]
        );
        let AgentEventKind::ProviderRetry { error, .. } = &events[1].kind else {
            panic!("{events:?}");
        };
        assert_eq!(error.code, ErrorCode::ProviderError);
        assert_eq!(error.retry_after_ms, Some(3_000));
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_longer_than_allowed_fails_at_once_and_says_so() {
    // E12 (b)
    let rig = Rig::new(provider().reply(failing(rate_limited(600_000)))).await;
    let began = Instant::now();
    let events = rig.send("hi").await;
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert_eq!(rig.provider.request_count(), 1);
    let failure = assert_failed(&events, ErrorCode::ProviderError);
    assert!(failure.retryable);
    assert_eq!(failure.retry_after_ms, Some(600_000));
    assert!(failure.message.contains("600 s"), "{failure}");
    assert_eq!(
        stored_lines(&rig.stored()),
        ["created: hi", "user: hi", "interrupted: Failed"]
    );
    rig.provider.queue([text("ok"), done()]);
    let events = rig.send("again").await;
    assert_eq!(told(&events), ["started", "text 0: ok", "completed: ok"]);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn the_longest_allowed_wait_is_still_waited() {
    // E12
    let rig = Rig::new(
        provider()
            .reply(failing(rate_limited(60_000)))
            .reply([text("ok"), done()]),
    )
    .await;
    let events = rig.send("hi").await;
    assert_eq!(delays(&events), [(2, 60_000)]);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_cancel_ends_the_wait_for_a_retry_at_once() {
    // E12 (c)
    let rig = Rig::new(provider().reply(failing(rate_limited(3_000)))).await;
    let mut turn = rig.session.send("hi").unwrap();
    read_until(&mut turn, "retry 2 in 3000 ms").await;
    let before = Instant::now();
    assert!(turn.cancel());
    assert_eq!(told(&collect(turn).await), ["cancelled"]);
    assert_eq!(before.elapsed(), Duration::ZERO);
    assert_eq!(rig.provider.request_count(), 1);
    assert_eq!(rig.session.info().state, SessionState::Idle);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn the_four_passing_kinds_are_tried_again_with_doubling_delays() {
    let kinds = [
        rate_limited(None),
        ProviderErrorKind::Overloaded,
        ProviderErrorKind::Network,
        ProviderErrorKind::Timeout,
    ];
    for kind in kinds {
        let config = AgentConfig {
            max_retries: 4,
            retry_base_ms: 1_000,
            retry_max_delay_ms: 5_000,
            ..config()
        };
        let provider = provider().always(move |_| failing(kind.clone()));
        let rig = Rig::with(provider, config, |builder| builder).await;
        let events = rig.send("hi").await;
        assert_failed(&events, ErrorCode::ProviderError);
        assert_eq!(rig.provider.request_count(), 5);
        let expected = [(2, 1_000_u64), (3, 2_000), (4, 4_000), (5, 5_000)];
        let delays = delays(&events);
        assert_eq!(delays.len(), expected.len());
        for ((attempt, delay), (expected_attempt, middle)) in delays.into_iter().zip(expected) {
            assert_eq!(attempt, expected_attempt);
            assert!(
                (middle * 9 / 10..=middle * 11 / 10).contains(&delay),
                "{delay} is not within 10 % of {middle}"
            );
        }
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn every_other_kind_fails_at_once_and_says_whether_trying_again_helps() {
    let kinds = [
        (ProviderErrorKind::Auth, false),
        (ProviderErrorKind::Quota, false),
        (ProviderErrorKind::InvalidRequest, false),
        (ProviderErrorKind::UnsupportedContent, false),
        (ProviderErrorKind::Other, true),
    ];
    for (kind, retryable) in kinds {
        let rig =
            Rig::new(provider().reply([error(kind, "timeout, overloaded, rate limit")])).await;
        let events = rig.send("hi").await;
        let failure = assert_failed(&events, ErrorCode::ProviderError);
        assert_eq!(failure.retryable, retryable);
        assert_eq!(delays(&events), []);
        assert_eq!(rig.provider.request_count(), 1);
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn no_retries_means_none() {
    let config = AgentConfig {
        max_retries: 0,
        ..config()
    };
    let provider = provider().reply(failing(ProviderErrorKind::Overloaded));
    let rig = Rig::with(provider, config, |builder| builder).await;
    assert_failed(&rig.send("hi").await, ErrorCode::ProviderError);
    assert_eq!(rig.provider.request_count(), 1);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_retried_attempt_leaves_no_trace() {
    let usage = Usage {
        input_tokens: Some(7),
        ..Usage::default()
    };
    let rig = Rig::new(
        provider()
            .reply(failing(ProviderErrorKind::Network))
            .reply([text("ok"), done_with(usage, None)]),
    )
    .await;
    let events = rig.send("hi").await;
    let AgentEventKind::TurnComplete { usage: told, .. } = &events.last().unwrap().kind else {
        panic!("{events:?}");
    };
    assert_eq!(*told, usage);
    assert_eq!(
        stored_lines(&rig.stored()),
        ["created: hi", "user: hi", "assistant: ok"]
    );
    let indices: Vec<u64> = rig.stored().iter().map(|event| event.index).collect();
    assert_eq!(indices, [0, 1, 2]);
    assert_eq!(said(&rig.request(1)), said(&rig.request(2)));
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn attempts_are_counted_per_request() {
    // The second request of a turn has its own retries.
    let config = AgentConfig {
        max_retries: 1,
        ..config()
    };
    let call = || youyou_agent::testing::call("c1", "ro_echo", "{}");
    let provider = provider()
        .reply(failing(ProviderErrorKind::Overloaded))
        .reply([call(), done()])
        .reply(failing(ProviderErrorKind::Overloaded))
        .reply([text("ok"), done()]);
    let rig = Rig::with(provider, config, |builder| {
        builder.tool(youyou_agent::testing::RecordingTool::read_only("ro_echo"))
    })
    .await;
    let events = rig.send("hi").await;
    assert_eq!(told(&events).last().unwrap(), "completed: ok");
    let attempts: Vec<u32> = delays(&events)
        .into_iter()
        .map(|(attempt, _)| attempt)
        .collect();
    assert_eq!(attempts, [2, 2]);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_falls_silent_is_given_up_after_the_idle_limit() {
    // Chapter 4: per gap between events.
    let config = AgentConfig {
        provider_idle_timeout_ms: 1_000,
        max_retries: 1,
        ..config()
    };
    let provider = provider().reply([wait()]).reply([text("ok"), wait()]);
    let rig = Rig::with(provider, config, |builder| builder).await;
    let began = Instant::now();
    let events = rig.send("hi").await;
    let failure = assert_failed(&events, ErrorCode::ProviderError);
    assert!(failure.retryable);
    assert!(failure.message.contains("1000 ms"), "{failure}");
    assert_eq!(
        delays(&events).len(),
        1,
        "silence before any text is tried again"
    );
    assert!(began.elapsed() >= Duration::from_millis(2_450));
    assert!(began.elapsed() < Duration::from_millis(2_700));
    assert_eq!(stored_lines(&rig.stored())[2..], ["assistant: ok (Failed)"]);
    assert_eq!(rig.provider.streams_open(), 0);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn the_idle_limit_counts_gaps_not_the_whole_answer_and_can_be_off() {
    let config = |limit| AgentConfig {
        provider_idle_timeout_ms: limit,
        ..config()
    };
    let rig = Rig::with(provider(), config(1_000), |builder| builder).await;
    let answer = rig.provider.manual();
    let turn = rig.session.send("hi").unwrap();
    answer.started().await;
    for _ in 0..10 {
        answer.text("a");
        tokio::task::yield_now().await;
        tokio::time::advance(Duration::from_millis(900)).await;
    }
    answer.done();
    assert_eq!(*turn.outcome().await.assistant_output, *"a".repeat(10));
    rig.epilogue().await;

    let rig = Rig::with(provider(), config(0), |builder| builder).await;
    let answer = rig.provider.manual();
    let turn = rig.session.send("hi").unwrap();
    answer.started().await;
    tokio::time::advance(Duration::from_secs(86_400)).await;
    answer.text("late");
    answer.done();
    assert_eq!(*turn.outcome().await.assistant_output, *"late");
    rig.epilogue().await;
}
