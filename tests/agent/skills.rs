//! Area G, fourth part: skills (chapters 3.3 and 5.5).

use serde_json::json;
use youyou_agent::testing::{RecordingTool, ScriptedProvider, call, collect, done, error, text};
use youyou_agent::{
    AgentBuilder, AgentConfig, ContentBlock, ErrorCode, HookOutcome, ProviderErrorKind,
    SessionEventKind, SkillDefinition, TurnStart, TurnStartChange, UserOrigin,
};

use crate::look::{assert_completed, everything, system, user_side};
use crate::probe::Probe;
use crate::rig::{Rig, config, provider, provider_with_window};

const MARK: &str = "MARK-4711";

fn commit() -> SkillDefinition {
    SkillDefinition {
        description: "Writes a commit message".into(),
        ..SkillDefinition::new("commit", format!("{MARK}: write a commit message."))
    }
}

fn answering() -> ScriptedProvider {
    provider().always(|_| [text("answer"), done()])
}

fn with_skills(builder: AgentBuilder) -> AgentBuilder {
    builder
        .skill(commit())
        .skill(SkillDefinition::new("usr", "Not this one."))
        .skill(SkillDefinition::new("提交", "MARK-4711 in Chinese"))
}

/// What the user's messages in the storage say.
fn stored_words(rig: &Rig) -> Vec<Vec<ContentBlock>> {
    let words = |kind| match kind {
        SessionEventKind::UserMessage { content, .. } => Some(content),
        _ => None,
    };
    rig.stored()
        .into_iter()
        .filter_map(|event| words(event.kind))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn text_that_only_looks_like_a_skill_is_plain_text() {
    // G13
    for words in [
        "/usr/bin/ls 怎么用",
        "/api/接口的实现",
        "/",
        "/ commit",
        "/README.md 看看",
        "/* 注释 */",
        "/commit.md",
        "/commit, please",
        "/commit\\x",
        "/commit:",
        "/commit/",
        " /commit",
        "\n/commit",
        "please /commit",
        "／commit",
        "/～",
        "/😀",
        "// commit",
        "///",
    ] {
        let rig = Rig::with(answering(), config(), with_skills).await;
        assert_completed(&rig.send(words).await, "answer");
        let request = rig.request(1);
        assert_eq!(user_side(&request, UserOrigin::Input), [words]);
        assert_eq!(user_side(&request, UserOrigin::Skill), Vec::<String>::new());
        assert_eq!(stored_words(&rig), [[ContentBlock::text(words)]]);
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn two_slashes_are_an_escape_for_the_plain_text_with_one() {
    // G13
    for (words, plain) in [
        ("//commit", "/commit"),
        ("//commit now", "/commit now"),
        ("//home", "/home"),
        // No name of a skill: as the user wrote it.
        ("//usr/bin", "//usr/bin"),
        ("//TODO: later", "//TODO: later"),
        ("//a.b", "//a.b"),
        ("///", "///"),
    ] {
        let rig = Rig::with(answering(), config(), with_skills).await;
        assert_completed(&rig.send(words).await, "answer");
        let request = rig.request(1);
        assert_eq!(user_side(&request, UserOrigin::Input), [plain]);
        assert!(!everything(&request).contains(MARK));
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_unknown_skill_is_refused_without_a_trace() {
    // G13
    for (words, named) in [
        ("/home", "//home"),
        ("/Commit a", "//Commit"),
        ("/comit a", "/commit"),
        ("/comm", "/commit"),
        ("/提\u{4ea4}了", "/提交"),
        ("/commit_", "/commit"),
        ("/123", "//123"),
    ] {
        let rig = Rig::with(answering(), config(), with_skills).await;
        let refused = rig.session.send(words).unwrap_err();
        assert_eq!(refused.code, ErrorCode::SkillNotFound, "{words}");
        assert!(refused.message.contains(named), "{}", refused.message);
        assert!(refused.message.contains("\"//"), "{}", refused.message);
        assert_eq!((rig.stored().len(), rig.provider.request_count()), (0, 0));
        assert_completed(&rig.send("hello").await, "answer");
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn without_any_skill_a_slash_is_plain_text() {
    for words in ["/home", "/commit a", "/"] {
        let rig = Rig::with(answering(), config(), |builder| builder).await;
        assert_completed(&rig.send(words).await, "answer");
        assert_eq!(user_side(&rig.request(1), UserOrigin::Input), [words]);
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_skill_puts_its_prompt_and_the_argument_before_the_users_own_words() {
    for (words, argument) in [
        ("/commit", None),
        ("/commit a b", Some("a b")),
        ("/commit\nfix the bug", Some("fix the bug")),
        ("/commit\u{3000}修复", Some("修复")),
        ("/提交 修复", Some("修复")),
    ] {
        let rig = Rig::with(answering(), config(), with_skills).await;
        assert_completed(&rig.send(words).await, "answer");
        let request = rig.request(1);
        let origins: Vec<String> = request
            .messages
            .iter()
            .map(|message| message.text())
            .collect();
        let [prompt, own] = &origins[..] else {
            panic!("{origins:?}")
        };
        assert_eq!(own, words);
        assert_eq!(user_side(&request, UserOrigin::Skill), [prompt.as_str()]);
        assert!(prompt.contains(MARK), "{prompt}");
        if let Some(argument) = argument {
            assert!(prompt.ends_with(argument), "{prompt}");
        }
        assert_eq!(stored_words(&rig), [[ContentBlock::text(words)]]);
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_text_block_calls_the_skill_though_a_picture_or_file_stands_before_it() {
    let picture = ContentBlock::image("image/png", crate::input::PNG);
    for before in [
        picture,
        ContentBlock::file("a.txt", "alpha"),
        ContentBlock::text(" "),
    ] {
        let rig = Rig::with(answering(), config(), with_skills).await;
        let input = vec![before, ContentBlock::text("/commit a")];
        assert_completed(&rig.send(input).await, "answer");
        let prompts = user_side(&rig.request(1), UserOrigin::Skill);
        assert!(
            prompts.len() == 1 && prompts[0].contains(MARK),
            "{prompts:?}"
        );
        rig.epilogue().await;
    }
    // Not a later one, and not what a file holds.
    for input in [
        vec![ContentBlock::text("see"), ContentBlock::text("/commit a")],
        vec![
            ContentBlock::file("a.txt", "/commit a"),
            ContentBlock::text("see"),
        ],
        vec![ContentBlock::file("a.txt", "/commit a")],
    ] {
        let rig = Rig::with(answering(), config(), with_skills).await;
        assert_completed(&rig.send(input).await, "answer");
        assert!(!everything(&rig.request(1)).contains(MARK));
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_skill_belongs_to_its_turn_and_to_every_request_of_it() {
    // G15
    let provider = provider()
        .reply([call("c1", "t", "{}"), done()])
        .reply([call("c2", "t", "{}"), done()])
        .always(|_| [text("answer"), done()]);
    let mut rig = Rig::with(provider, config(), |builder| {
        with_skills(builder).tool(RecordingTool::read_only("t"))
    })
    .await;
    assert_completed(&rig.send("/commit a").await, "answer");
    for number in 1..=3 {
        let request = rig.request(number);
        assert_eq!(
            user_side(&request, UserOrigin::Skill).len(),
            1,
            "request {number}"
        );
        assert_eq!(user_side(&request, UserOrigin::Input), ["/commit a"]);
    }
    for n in 2..=5 {
        rig.send(format!("turn {n}")).await;
    }
    rig.session.compact().await.unwrap();
    rig.send("after compaction").await;
    rig.reopen().await;
    rig.send("after resume").await;
    for number in 4..=rig.provider.request_count() {
        assert!(
            !everything(&rig.request(number)).contains(MARK),
            "request {number}"
        );
    }
    assert!(!format!("{:?}", rig.stored()).contains(MARK));
    assert_eq!(rig.session.info().title.as_deref(), Some("/commit a"));
    assert_eq!(stored_words(&rig)[0], [ContentBlock::text("/commit a")]);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_skill_stays_through_a_compaction_within_its_turn() {
    // G15
    let provider = provider_with_window(3_000).always(|_| [text("answer"), done()]);
    let config = AgentConfig {
        compact_keep_recent: 1,
        ..config()
    };
    let rig = Rig::with(provider, config, with_skills).await;
    for _ in 0..4 {
        rig.send("x".repeat(1_800)).await;
    }
    let asked = rig.provider.request_count();
    let words = format!("/commit {}", "y".repeat(1_800));
    let events = rig.send(words.as_str()).await;
    assert!(youyou_agent::testing::kinds(&events).contains(&"contextCompacted"));
    let last = rig.provider.last_request().unwrap();
    assert_eq!(user_side(&last, UserOrigin::Skill).len(), 1);
    assert_eq!(user_side(&last, UserOrigin::Input).last(), Some(&words));
    // The summariser is not told to act on it.
    let summary = everything(&rig.request(asked + 1));
    assert!(!summary.contains(MARK), "{summary}");
    rig.send("next").await;
    assert!(!everything(&rig.provider.last_request().unwrap()).contains(MARK));
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_skill_whose_turn_failed_is_gone_and_comes_back_with_a_retry_also_after_a_resume() {
    // G15
    let provider = provider()
        .reply([error(ProviderErrorKind::Auth, "no key")])
        .reply([error(ProviderErrorKind::Auth, "no key")])
        .always(|_| [text("answer"), done()]);
    let mut rig = Rig::with(provider, config(), with_skills).await;
    rig.send("/commit a").await;
    collect(rig.session.retry_turn().unwrap()).await;
    rig.reopen().await;
    let events = collect(rig.session.retry_turn().unwrap()).await;
    assert_completed(&events, "answer");
    for call in [2, 3] {
        let prompts = user_side(&rig.request(call), UserOrigin::Skill);
        assert!(
            prompts.len() == 1 && prompts[0].contains(MARK),
            "{prompts:?}"
        );
    }
    rig.send("next").await;
    assert!(!everything(&rig.request(4)).contains(MARK));
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn an_escaped_message_stays_plain_when_it_is_run_again_also_after_a_resume() {
    // G13
    let provider = provider()
        .reply([error(ProviderErrorKind::Auth, "no key")])
        .reply([error(ProviderErrorKind::Auth, "no key")])
        .always(|_| [text("answer"), done()]);
    let mut rig = Rig::with(provider, config(), with_skills).await;
    rig.send("//commit a").await;
    collect(rig.session.retry_turn().unwrap()).await;
    rig.reopen().await;
    let events = collect(rig.session.retry_turn().unwrap()).await;
    assert_completed(&events, "answer");
    for call in [2, 3] {
        assert_eq!(
            user_side(&rig.request(call), UserOrigin::Input),
            ["/commit a"]
        );
        assert!(!everything(&rig.request(call)).contains(MARK));
    }
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn what_a_hook_takes_out_of_the_input_is_not_in_the_skills_argument_either() {
    let probe = Probe::tapping("redact", |hooks| {
        hooks.turn_start("hide", |turn: TurnStart| async move {
            let ContentBlock::Text { text } = &turn.user_input[0] else {
                panic!("text")
            };
            Ok(HookOutcome::ContinueWith(TurnStartChange {
                user_input: Some(vec![ContentBlock::text(text.replace("hunter2", "***"))]),
                prompt_sections: Vec::new(),
            }))
        });
    });
    let rig = Rig::with(answering(), config(), |b| with_skills(b).plugin(probe)).await;
    rig.send("/commit with hunter2").await;
    let request = rig.request(1);
    let prompts = user_side(&request, UserOrigin::Skill);
    assert!(
        prompts.len() == 1 && prompts[0].ends_with("with ***"),
        "{prompts:?}"
    );
    assert!(!everything(&request).contains("hunter2"));
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_skill_the_user_called_runs_though_a_hook_rewrote_the_words() {
    let probe = Probe::tapping("date", |hooks| {
        hooks.turn_start("stamp", |turn: TurnStart| async move {
            let ContentBlock::Text { text } = &turn.user_input[0] else {
                panic!("text")
            };
            Ok(HookOutcome::ContinueWith(TurnStartChange {
                user_input: Some(vec![ContentBlock::text(format!("[noon] {text}"))]),
                prompt_sections: Vec::new(),
            }))
        });
    });
    let rig = Rig::with(answering(), config(), |b| with_skills(b).plugin(probe)).await;
    rig.send("/commit a").await;
    let prompts = user_side(&rig.request(1), UserOrigin::Skill);
    assert!(
        prompts.len() == 1 && prompts[0].contains(MARK),
        "{prompts:?}"
    );
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn neither_a_hook_nor_the_model_can_call_a_skill() {
    let probe = Probe::tapping("sly", |hooks| {
        hooks.turn_start("call", |_| async {
            Ok(HookOutcome::ContinueWith(TurnStartChange {
                user_input: Some(vec![ContentBlock::text("/commit a")]),
                prompt_sections: Vec::new(),
            }))
        });
    });
    let provider = provider().always(|_| [text("/commit now"), done()]);
    let rig = Rig::with(provider, config(), |b| with_skills(b).plugin(probe)).await;
    rig.send("hello").await;
    rig.send("hello again").await;
    for number in [1, 2] {
        assert!(!everything(&rig.request(number)).contains(MARK));
    }
}

#[tokio::test(start_paused = true)]
async fn only_skills_the_model_may_suggest_are_listed() {
    let listed = SkillDefinition {
        allow_implicit_invocation: true,
        ..commit()
    };
    let rig = Rig::with(answering(), config(), |builder| {
        builder
            .skill(listed)
            .skill(SkillDefinition::new("hidden", "Secret prompt."))
    })
    .await;
    rig.send("hi").await;
    let prompt = system(&rig.request(1));
    assert!(
        prompt.contains("- /commit: Writes a commit message"),
        "{prompt}"
    );
    assert!(
        !prompt.contains("hidden") && !prompt.contains(MARK),
        "{prompt}"
    );
    let names: Vec<String> = rig
        .agent
        .skills()
        .into_iter()
        .map(|skill| skill.name)
        .collect();
    assert_eq!(names, ["commit", "hidden"]);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn skills_are_checked_at_build() {
    let base = || AgentBuilder::new(config()).provider(provider());
    let needs = |tool: &str| SkillDefinition {
        required_tools: vec![tool.into()],
        ..commit()
    };
    let missing = base().skill(needs("shell")).build().await.unwrap_err();
    assert_eq!(missing.code, ErrorCode::SkillDependencyNotMet);
    assert!(missing.message.contains("\"commit\"") && missing.message.contains("\"shell\""));
    base()
        .skill(needs("shell"))
        .tool(RecordingTool::read_only("shell").parameters(json!({"type": "object"})))
        .build()
        .await
        .unwrap();
    let twice = base()
        .skill(commit())
        .skill(commit())
        .build()
        .await
        .unwrap_err();
    assert_eq!(twice.code, ErrorCode::NameConflict);
    for name in ["", "a b", "a/b", "a.b", "/a", "a\n"] {
        let bad = base()
            .skill(SkillDefinition::new(name, "x"))
            .build()
            .await
            .unwrap_err();
        assert_eq!(bad.code, ErrorCode::InvalidConfig, "{name:?}");
    }
}
