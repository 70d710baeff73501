//! Descriptions of models for tests.

use crate::{Capabilities, ModelInfo};

/// Window of the models made here, in tokens.
const WINDOW: u32 = 128_000;

fn model(id: &str, capabilities: Capabilities) -> ModelInfo {
    ModelInfo::new(id, id, WINDOW, capabilities)
}

/// A model with tools and a window of 128,000 tokens, without vision and reasoning.
///
/// # Examples
/// ```
/// use youyou_agent::ModelInfo;
/// use youyou_agent::testing::text_model;
///
/// let small = ModelInfo { context_window: 1_000, ..text_model("small") };
/// assert!(small.capabilities.tool_use && !small.capabilities.vision);
/// ```
#[must_use]
pub fn text_model(id: &str) -> ModelInfo {
    model(id, Capabilities::default())
}

/// Like [`text_model`], and it takes images.
#[must_use]
pub fn vision_model(id: &str) -> ModelInfo {
    let capabilities = Capabilities {
        vision: true,
        ..Capabilities::default()
    };
    model(id, capabilities)
}

/// Like [`text_model`], and it reasons.
#[must_use]
pub fn reasoning_model(id: &str) -> ModelInfo {
    let capabilities = Capabilities {
        reasoning: true,
        ..Capabilities::default()
    };
    model(id, capabilities)
}

/// Like [`text_model`], but it cannot call tools.
#[must_use]
pub fn toolless_model(id: &str) -> ModelInfo {
    let capabilities = Capabilities {
        tool_use: false,
        ..Capabilities::default()
    };
    model(id, capabilities)
}
