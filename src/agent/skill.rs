//! Skills: prompts the user calls by name (chapters 3.3 and 5.5).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::error::AgentError;
use super::message::ContentBlock;

/// A prompt that the user calls by writing `/name` at the start of a message.
///
/// In `/commit only the tests`, what follows the name is the argument. For that turn the
/// model gets the prompt and the argument in a message of their own (`UserOrigin::Skill`)
/// before the user's. A name that no skill has is refused with `SKILL_NOT_FOUND`, once any
/// skill is registered; `//commit` sends the text `/commit`.
///
/// # Examples
/// ```
/// use youyou_agent::SkillDefinition;
///
/// let skill = SkillDefinition {
///     description: "Writes a commit message".into(),
///     required_tools: vec!["run_command".into()],
///     allow_implicit_invocation: true,
///     ..SkillDefinition::new("commit", "Write a commit message for the staged changes.")
/// };
/// assert_eq!(skill.display_name, "commit");
/// // AgentBuilder::new(config).tool(run_command).skill(skill)
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillDefinition {
    /// Unique; letters and digits of any script, `-` and `_`, else the build fails with
    /// `INVALID_CONFIG`. Case matters.
    pub name: String,
    /// For people.
    pub display_name: String,
    /// One line, for lists and for the system prompt.
    pub description: String,
    /// What the model is told when the skill is called.
    pub prompt: String,
    /// Tools the prompt relies on; the build fails with `SKILL_DEPENDENCY_NOT_MET` if one is
    /// missing.
    pub required_tools: Vec<String>,
    /// Whether the system prompt lists the skill, so that the model can suggest it. The
    /// agent never runs a skill on the model's word.
    pub allow_implicit_invocation: bool,
}

impl SkillDefinition {
    /// A skill with a name and a prompt. The display name is the name, the description is
    /// empty, no tool is required, and the model does not know of it until it is called.
    pub fn new(name: impl Into<String>, prompt: impl Into<String>) -> Self {
        let name = name.into();
        Self {
            display_name: name.clone(),
            name,
            description: String::new(),
            prompt: prompt.into(),
            required_tools: Vec::new(),
            allow_implicit_invocation: false,
        }
    }
}

/// A skill as it is listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(specta::Type))]
pub struct SkillInfo {
    /// What to write after the slash.
    pub name: String,
    /// For people.
    pub display_name: String,
    /// One line.
    pub description: String,
    /// Tools it relies on.
    pub required_tools: Vec<String>,
    /// Whether the model may suggest it.
    pub allow_implicit_invocation: bool,
}

/// All skills of an agent.
#[derive(Debug, Default)]
pub(crate) struct SkillSet {
    skills: Vec<SkillDefinition>,
}

impl SkillSet {
    pub(crate) fn new(skills: Vec<SkillDefinition>) -> Self {
        Self { skills }
    }

    pub(crate) fn infos(&self) -> Vec<SkillInfo> {
        self.skills
            .iter()
            .map(|skill| SkillInfo {
                name: skill.name.clone(),
                display_name: skill.display_name.clone(),
                description: skill.description.clone(),
                required_tools: skill.required_tools.clone(),
                allow_implicit_invocation: skill.allow_implicit_invocation,
            })
            .collect()
    }

    /// Skills the model may suggest.
    pub(crate) fn suggestible(&self) -> impl Iterator<Item = &SkillDefinition> {
        self.skills
            .iter()
            .filter(|skill| skill.allow_implicit_invocation)
    }

    /// The name of the skill that is called at the very start of the first text block. An
    /// escape (`//x`) is turned into the plain text `/x`.
    ///
    /// # Errors
    /// `SKILL_NOT_FOUND` for a legal but unknown name.
    pub(crate) fn resolve(
        &self,
        content: &mut [ContentBlock],
    ) -> Result<Option<Arc<str>>, AgentError> {
        let first = content.iter_mut().find_map(|block| match block {
            ContentBlock::Text { text } => Some(text),
            ContentBlock::Image { .. } | ContentBlock::File { .. } => None,
        });
        let Some(text) = first else {
            return Ok(None);
        };
        if self.skills.is_empty() {
            return Ok(None);
        }
        // `//x` is the escape of `/x`; `//TODO: later` and `///` name no skill and stay.
        if text.get(1..).and_then(split_call).is_some() && text.starts_with("//") {
            text.remove(0);
            return Ok(None);
        }
        let Some((name, _)) = split_call(text) else {
            return Ok(None);
        };
        match self.find(name) {
            Some(skill) => Ok(Some(skill.name.as_str().into())),
            None => Err(AgentError::skill_not_found(name, &self.nearest(name))),
        }
    }

    /// What goes before a user's message that calls the skill. The argument is what the
    /// message says now: a hook may have changed it, and what it took out must not come back
    /// by this way. `None`: the skill is not registered any more.
    pub(crate) fn prompt(&self, name: &str, content: &[ContentBlock]) -> Option<String> {
        let skill = self.find(name)?;
        let argument = first_text(content)
            .and_then(split_call)
            .filter(|(name, _)| *name == skill.name)
            .map_or("", |(_, rest)| rest);
        Some(skill_prompt(skill, argument))
    }

    fn find(&self, name: &str) -> Option<&SkillDefinition> {
        self.skills.iter().find(|skill| skill.name == name)
    }

    /// At most three names within a third of the name's length, nearest first.
    fn nearest(&self, name: &str) -> Vec<&str> {
        if name.len() > LONGEST_COMPARED {
            return Vec::new();
        }
        let mut near: Vec<(usize, &str)> = self
            .skills
            .iter()
            .map(|skill| (distance(name, &skill.name), skill.name.as_str()))
            .filter(|(distance, known)| {
                *distance <= name.chars().count().max(3) / 3 || known.starts_with(name)
            })
            .collect();
        near.sort();
        near.truncate(3);
        near.into_iter().map(|(_, known)| known).collect()
    }
}

/// Longest name, in bytes, that similar names are looked for.
const LONGEST_COMPARED: usize = 200;

/// Whether a skill may have this name.
pub(crate) fn is_legal_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(is_name_char)
}

fn is_name_char(c: char) -> bool {
    c.is_alphanumeric() || c == '-' || c == '_'
}

fn first_text(content: &[ContentBlock]) -> Option<&str> {
    content.iter().find_map(|block| match block {
        ContentBlock::Text { text } => Some(text.as_str()),
        ContentBlock::Image { .. } | ContentBlock::File { .. } => None,
    })
}

/// The name and the argument of `/name argument`, if the text is such a call.
fn split_call(text: &str) -> Option<(&str, &str)> {
    let after = text.strip_prefix('/')?;
    let (name, rest) = match after.find(char::is_whitespace) {
        Some(end) => after.split_at(end),
        None => (after, ""),
    };
    is_legal_name(name).then_some((name, rest.trim()))
}

fn skill_prompt(skill: &SkillDefinition, argument: &str) -> String {
    let mut prompt = format!("[Skill \"{}\"]\n{}", skill.name, skill.prompt);
    if !argument.is_empty() {
        prompt.push_str("\n\nArgument: ");
        prompt.push_str(argument);
    }
    prompt
}

/// Levenshtein distance in characters.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (to, cell) in b.iter().zip(row.iter_mut().skip(1)) {
            let above = *cell;
            let best = (diagonal + usize::from(from != *to))
                .min(above + 1)
                .min(left + 1);
            diagonal = above;
            left = best;
            *cell = best;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}
