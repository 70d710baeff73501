//! The system prompt: its sections, their order, and that it stays what it was (chapter 5.3).

use serde_json::json;
use youyou_agent::testing::{
    InMemoryMemories, RecordingTool, call, done, memory, text, text_model,
};
use youyou_agent::{
    AgentConfig, ChatRequest, HookOutcome, HookRegistry, Plugin, PluginError, ResumeOptions,
    SendOptions, SessionConfig, SkillDefinition, TurnStart, TurnStartChange,
};

use crate::look::system;
use crate::rig::{Rig, config, provider};

struct Guard;

#[async_trait::async_trait]
impl Plugin for Guard {
    fn id(&self) -> &str {
        "guard"
    }

    fn description(&self) -> &str {
        "Watches over commands."
    }

    fn apply(&self, hooks: &mut HookRegistry) -> Result<(), PluginError> {
        hooks.turn_start("mood", |_: TurnStart| async {
            Ok(HookOutcome::ContinueWith(TurnStartChange {
                user_input: None,
                prompt_sections: vec!["The user is in a hurry.".into()],
            }))
        });
        Ok(())
    }
}

fn full() -> AgentConfig {
    AgentConfig {
        system_instructions: vec!["You help.".into(), " ".into(), "You are brief.".into()],
        personality: Some("Friendly.".into()),
        environment: Some("OS: Linux\nTime: noon".into()),
        ..config()
    }
}

async fn rig() -> Rig {
    let provider = provider()
        .model(text_model("m2"))
        .always(|_| [text("answer"), done()]);
    let memories = InMemoryMemories::new();
    memories.preload([memory("1", "", "The user likes tea.")]);
    Rig::with(provider, full(), |builder| {
        builder
            .tool(RecordingTool::read_only("zeta"))
            .tool(RecordingTool::mutating("alpha").parameters(json!({"type": "object"})))
            .skill(SkillDefinition {
                description: "Writes a commit message".into(),
                allow_implicit_invocation: true,
                ..SkillDefinition::new("commit", "x")
            })
            .plugin(Guard)
            .memory_storage(memories)
    })
    .await
}

fn starts(request: &ChatRequest) -> Vec<(String, bool)> {
    let line = |text: &str| text.lines().next().unwrap_or_default().to_owned();
    request
        .system
        .iter()
        .map(|block| (line(&block.text), block.stable))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn the_sections_stand_in_the_documents_order_the_dynamic_ones_last() {
    let rig = rig().await;
    rig.send("tea?").await;
    let request = rig.request(1);
    let expected = [
        ("You help.", true),
        ("# Personality", true),
        ("# Tools", true),
        ("# Skills", true),
        ("# Active plugins", true),
        ("# Memories", true),
        ("# Environment", true),
        ("The user is in a hurry.", false),
    ];
    assert_eq!(
        starts(&request),
        expected.map(|(line, stable)| (line.to_owned(), stable))
    );
    let prompt = system(&request);
    assert!(
        prompt.starts_with("You help.\n\nYou are brief."),
        "{prompt}"
    );
    for said in [
        "Friendly.",
        "- alpha: The test tool alpha.",
        "- /commit: Writes a commit message",
        "- guard: Watches over commands.",
        "- The user likes tea.",
        "OS: Linux\nTime: noon",
    ] {
        assert!(prompt.contains(said), "{said}: {prompt}");
    }
    assert!(prompt.find("- alpha").unwrap() < prompt.find("- zeta").unwrap());
    let tools: Vec<&str> = request.tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(tools, ["alpha", "zeta"]);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn the_prompt_is_the_same_bytes_in_every_request_after_compaction_and_after_resume() {
    let mut rig = rig().await;
    rig.provider.queue([call("c1", "zeta", "{}"), done()]);
    rig.send("tea?").await;
    for n in 0..10 {
        rig.send(format!("more {n}")).await;
    }
    rig.session.compact().await.unwrap();
    rig.send("after compaction").await;
    let first = rig.request(1);
    // Summaries and extractions have prompts of their own, and no tools.
    let answers = rig
        .provider
        .requests()
        .into_iter()
        .filter(|request| !request.tools.is_empty());
    let mut compared = 0;
    for request in answers {
        assert_eq!(
            (&request.system, &request.tools),
            (&first.system, &first.tools)
        );
        compared += 1;
    }
    assert_eq!(compared, 13);
    // A resume asks for memories anew, by the session's first words; all sections are there.
    rig.reopen().await;
    rig.send("after resume").await;
    assert_eq!(
        starts(&rig.provider.last_request().unwrap()),
        starts(&first)
    );
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn another_model_gets_the_same_prompt() {
    let rig = rig().await;
    rig.send("tea?").await;
    let options = SendOptions {
        model_id: Some("m2".into()),
        ..SendOptions::default()
    };
    rig.session
        .send_with("more", options)
        .unwrap()
        .outcome()
        .await;
    assert_eq!(rig.request(2).system, rig.request(1).system);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn dynamic_sections_are_of_their_turn() {
    struct Once(std::sync::atomic::AtomicBool);

    #[async_trait::async_trait]
    impl Plugin for Once {
        fn id(&self) -> &str {
            "once"
        }

        fn apply(&self, hooks: &mut HookRegistry) -> Result<(), PluginError> {
            let done = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(
                self.0.load(std::sync::atomic::Ordering::Relaxed),
            ));
            hooks.turn_start("first", move |_: TurnStart| {
                let again = done.swap(true, std::sync::atomic::Ordering::Relaxed);
                async move {
                    Ok(if again {
                        HookOutcome::Continue
                    } else {
                        HookOutcome::ContinueWith(TurnStartChange {
                            user_input: None,
                            prompt_sections: vec!["FIRST TURN".into()],
                        })
                    })
                }
            });
            Ok(())
        }
    }

    let provider = provider()
        .reply([call("c1", "t", "{}"), done()])
        .always(|_| [text("answer"), done()]);
    let rig = Rig::with(provider, config(), |builder| {
        builder
            .tool(RecordingTool::read_only("t"))
            .plugin(Once(Default::default()))
    })
    .await;
    rig.send("one").await;
    rig.send("two").await;
    let has: Vec<bool> = rig
        .provider
        .requests()
        .iter()
        .map(|request| system(request).contains("FIRST TURN"))
        .collect();
    assert_eq!(has, [true, true, false]);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_session_has_its_own_instructions_personality_and_environment() {
    let mut rig = rig().await;
    rig.session.close().await.unwrap();
    rig.session = rig
        .agent
        .create_session(SessionConfig {
            system_instructions: Some(vec!["You translate.".into()]),
            personality: Some("Dry.".into()),
            environment: Some("OS: Plan 9".into()),
            ..SessionConfig::default()
        })
        .await
        .unwrap();
    rig.send("hi").await;
    let prompt = system(&rig.request(1));
    for said in ["You translate.", "Dry.", "OS: Plan 9"] {
        assert!(prompt.contains(said), "{prompt}");
    }
    for not in ["You help.", "Friendly.", "Linux"] {
        assert!(!prompt.contains(not), "{prompt}");
    }
    // The overrides are stored; the environment is taken anew.
    let id = rig.session.id().to_owned();
    rig.session.close().await.unwrap();
    let options = ResumeOptions {
        environment: Some("OS: Haiku".into()),
        ..ResumeOptions::default()
    };
    rig.session = rig.agent.resume_session(&id, options).await.unwrap();
    rig.send("again").await;
    let prompt = system(&rig.provider.last_request().unwrap());
    for said in ["You translate.", "Dry.", "OS: Haiku"] {
        assert!(prompt.contains(said), "{prompt}");
    }
    assert!(
        !prompt.contains("Plan 9") && !prompt.contains("Linux"),
        "{prompt}"
    );
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn sections_with_nothing_to_say_are_left_out() {
    let blank = AgentConfig {
        system_instructions: vec!["  ".into(), String::new()],
        personality: Some("\n".into()),
        environment: Some(" ".into()),
        ..config()
    };
    let provider = provider().always(|_| [text("answer"), done()]);
    let rig = Rig::with(provider, blank, |builder| builder).await;
    rig.send("hi").await;
    assert!(rig.request(1).system.is_empty());
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn tool_definitions_can_be_left_out_of_the_prompt() {
    let config = AgentConfig {
        tool_definitions_in_prompt: false,
        ..config()
    };
    let provider = provider().always(|_| [text("answer"), done()]);
    let rig = Rig::with(provider, config, |builder| {
        builder.tool(RecordingTool::read_only("t"))
    })
    .await;
    rig.send("hi").await;
    assert!(rig.request(1).system.is_empty());
    assert_eq!(rig.request(1).tools.len(), 1);
    rig.epilogue().await;
}
