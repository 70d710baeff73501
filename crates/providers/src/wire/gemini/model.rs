//! What Gemini models take of each generation, told by their names.

use serde_json::{Value, json};
use youyou_agent::ReasoningEffort;

/// A generation of Gemini: 2.5 is `(2, 5)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gemini<'a> {
    name: &'a str,
    generation: Option<(u8, u8)>,
}

impl<'a> Gemini<'a> {
    /// Reads the name of a model, with or without a path in front.
    pub(super) fn of(model: &'a str) -> Self {
        let name = model.rsplit('/').next().unwrap_or(model);
        let mut numbers = name
            .strip_prefix("gemini-")
            .and_then(|rest| rest.split('-').next())
            .unwrap_or_default()
            .split('.')
            .map(str::parse::<u8>);
        let generation = match (numbers.next(), numbers.next()) {
            (Some(Ok(major)), None) => Some((major, 0)),
            (Some(Ok(major)), Some(Ok(minor))) => Some((major, minor)),
            _ => None,
        };
        Self { name, generation }
    }

    /// Whether a round of calls is refused whose first call has no signature.
    pub(super) fn demands_signatures(self) -> bool {
        self.generation
            .is_some_and(|generation| generation >= (3, 0))
    }

    /// The field `thinkingConfig` of a model that thinks.
    pub(super) fn thinking(self, effort: Option<ReasoningEffort>) -> Option<Value> {
        let is_new = self.demands_signatures();
        // A model whose generation is not told takes a budget: old and new ones do.
        match (effort, self.generation) {
            (_, Some(generation)) if generation < (2, 5) => None,
            (None, None) => None,
            (None, Some(_)) => Some(json!({ "includeThoughts": true })),
            (Some(effort), _) if is_new => {
                Some(json!({ "includeThoughts": true, "thinkingLevel": self.level(effort) }))
            }
            (Some(effort), _) => match self.budget(effort) {
                0 => Some(json!({ "thinkingBudget": 0 })),
                budget => Some(json!({ "includeThoughts": true, "thinkingBudget": budget })),
            },
        }
    }

    fn level(self, effort: ReasoningEffort) -> &'static str {
        let is_pro = self.name.contains("pro");
        match effort {
            ReasoningEffort::Medium if self.name.starts_with("gemini-3-pro") => "high",
            ReasoningEffort::Medium => "medium",
            ReasoningEffort::High => "high",
            ReasoningEffort::Minimal if !is_pro => "minimal",
            _ => "low",
        }
    }

    fn budget(self, effort: ReasoningEffort) -> u32 {
        match effort {
            // Only the pro models cannot be told not to think.
            ReasoningEffort::Minimal if self.name.contains("flash") => 0,
            ReasoningEffort::Minimal => 128,
            ReasoningEffort::Medium => 8_192,
            ReasoningEffort::High => 24_576,
            _ => 1_024,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_generation_gets_the_thinking_it_takes() {
        let low = Some(ReasoningEffort::Low);
        let minimal = Some(ReasoningEffort::Minimal);
        for (model, effort, field) in [
            ("gemini-2.0-flash", low, None),
            (
                "gemini-2.5-flash",
                None,
                Some(json!({ "includeThoughts": true })),
            ),
            (
                "models/gemini-2.5-flash",
                minimal,
                Some(json!({ "thinkingBudget": 0 })),
            ),
            (
                "gemini-2.5-pro",
                minimal,
                Some(json!({ "includeThoughts": true, "thinkingBudget": 128 })),
            ),
            (
                "gemini-3.8-flash",
                minimal,
                Some(json!({ "includeThoughts": true, "thinkingLevel": "minimal" })),
            ),
            (
                "gemini-3.1-pro-preview",
                minimal,
                Some(json!({ "includeThoughts": true, "thinkingLevel": "low" })),
            ),
            ("gemini-flash-latest", None, None),
            (
                "gemini-flash-latest",
                low,
                Some(json!({ "includeThoughts": true, "thinkingBudget": 1_024 })),
            ),
        ] {
            assert_eq!(Gemini::of(model).thinking(effort), field, "{model}");
        }
    }
}
