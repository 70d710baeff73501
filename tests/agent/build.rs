//! Chapters 4 and 6.1: what a build checks, and what it is configured with.

use std::num::NonZeroUsize;
use std::sync::Arc;

use serde_json::json;
use youyou_agent::testing::{
    InMemoryMemories, InMemorySessions, RecordingTool, ScriptedProvider, done, text, text_model,
};
use youyou_agent::{
    Agent, AgentBuilder, AgentConfig, AgentError, ErrorCode, ErrorOrigin, SkillDefinition,
};

use crate::probe::{Lines, Probe};
use crate::rig::{MODEL, Rig, config, provider};

fn builder() -> AgentBuilder {
    AgentBuilder::new(config()).provider(provider())
}

async fn refused(builder: AgentBuilder) -> AgentError {
    let lines = Lines::default();
    let watched = builder.plugin(Probe::new("watch").logged_in(&lines));
    let error = watched.build().await.expect_err("the build is refused");
    assert_eq!(
        lines.all(),
        Vec::<String>::new(),
        "nothing was started: {error}"
    );
    assert!(!error.retryable);
    assert_eq!(error.origin, ErrorOrigin::Agent);
    error
}

#[tokio::test]
async fn a_build_needs_a_provider() {
    let error = refused(AgentBuilder::new(config())).await;
    assert_eq!(error.code, ErrorCode::NoModelProvider);
    assert!(error.message.contains("provider"), "{error}");
}

#[tokio::test]
async fn names_are_unique_each_kind_for_itself() {
    let skill = |name: &str| SkillDefinition::new(name, "Do it.");
    let twice = [
        (builder().provider(provider()), "scripted"),
        (
            builder().provider(ScriptedProvider::new("other").model(text_model(MODEL))),
            MODEL,
        ),
        (
            AgentBuilder::new(config()).provider(
                provider()
                    .model(text_model("twin"))
                    .model(text_model("twin")),
            ),
            "twin",
        ),
        (
            builder()
                .tool(RecordingTool::read_only("read"))
                .tool(RecordingTool::mutating("read")),
            "read",
        ),
        (
            builder().skill(skill("commit")).skill(skill("commit")),
            "commit",
        ),
        (
            builder().plugin(Probe::new("p")).plugin(Probe::new("p")),
            "p",
        ),
    ];
    for (builder, name) in twice {
        let error = refused(builder).await;
        assert_eq!(error.code, ErrorCode::NameConflict);
        assert!(error.message.contains(&format!("\"{name}\"")), "{error}");
    }
    // The same name in two kinds is no conflict, nor is another case.
    builder()
        .tool(RecordingTool::read_only("same"))
        .tool(RecordingTool::read_only("Same"))
        .skill(skill("same"))
        .plugin(Probe::new("same"))
        .build()
        .await
        .unwrap();
}

#[tokio::test]
async fn a_skill_needs_its_tools() {
    let skill = SkillDefinition {
        required_tools: vec!["there".into(), "missing".into()],
        ..SkillDefinition::new("commit", "Do it.")
    };
    let error = refused(
        builder()
            .tool(RecordingTool::read_only("there"))
            .skill(skill.clone()),
    )
    .await;
    assert_eq!(error.code, ErrorCode::SkillDependencyNotMet);
    assert!(error.message.contains("\"commit\"") && error.message.contains("\"missing\""));
    // In whatever order they are registered.
    builder()
        .skill(skill)
        .tool(RecordingTool::read_only("there"))
        .tool(RecordingTool::read_only("missing"))
        .build()
        .await
        .unwrap();
}

#[tokio::test]
async fn at_most_one_storage_of_each_kind() {
    let sessions = builder()
        .session_storage(InMemorySessions::new())
        .session_storage(InMemorySessions::new());
    let memories = builder()
        .memory_storage(InMemoryMemories::new())
        .memory_storage(InMemoryMemories::new());
    for (builder, kind) in [(sessions, "session"), (memories, "memory")] {
        let error = refused(builder).await;
        assert_eq!(error.code, ErrorCode::StorageDuplicate);
        assert!(error.message.contains(kind), "{error}");
    }
    builder()
        .session_storage(InMemorySessions::new())
        .memory_storage(InMemoryMemories::new())
        .build()
        .await
        .unwrap();
}

#[tokio::test]
async fn the_default_model_must_be_there() {
    let builder = AgentBuilder::new(AgentConfig::new("m9")).provider(provider());
    let error = refused(builder).await;
    assert_eq!(error.code, ErrorCode::InvalidDefaultModel);
    assert!(
        error.message.contains("\"m9\"") && error.message.contains(MODEL),
        "{error}"
    );
    // A provider without models may be registered; it may gain some.
    builder_with_empty().build().await.unwrap();
}

fn builder_with_empty() -> AgentBuilder {
    builder().provider(ScriptedProvider::new("empty"))
}

#[tokio::test]
async fn a_tool_whose_schema_is_none_fails_the_build() {
    let tool = RecordingTool::read_only("broken").parameters(json!({"type": 7}));
    let error = refused(builder().tool(tool)).await;
    assert_eq!(error.code, ErrorCode::InvalidConfig);
    assert!(error.message.contains("broken"), "{error}");
}

#[tokio::test]
async fn bad_values_fail_the_build_and_name_their_field() {
    type Change = fn(&mut AgentConfig);
    let bad: Vec<(&str, Change)> = vec![
        ("compact_threshold", |c| c.compact_threshold = -0.1),
        ("compact_threshold", |c| c.compact_threshold = 1.01),
        ("compact_threshold", |c| c.compact_threshold = f64::NAN),
        ("compact_threshold", |c| c.compact_threshold = f64::INFINITY),
        ("tool_timeout_ms", |c| c.tool_timeout_ms = 0),
        ("max_tool_calls_per_turn", |c| c.max_tool_calls_per_turn = 0),
        ("memory_checkpoint_interval", |c| {
            c.memory_checkpoint_interval = 0
        }),
        ("memory_timeout_ms", |c| c.memory_timeout_ms = 0),
        ("memory_search_timeout_ms", |c| {
            c.memory_search_timeout_ms = 0
        }),
        ("hook_timeout_ms", |c| c.hook_timeout_ms = 0),
        ("plugin_timeout_ms", |c| c.plugin_timeout_ms = 0),
        ("retry_base_ms", |c| c.retry_base_ms = 0),
        ("retry_max_delay_ms", |c| c.retry_max_delay_ms = 0),
        ("storage_timeout_ms", |c| c.storage_timeout_ms = 0),
        ("shutdown_timeout_ms", |c| c.shutdown_timeout_ms = 0),
        ("tool_output_limit_bytes", |c| c.tool_output_limit_bytes = 0),
    ];
    for (field, change) in bad {
        let mut config = config();
        change(&mut config);
        let error = refused(AgentBuilder::new(config).provider(provider())).await;
        assert_eq!(error.code, ErrorCode::InvalidConfig, "{field}");
        assert!(error.message.contains(field), "{error}");
    }
}

#[tokio::test]
async fn the_documents_values_are_the_defaults_and_zero_is_legal_where_it_means_something() {
    let defaults = AgentConfig::new("m1");
    let expected = AgentConfig {
        default_model: "m1".into(),
        system_instructions: Vec::new(),
        personality: None,
        environment: None,
        tool_timeout_ms: 120_000,
        compact_threshold: 0.8,
        compact_model: None,
        compact_prompt: None,
        compact_keep_recent: 8,
        max_tool_calls_per_turn: 50,
        memory_model: None,
        memory_checkpoint_interval: 10,
        memory_max_items: 20,
        memory_namespace: None,
        memory_timeout_ms: 15_000,
        memory_search_timeout_ms: 2_000,
        hook_timeout_ms: 30_000,
        plugin_timeout_ms: 10_000,
        provider_idle_timeout_ms: 300_000,
        max_retries: 2,
        retry_base_ms: 500,
        retry_max_delay_ms: 60_000,
        storage_timeout_ms: 10_000,
        shutdown_timeout_ms: 5_000,
        tool_output_limit_bytes: 1_048_576,
        tool_arguments_limit_bytes: 4_194_304,
        response_limit_bytes: 33_554_432,
        event_log_limit_bytes: 67_108_864,
        max_open_sessions: 1,
        notes: youyou_agent::Notes::default(),
        tool_definitions_in_prompt: true,
    };
    assert_eq!(defaults, expected);
    for threshold in [0.0, 1.0] {
        let config = AgentConfig {
            memory_max_items: 0,
            compact_keep_recent: 0,
            max_retries: 0,
            provider_idle_timeout_ms: 0,
            compact_threshold: threshold,
            ..config()
        };
        AgentBuilder::new(config)
            .provider(provider())
            .build()
            .await
            .unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn an_unknown_helper_model_is_no_reason_to_refuse() {
    let config = AgentConfig {
        compact_model: Some("gone".into()),
        memory_model: Some("gone".into()),
        ..config()
    };
    let provider = provider().always(|_| [text("ok"), done()]);
    let rig = Rig::with(provider, config, |builder| builder).await;
    rig.send("hi").await;
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn an_agent_with_a_provider_alone_is_a_whole_agent() {
    // Chapter 1: where an optional part is not registered, the agent works without it.
    let provider = provider().always(|_| [text("ok"), done()]);
    let agent: Agent = AgentBuilder::new(config())
        .provider(provider.clone())
        .build()
        .await
        .unwrap();
    assert!(agent.tools().is_empty());
    assert!(agent.skills().is_empty());
    let session = agent.create_session(Default::default()).await.unwrap();
    let outcome = session.send("/not a skill").unwrap().outcome().await;
    assert_eq!(*outcome.assistant_output, *"ok");
    let listed = agent
        .list_sessions(None, NonZeroUsize::new(10))
        .await
        .unwrap();
    assert!(listed.sessions.is_empty() && listed.next_cursor.is_none());
    assert!(agent.find_sessions("a").await.unwrap().is_empty());
    let id = session.id().to_owned();
    assert_eq!(
        agent
            .session_history(&id, None, NonZeroUsize::new(10))
            .await
            .unwrap()
            .events
            .len(),
        3
    );
    session.close().await.unwrap();
    let missing = agent
        .resume_session(&id, Default::default())
        .await
        .unwrap_err();
    assert_eq!(missing.code, ErrorCode::SessionNotFound);
    assert_eq!(provider.violations(), Vec::<String>::new());
    assert_eq!(agent.shutdown().await.problems, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn parts_that_are_used_elsewhere_too_can_be_registered_shared() {
    let provider = Arc::new(provider().always(|_| [text("ok"), done()]));
    let storage = Arc::new(InMemorySessions::new());
    let agent = AgentBuilder::new(config())
        .provider(provider.clone())
        .tool(Arc::new(RecordingTool::read_only("t")))
        .session_storage(storage.clone())
        .memory_storage(Arc::new(InMemoryMemories::new()))
        .plugin_with_config(Arc::new(Probe::new("p")), json!({"a": 1}))
        .build()
        .await
        .unwrap();
    let session = agent.create_session(Default::default()).await.unwrap();
    session.send("hi").unwrap().outcome().await;
    assert_eq!(storage.session_ids(), [session.id()]);
}
