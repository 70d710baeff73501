//! The system prompt: eight sections in the document's order (chapter 5.3).
//!
//! All but the last are built once per session and stay byte-identical, so that a
//! provider's prompt cache holds; the dynamic sections of a turn come last.

use std::fmt::Write as _;
use std::sync::Arc;

use super::memory::Memory;
use super::plugin::Plugin;
use super::provider::{PromptBlock, ToolSpec};
use super::skill::SkillSet;

/// What the sections are made of.
pub(crate) struct Sections<'a> {
    pub(crate) system_instructions: &'a [String],
    pub(crate) personality: Option<&'a str>,
    /// Empty where tools are not described, or the model cannot call any.
    pub(crate) tools: &'a [ToolSpec],
    pub(crate) skills: &'a SkillSet,
    pub(crate) plugins: &'a [Arc<dyn Plugin>],
    pub(crate) memories: &'a [Memory],
    pub(crate) environment: Option<&'a str>,
}

/// The stable blocks, one per section that has anything to say.
pub(crate) fn stable(sections: &Sections<'_>) -> Arc<[PromptBlock]> {
    let texts = [
        instructions(sections.system_instructions),
        personality(sections.personality),
        tools(sections.tools),
        skills(sections.skills),
        plugins(sections.plugins),
        memories(sections.memories),
        environment(sections.environment),
    ];
    texts
        .into_iter()
        .filter(|text| !text.trim().is_empty())
        .map(|text| PromptBlock {
            text: text.into(),
            stable: true,
        })
        .collect()
}

/// The stable blocks with the dynamic sections of a turn behind them.
pub(crate) fn with_dynamic(stable: &Arc<[PromptBlock]>, dynamic: &[String]) -> Arc<[PromptBlock]> {
    let mut sections = dynamic
        .iter()
        .filter(|section| !section.trim().is_empty())
        .peekable();
    if sections.peek().is_none() {
        return Arc::clone(stable);
    }
    stable
        .iter()
        .cloned()
        .chain(sections.map(|section| PromptBlock {
            text: section.as_str().into(),
            stable: false,
        }))
        .collect()
}

fn instructions(instructions: &[String]) -> String {
    let said: Vec<&str> = instructions
        .iter()
        .map(String::as_str)
        .filter(|text| !text.trim().is_empty())
        .collect();
    said.join("\n\n")
}

fn personality(personality: Option<&str>) -> String {
    match personality {
        Some(text) if !text.trim().is_empty() => format!("# Personality\n{text}"),
        _ => String::new(),
    }
}

fn tools(tools: &[ToolSpec]) -> String {
    if tools.is_empty() {
        return String::new();
    }
    let mut text = "# Tools\n".to_owned();
    for tool in tools {
        let _ = writeln!(
            text,
            "- {}: {}\n  Arguments (JSON Schema): {}",
            tool.name, tool.description, tool.parameters
        );
    }
    text
}

fn skills(skills: &SkillSet) -> String {
    let mut text = String::new();
    for skill in skills.suggestible() {
        if text.is_empty() {
            text.push_str("# Skills\nThe user can start these by writing the command. Suggest one where it fits; you cannot start it yourself.\n");
        }
        let _ = writeln!(text, "- /{}: {}", skill.name, skill.description);
    }
    text
}

fn plugins(plugins: &[Arc<dyn Plugin>]) -> String {
    let mut text = String::new();
    for plugin in plugins {
        let described = super::contain::call(|| {
            let description = plugin.description().trim();
            (!description.is_empty())
                .then(|| format!("- {}: {description}\n", plugin.display_name()))
        });
        if let Ok(Some(line)) = described {
            if text.is_empty() {
                text.push_str("# Active plugins\n");
            }
            text.push_str(&line);
        }
    }
    text
}

fn memories(memories: &[Memory]) -> String {
    if memories.is_empty() {
        return String::new();
    }
    let mut text = "# Memories\nFacts from earlier sessions. They may be out of date.\n".to_owned();
    for memory in memories {
        let _ = writeln!(text, "- {}", memory.content.trim().replace('\n', "\n  "));
    }
    text
}

fn environment(environment: Option<&str>) -> String {
    match environment {
        Some(text) if !text.trim().is_empty() => format!("# Environment\n{text}"),
        _ => String::new(),
    }
}
