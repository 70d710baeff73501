//! What Claude models take of each generation, told by their names.
//!
//! The vendor changed how thinking is asked for three times; a field of another generation is
//! refused with status 400.

use serde_json::{Value, json};
use youyou_agent::ReasoningEffort;

use crate::wire::body::put;

/// The model, if it is a Claude.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Claude {
    generation: (u8, u8),
}

/// How a request asks for thinking and effort.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Thinking {
    /// The field `thinking`.
    pub(super) field: Option<Value>,
    /// The field `output_config.effort`.
    pub(super) effort: Option<&'static str>,
    /// A feature that must be asked for by header.
    pub(super) beta: Option<&'static str>,
    /// Whether the model thinks, with a budget: then `temperature` is refused, and so is a round
    /// of calls that does not begin with thinking.
    pub(super) has_budget: bool,
}

/// The least budget a server takes.
const LEAST_BUDGET: u32 = 1_024;

/// Lets a server drop thinking whose conversation was changed since, for instance by
/// compaction, in place of refusing the whole request.
const BINDING_CONTROLS: &str = "thinking-binding-controls-2026-08-01";

impl Claude {
    /// Reads the name of a model, with or without a vendor in front. A Claude whose generation
    /// is not told counts as a new one.
    pub(super) fn of(model: &str) -> Option<Self> {
        let (_, name) = model.rsplit_once("claude")?;
        let mut numbers = name
            .split(|c: char| !c.is_ascii_alphanumeric())
            // Eight digits are a date.
            .filter(|word| word.len() <= 2)
            .filter_map(|word| word.parse::<u8>().ok());
        let generation = match (numbers.next(), numbers.next()) {
            (Some(major), minor) => (major, minor.unwrap_or(0)),
            (None, _) => (u8::MAX, 0),
        };
        Some(Self { generation })
    }

    /// Whether an answer can be held to a schema.
    pub(super) fn has_structured_output(self) -> bool {
        self.generation >= (4, 1)
    }

    /// Whether the model refuses `temperature`.
    pub(super) fn refuses_temperature(self) -> bool {
        self.generation >= (4, 7)
    }

    /// Thinking for an effort. Without one the vendor's default holds.
    pub(super) fn thinking(self, effort: Option<ReasoningEffort>, max_tokens: u32) -> Thinking {
        if self.generation < (3, 7) {
            return Thinking::default();
        }
        if self.generation < (4, 6) {
            return budget(effort, max_tokens);
        }
        let word = effort.map(|effort| match effort {
            ReasoningEffort::Medium => "medium",
            ReasoningEffort::High => "high",
            _ => "low",
        });
        // Later models think unless they are told otherwise, and hide it unless asked.
        let thinks_by_itself = self.generation >= (5, 0);
        let is_wanted = !matches!(effort, None | Some(ReasoningEffort::Minimal));
        if !thinks_by_itself && !is_wanted {
            return Thinking {
                effort: word,
                ..Thinking::default()
            };
        }
        let mut field = json!({ "type": "adaptive", "display": "summarized" });
        let is_bound = self.generation > (5, 0) && self.generation.0 != u8::MAX;
        if is_bound {
            let drop = json!({ "prefix_mismatch_behavior": "drop_block" });
            put(&mut field, "block_binding", drop);
        }
        Thinking {
            field: Some(field),
            effort: word,
            beta: is_bound.then_some(BINDING_CONTROLS),
            has_budget: false,
        }
    }
}

/// Thinking with a budget of tokens: Claude 3.7 to 4.5, and the models of other vendors that
/// speak this protocol.
pub(super) fn budget(effort: Option<ReasoningEffort>, max_tokens: u32) -> Thinking {
    let wanted = match effort {
        None => return Thinking::default(),
        Some(ReasoningEffort::Low) => 4_096,
        Some(ReasoningEffort::Medium) => 10_000,
        Some(ReasoningEffort::High) => 24_000,
        Some(_) => LEAST_BUDGET,
    };
    // The budget is a part of the limit, and the answer needs its share.
    let budget = wanted.min(max_tokens / 2);
    if budget < LEAST_BUDGET {
        return Thinking::default();
    }
    Thinking {
        field: Some(json!({ "type": "enabled", "budget_tokens": budget })),
        has_budget: true,
        ..Thinking::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generation_is_read_from_every_form_of_the_name() {
        for (name, generation) in [
            ("claude-3-haiku-20240307", (3, 0)),
            ("claude-3-5-sonnet-latest", (3, 5)),
            ("claude-opus-4-20250514", (4, 0)),
            ("claude-opus-4-1-20250805", (4, 1)),
            ("anthropic/claude-sonnet-4.5", (4, 5)),
            ("claude-opus-5", (5, 0)),
            ("claude-sonnet-5-5", (5, 5)),
            ("us.anthropic.claude-haiku-4-5-20251001-v1:0", (4, 5)),
            ("claude-mythos-preview", (u8::MAX, 0)),
        ] {
            assert_eq!(Claude::of(name), Some(Claude { generation }), "{name}");
        }
        assert_eq!(Claude::of("MiniMax-M2"), None);
    }

    #[test]
    fn each_generation_gets_the_thinking_it_takes() {
        let thinking = |model: &str, effort| Claude::of(model).unwrap().thinking(effort, 32_000);
        let high = Some(ReasoningEffort::High);
        assert_eq!(
            thinking("claude-3-5-haiku-latest", high),
            Thinking::default()
        );
        assert_eq!(
            thinking("claude-sonnet-4-5", high).field,
            Some(json!({ "type": "enabled", "budget_tokens": 16_000 }))
        );
        assert_eq!(thinking("claude-sonnet-4-5", None), Thinking::default());
        let adaptive = json!({ "type": "adaptive", "display": "summarized" });
        let four_six = thinking("claude-opus-4-6", high);
        assert_eq!(four_six.field, Some(adaptive.clone()));
        assert_eq!(four_six.effort, Some("high"));
        assert_eq!(thinking("claude-opus-4-6", None), Thinking::default());
        assert_eq!(thinking("claude-opus-5", None).field, Some(adaptive));
        let bound = thinking("claude-sonnet-5-5", Some(ReasoningEffort::Low));
        assert_eq!(
            bound.field,
            Some(json!({
                "type": "adaptive",
                "display": "summarized",
                "block_binding": { "prefix_mismatch_behavior": "drop_block" },
            }))
        );
        assert_eq!(bound.beta, Some(BINDING_CONTROLS));
    }

    #[test]
    fn a_budget_leaves_room_for_the_answer() {
        assert_eq!(
            budget(Some(ReasoningEffort::High), 1_500),
            Thinking::default()
        );
        assert_eq!(
            budget(Some(ReasoningEffort::High), 4_000).field,
            Some(json!({ "type": "enabled", "budget_tokens": 2_000 }))
        );
    }
}
