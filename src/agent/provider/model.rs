//! What a provider offers.

use serde::{Deserialize, Serialize};

/// A model that a provider offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(specta::Type))]
pub struct ModelInfo {
    /// Unique over all providers of the agent.
    pub id: String,
    /// For people.
    pub display_name: String,
    /// Size of the context window in tokens. The context is compacted by it.
    pub context_window: u32,
    /// What the model can do.
    pub capabilities: Capabilities,
}

impl ModelInfo {
    /// Describes a model: id, name for people, context window in tokens, capabilities.
    pub fn new(
        id: impl Into<String>,
        display_name: impl Into<String>,
        context_window: u32,
        capabilities: Capabilities,
    ) -> Self {
        Self {
            id: id.into(),
            display_name: display_name.into(),
            context_window,
            capabilities,
        }
    }
}

/// What a model can do. The default: tools and streaming, no vision, no reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(specta::Type))]
pub struct Capabilities {
    /// The model can call tools. Without it no tool definitions are sent.
    pub tool_use: bool,
    /// The model takes images. Without it images are replaced by placeholders.
    pub vision: bool,
    /// The answer arrives in pieces. For lists of models; the agent reads both alike.
    pub streaming: bool,
    /// The model shows its reasoning and takes `reasoning_effort`. For lists of models.
    pub reasoning: bool,
}

impl Default for Capabilities {
    fn default() -> Self {
        Self {
            tool_use: true,
            vision: false,
            streaming: true,
            reasoning: false,
        }
    }
}
