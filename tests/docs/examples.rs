//! What a user writes has an example in its documentation, which the doc tests build and run.

use crate::sources::read;

/// The doc comment right before a line that starts with `item`, without its slashes.
fn doc_of(file: &str, item: &str) -> Vec<String> {
    let text = read(file);
    let start = text.find(&format!("\n{item}"));
    let start = start.unwrap_or_else(|| panic!("{file} has no {item}"));
    let (before, _) = text.split_at(start);
    let mut doc: Vec<String> = before
        .lines()
        .rev()
        .skip_while(|line| line.starts_with("#["))
        .map_while(|line| line.strip_prefix("///"))
        .map(|line| line.trim_start().to_owned())
        .collect();
    doc.reverse();
    doc
}

#[test]
fn everything_a_user_writes_has_an_example_that_is_built_and_run() {
    let items = [
        ("src/agent/provider/mod.rs", "pub trait ModelProvider"),
        ("src/agent/tool/mod.rs", "pub trait ToolHandler"),
        ("src/agent/tool/typed.rs", "pub fn typed<"),
        ("src/agent/tool/typed.rs", "pub fn typed_blocking<"),
        ("src/agent/plugin.rs", "pub trait Plugin"),
        ("src/agent/hook/tap.rs", "pub struct Tap"),
        ("src/agent/skill.rs", "pub struct SkillDefinition"),
        ("src/agent/storage/mod.rs", "pub trait SessionStorage"),
        ("src/agent/memory/mod.rs", "pub trait MemoryStorage"),
        ("src/agent/builder.rs", "pub struct AgentBuilder"),
        ("src/agent/config.rs", "pub struct AgentConfig"),
    ];
    for (file, item) in items {
        let doc = doc_of(file, item);
        assert!(
            doc.iter().any(|line| line == "# Examples"),
            "{item} in {file} has no example"
        );
        let mut fences = doc.iter().filter(|line| line.starts_with("```")).step_by(2);
        assert!(
            fences.all(|fence| fence == "```"),
            "an example of {item} in {file} is not run"
        );
    }
}

#[test]
fn the_examples_of_storages_run_the_conformance_kit() {
    let storages = [
        (
            "src/agent/storage/mod.rs",
            "pub trait SessionStorage",
            "testing::session_storage_conformance(",
        ),
        (
            "src/agent/memory/mod.rs",
            "pub trait MemoryStorage",
            "testing::memory_storage_conformance(",
        ),
    ];
    for (file, item, kit) in storages {
        let doc = doc_of(file, item);
        assert!(
            doc.iter().any(|line| line.contains(kit)),
            "the example of {item} in {file} is not checked by the kit"
        );
    }
}
