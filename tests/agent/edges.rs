//! Values at the edge: options, names, titles, numbers and pages.

use std::num::NonZeroUsize;
use std::time::Duration;

use youyou_agent::testing::{
    Fault, FaultySessions, Gate, InMemorySessions, SessionOperation, When, assistant_message,
    collect, done, error, session_created, text, text_part, user_message,
};
use youyou_agent::{
    AgentBuilder, AgentConfig, AgentEventKind, ErrorCode, ModelInfo, ProviderErrorKind,
    ResponseFormat, ResumeOptions, SendOptions, SessionConfig, SkillDefinition,
};

use crate::histories::{STORED, compacting, storage_with, summarised_by};
use crate::rig::{Rig, config, provider, provider_with_window};
use crate::said::{said, stored_lines};

#[tokio::test(start_paused = true)]
async fn options_that_no_model_takes_are_refused_and_leave_no_trace() {
    let rig = Rig::new(provider()).await;
    let with = |change: fn(&mut SendOptions)| {
        let mut options = SendOptions::default();
        change(&mut options);
        options
    };
    for (options, named) in [
        (with(|o| o.temperature = Some(f32::NAN)), "temperature"),
        (with(|o| o.temperature = Some(f32::INFINITY)), "temperature"),
        (with(|o| o.temperature = Some(-0.1)), "temperature"),
        (with(|o| o.max_tokens = Some(0)), "max_tokens"),
        (
            with(|o| {
                let schema = serde_json::json!("none");
                o.response_format = Some(ResponseFormat::json_schema("answer", schema));
            }),
            "response_format",
        ),
    ] {
        let refused = rig.session.send_with("hi", options).unwrap_err();
        assert_eq!(refused.code, ErrorCode::InvalidInput);
        assert!(refused.message.contains(named), "{}", refused.message);
    }
    assert_eq!((rig.stored().len(), rig.provider.request_count()), (0, 0));
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn long_names_are_refused_with_a_short_message() {
    // X9
    let long = "x".repeat(20_000_000);
    let skill = SkillDefinition::new("commit", "Write a commit message.");
    let rig = Rig::with(provider(), config(), |builder| builder.skill(skill)).await;
    let model = SendOptions {
        model_id: Some(long.clone()),
        ..SendOptions::default()
    };
    let create = SessionConfig {
        title: Some(long.clone()),
        replace: true,
        ..SessionConfig::default()
    };
    let agent = rig.agent.clone();
    let errors = [
        rig.session.send(format!("/{long}")).unwrap_err(),
        rig.session.send_with("hi", model).unwrap_err(),
        agent.delete_session(&long).await.unwrap_err(),
        agent.session_history(&long, None, None).await.unwrap_err(),
        agent
            .rename_session(rig.session.id(), &long)
            .await
            .unwrap_err(),
        agent
            .resume_session(
                &long,
                ResumeOptions {
                    replace: true,
                    ..ResumeOptions::default()
                },
            )
            .await
            .unwrap_err(),
    ];
    for error in errors {
        assert!(error.message.len() < 1_000, "{}", error.message.len());
    }
    let mut rig = rig;
    let error = agent.create_session(create).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidInput);
    assert!(error.message.len() < 1_000);
    rig = rig.anew().await;
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_title_given_while_the_session_is_stored_for_the_first_time_stays() {
    // C31
    let storage = InMemorySessions::new();
    let wrapped = FaultySessions::new(storage.clone());
    let faults = wrapped.faults().clone();
    let provider = provider().always(|_| [text("ok"), done()]);
    let rig = Rig::over(provider, config(), storage, wrapped, |builder| builder).await;
    let gate = Gate::closed();
    let slow = Fault::Gate(gate.clone());
    faults.inject(SessionOperation::Append, When::Nth(1), slow);
    let turn = rig.session.send("first words").unwrap();
    tokio::time::sleep(Duration::from_millis(5)).await;
    let id = rig.session.id().to_owned();
    rig.agent.rename_session(&id, "Mine").await.unwrap();
    gate.open();
    collect(turn).await;
    assert_eq!(rig.session.info().title.as_deref(), Some("Mine"));
    let listed = rig.agent.list_sessions(None, None).await.unwrap();
    assert_eq!(listed.sessions[0].title, "Mine");
    let mut rig = rig;
    rig.reopen().await;
    assert_eq!(rig.session.info().title.as_deref(), Some("Mine"));
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn numbers_at_their_edge_do_not_overflow() {
    // X13
    let config = AgentConfig {
        tool_timeout_ms: u64::MAX,
        hook_timeout_ms: u64::MAX,
        plugin_timeout_ms: u64::MAX,
        provider_idle_timeout_ms: u64::MAX,
        retry_base_ms: u64::MAX,
        retry_max_delay_ms: u64::MAX,
        storage_timeout_ms: u64::MAX,
        memory_timeout_ms: u64::MAX,
        memory_search_timeout_ms: u64::MAX,
        shutdown_timeout_ms: u64::MAX,
        max_retries: u32::MAX,
        max_tool_calls_per_turn: u32::MAX,
        tool_output_limit_bytes: usize::MAX,
        tool_arguments_limit_bytes: usize::MAX,
        response_limit_bytes: usize::MAX,
        compact_threshold: 1.0,
        ..config()
    };
    let kind = ProviderErrorKind::RateLimited {
        retry_after_ms: Some(1),
    };
    let provider = provider_with_window(u32::MAX)
        .reply([error(kind, "slow down")])
        .reply([text("ok"), done()]);
    let rig = Rig::with(provider, config, |builder| builder).await;
    let events = rig.send("hi").await;
    assert!(matches!(
        events.last().unwrap().kind,
        AgentEventKind::TurnComplete { .. }
    ));
    assert!(rig.session.compact().await.is_ok());
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_session_goes_on_from_the_newest_of_its_compactions() {
    // C36
    let provider = summarised_by(provider_with_window(2_000), {
        let count = std::sync::atomic::AtomicUsize::new(0);
        move || {
            let n = count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            vec![text(format!("SUMMARY {n}")), done()]
        }
    })
    .always(|_| [text("ok"), done()]);
    let mut rig = Rig::with(provider, compacting(), |builder| builder).await;
    for _ in 0..40 {
        rig.send("word ".repeat(100)).await;
    }
    let before = said(&rig.provider.last_request().unwrap());
    let compactions = stored_lines(&rig.stored());
    let count = compactions
        .iter()
        .filter(|line| line.starts_with("compacted"))
        .count();
    assert!(count >= 3, "{count} compactions");
    assert!(!before[0].contains("SUMMARY 0"), "{}", before[0]);
    rig.reopen().await;
    rig.send("next").await;
    let after = said(&rig.provider.last_request().unwrap());
    assert_eq!(after[0], before[0]);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn the_size_of_the_context_is_known_right_after_a_resume() {
    let instructions = "word ".repeat(400);
    let config = AgentConfig {
        system_instructions: vec![instructions],
        ..config()
    };
    let storage = storage_with([
        user_message(0, &"word ".repeat(400)),
        assistant_message(0, [text_part("ok")]),
    ]);
    let rig = Rig::resumed(provider(), config, storage, STORED, |builder| builder).await;
    let tokens = rig.session.info().context_tokens;
    assert!((1_000..1_200).contains(&tokens), "{tokens}");
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_page_of_history_is_limited_by_bytes_too() {
    let storage = InMemorySessions::new();
    let large = "x".repeat(1_500_000);
    let mut events = vec![session_created(0, "A title", "m1")];
    events.extend((1..=10).map(|index| user_message(index, &large)));
    storage.preload(STORED, events);
    let agent = AgentBuilder::new(config())
        .provider(provider())
        .session_storage(storage)
        .build()
        .await
        .unwrap();
    let (mut read, mut pages, mut cursor) = (0, 0, None);
    loop {
        let page = agent
            .session_history(STORED, cursor, NonZeroUsize::new(1_000))
            .await
            .unwrap();
        assert!(
            page.events.len() <= 4,
            "{} events of 1.5 MB",
            page.events.len()
        );
        (read, pages) = (read + page.events.len(), pages + 1);
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!((read, pages), (11, 4));
}

#[tokio::test(start_paused = true)]
async fn a_compaction_cancelled_while_its_record_is_written_changes_nothing() {
    let storage = InMemorySessions::new();
    let wrapped = FaultySessions::new(storage.clone());
    let faults = wrapped.faults().clone();
    let provider = summarised_by(provider_with_window(4_000), || {
        vec![text("SUMMARY"), done()]
    })
    .always(|_| [text("ok"), done()]);
    let rig = Rig::over(provider, compacting(), storage, wrapped, |builder| builder).await;
    for _ in 0..5 {
        rig.send("word ".repeat(100)).await;
    }
    let before = rig.session.info().context_tokens;
    faults.inject(SessionOperation::Append, When::Nth(1), Fault::Hang);
    let session = rig.session.clone();
    let compacting = tokio::spawn(async move { session.compact().await });
    tokio::time::sleep(Duration::from_millis(50)).await;
    let began = tokio::time::Instant::now();
    assert!(rig.session.cancel(None));
    let refused = compacting.await.unwrap().unwrap_err();
    assert_eq!(refused.code, ErrorCode::RequestCancelled);
    assert!(began.elapsed() <= Duration::from_secs(1));
    assert_eq!(rig.session.info().context_tokens, before);
    faults.heal();
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn blank_ids_fail_the_build() {
    struct Nameless;
    impl youyou_agent::Plugin for Nameless {
        fn id(&self) -> &str {
            " "
        }
        fn apply(
            &self,
            _: &mut youyou_agent::HookRegistry,
        ) -> Result<(), youyou_agent::PluginError> {
            Ok(())
        }
    }
    let built = AgentBuilder::new(config())
        .provider(provider())
        .plugin(Nameless)
        .build()
        .await;
    assert_eq!(built.unwrap_err().code, ErrorCode::InvalidConfig);
}

#[tokio::test(start_paused = true)]
async fn what_a_replaced_session_lost_is_told_by_the_answer() {
    let storage = InMemorySessions::new();
    let wrapped = FaultySessions::new(storage.clone());
    let faults = wrapped.faults().clone();
    let provider = provider().always(|_| [text("ok"), done()]);
    let rig = Rig::over(provider, config(), storage, wrapped, |builder| builder).await;
    faults.fail(SessionOperation::Append, When::From(2));
    rig.send("hi").await;
    let lost = rig.session.id().to_owned();
    let replace = SessionConfig {
        replace: true,
        ..SessionConfig::default()
    };
    let next = rig.agent.create_session(replace).await.unwrap();
    let warnings = next.info().warnings;
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].contains(&lost) && warnings[0].contains("lost"),
        "{warnings:?}"
    );
    faults.heal();
    let rig = Rig {
        session: next,
        ..rig
    };
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_model_of_the_largest_window_is_listed_as_it_is() {
    let provider = youyou_agent::testing::ScriptedProvider::new("p").model(ModelInfo::new(
        "m1",
        "Large",
        u32::MAX,
        youyou_agent::Capabilities::default(),
    ));
    let rig = Rig::new(provider).await;
    assert_eq!(rig.session.info().context_window, u32::MAX);
    rig.epilogue().await;
}
