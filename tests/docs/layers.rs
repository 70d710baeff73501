//! The layers of ARCHITECTURE.md, read from the sources.

use crate::sources::{files, read};

/// Lines of code under a folder or in a file, without comments: path, number, text.
fn code(place: &str) -> Vec<(String, usize, String)> {
    let paths = if place.ends_with(".rs") {
        vec![place.to_owned()]
    } else {
        files(place)
    };
    assert!(!paths.is_empty(), "there is no {place}");
    let mut lines = Vec::new();
    for path in paths.into_iter().filter(|path| path.ends_with(".rs")) {
        for (at, line) in read(&path).lines().enumerate() {
            let line = line.trim_start();
            if !line.starts_with("//") {
                lines.push((path.clone(), at + 1, line.to_owned()));
            }
        }
    }
    lines
}

fn saying(place: &str, words: &[&str]) -> Vec<String> {
    code(place)
        .into_iter()
        .filter(|(_, _, line)| words.iter().any(|word| line.contains(word)))
        .map(|(path, at, line)| format!("{path}:{at}: {line}"))
        .collect()
}

#[test]
fn the_agent_and_the_testing_kit_name_no_tauri_and_do_no_io() {
    let words = [
        "tauri::",
        "std::fs",
        "std::net",
        "std::env",
        "std::process",
        "tokio::fs",
        "tokio::net",
        "tokio::process",
        "println!",
    ];
    for place in ["src/agent", "src/testing"] {
        assert_eq!(saying(place, &words), Vec::<String>::new());
    }
}

#[test]
fn nothing_below_the_plugin_layer_calls_it() {
    for place in ["src/agent", "src/testing"] {
        assert_eq!(saying(place, &["ipc::"]), Vec::<String>::new());
    }
}

#[test]
fn the_vocabulary_imports_nothing_above_it() {
    let above = [
        "builder",
        "catalog",
        "compaction",
        "context",
        "core",
        "hook",
        "journal",
        "memory",
        "model_call",
        "event_log",
        "plugin",
        "prompt",
        "retry",
        "session",
        "shutdown",
        "skill",
        "turn",
        "work",
    ];
    for file in [
        "message",
        "event.rs",
        "error",
        "config.rs",
        "notes.rs",
        "provider",
        "storage",
        "text.rs",
    ] {
        let words: Vec<String> = above
            .iter()
            .flat_map(|module| [format!("super::{module}"), format!("agent::{module}")])
            .collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let place = format!("src/agent/{file}");
        let found: Vec<String> = saying(&place, &words)
            .into_iter()
            .filter(|line| line.contains("use "))
            .collect();
        assert_eq!(found, Vec::<String>::new());
    }
}

#[test]
fn one_decision_has_one_home() {
    for (words, home) in [
        // Where a caller's panic is caught.
        (
            ["catch_unwind(", "AssertUnwindSafe"],
            "src/agent/contain.rs",
        ),
        // Where events get their numbers.
        (
            ["sequence.fetch_add", "sequence.fetch_max"],
            "src/agent/event_log/log.rs",
        ),
        // Where system text is written.
        (["\"# Tools", "\"# Memories"], "src/agent/prompt.rs"),
        // Where it is decided which errors may be tried again.
        (["retryable: false", "retryable: true"], "src/agent/error/"),
    ] {
        let elsewhere: Vec<String> = saying("src/agent", &words)
            .into_iter()
            .filter(|line| !line.starts_with(home))
            .collect();
        assert_eq!(
            elsewhere,
            Vec::<String>::new(),
            "{words:?} belong in {home}"
        );
        assert!(
            !saying(home, &words).is_empty(),
            "{home} says none of {words:?}"
        );
    }
}

#[test]
fn each_layer_calls_only_what_is_below_it() {
    // Upper before lower: a module may name those after it, not those before.
    let layers = [
        (
            "src/agent/tool",
            [
                "super::session",
                "agent::session",
                "agent::turn",
                "agent::builder",
            ],
        ),
        (
            "src/agent/hook",
            [
                "super::session",
                "agent::session",
                "agent::turn",
                "agent::builder",
            ],
        ),
        (
            "src/agent/context",
            [
                "super::session",
                "agent::session",
                "agent::turn",
                "agent::builder",
            ],
        ),
        (
            "src/agent/memory",
            [
                "super::session",
                "agent::session",
                "agent::turn",
                "agent::builder",
            ],
        ),
        (
            "src/agent/event_log",
            [
                "super::session",
                "agent::session",
                "agent::turn",
                "agent::builder",
            ],
        ),
        (
            "src/agent/journal.rs",
            [
                "super::session",
                "agent::session",
                "super::turn",
                "super::builder",
            ],
        ),
        (
            "src/agent/prompt.rs",
            [
                "super::session",
                "agent::session",
                "super::turn",
                "super::builder",
            ],
        ),
        (
            "src/agent/skill.rs",
            [
                "super::session",
                "agent::session",
                "super::turn",
                "super::builder",
            ],
        ),
        (
            "src/agent/work",
            [
                "super::session",
                "agent::session",
                "agent::turn",
                "agent::builder",
            ],
        ),
        (
            "src/agent/compaction",
            [
                "super::session",
                "agent::session",
                "agent::turn",
                "agent::builder",
            ],
        ),
        (
            "src/agent/turn",
            [
                "super::session",
                "agent::session",
                "agent::builder",
                "agent::shutdown",
            ],
        ),
        (
            "src/agent/session",
            [
                "agent::builder",
                "crate::AgentBuilder",
                "super::builder",
                "crate::ipc",
            ],
        ),
    ];
    for (place, above) in layers {
        let found: Vec<String> = saying(place, &above)
            .into_iter()
            .filter(|line| line.contains("use "))
            .collect();
        assert_eq!(found, Vec::<String>::new());
    }
}
