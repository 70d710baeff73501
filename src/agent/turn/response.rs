//! One answer of a model while it arrives: its parts in order, and what was shown.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::agent::message::{AssistantPart, ProviderData};
use crate::agent::provider::{Completion, StopReason};
use crate::agent::tool::dispatcher::Call;
use crate::agent::tool::set::{parse_arguments, parse_begun_arguments};

/// The parts of an answer so far.
#[derive(Debug, Default)]
pub(super) struct Response {
    parts: Vec<Piece>,
    /// Whether the user has seen anything of it: then it cannot be taken back.
    pub(super) shown: bool,
    /// What the provider told at its end.
    pub(super) completion: Completion,
    /// Bytes of text, reasoning and arguments so far.
    bytes: usize,
}

#[derive(Debug)]
enum Piece {
    Text {
        text: String,
        /// Opaque data closes its text.
        provider_data: Option<ProviderData>,
    },
    Reasoning {
        text: String,
        /// Opaque data closes its block.
        provider_data: Option<ProviderData>,
    },
    Call {
        call_id: String,
        tool_name: String,
        arguments: String,
        provider_data: Option<ProviderData>,
    },
}

impl Response {
    /// How much of a piece still fits below a limit, in whole characters. Counts it as taken.
    pub(super) fn admit(&mut self, piece: &str, limit: usize) -> usize {
        let fits = piece.floor_char_boundary(limit.saturating_sub(self.bytes));
        self.bytes = self.bytes.saturating_add(fits);
        fits
    }

    pub(super) fn text_delta(&mut self, delta: &str, data: Option<ProviderData>) {
        self.shown |= !delta.is_empty();
        if let Some(Piece::Text {
            text,
            provider_data: open @ None,
        }) = self.parts.last_mut()
        {
            text.push_str(delta);
            *open = data;
        } else if delta.is_empty() {
            // A text that is blank could not be sent back; data alone is kept as reasoning.
            self.reasoning_delta(delta, data);
        } else {
            self.parts.push(Piece::Text {
                text: delta.to_owned(),
                provider_data: data,
            });
        }
    }

    pub(super) fn reasoning_delta(&mut self, delta: &str, data: Option<ProviderData>) {
        self.shown |= !delta.is_empty();
        if let Some(Piece::Reasoning {
            text,
            provider_data: open @ None,
        }) = self.parts.last_mut()
        {
            text.push_str(delta);
            *open = data;
        } else if !delta.is_empty() || data.is_some() {
            self.parts.push(Piece::Reasoning {
                text: delta.to_owned(),
                provider_data: data,
            });
        }
    }

    pub(super) fn tool_call(
        &mut self,
        call_id: String,
        tool_name: String,
        arguments: String,
        provider_data: Option<ProviderData>,
    ) {
        self.parts.push(Piece::Call {
            call_id,
            tool_name,
            arguments,
            provider_data,
        });
    }

    /// The parts without calls, as far as they have arrived.
    pub(super) fn so_far(&self) -> Vec<AssistantPart> {
        self.parts
            .iter()
            .filter_map(|piece| match piece {
                Piece::Text {
                    text,
                    provider_data,
                } => Some(AssistantPart::Text {
                    text: text.as_str().into(),
                    provider_data: provider_data.clone(),
                }),
                Piece::Reasoning {
                    text,
                    provider_data,
                } => Some(AssistantPart::Reasoning {
                    text: text.as_str().into(),
                    provider_data: provider_data.clone(),
                }),
                Piece::Call { .. } => None,
            })
            .collect()
    }

    /// The finished parts and the calls among them. Ids are made unique by `taken`, which
    /// answers whether the session knows one already. In a response that was cut, calls
    /// whose arguments are no object did not arrive whole and are left out.
    pub(super) fn finish(
        self,
        complete: bool,
        taken: impl Fn(&str) -> bool,
    ) -> (Vec<AssistantPart>, Vec<Call>) {
        let mut parts = Vec::with_capacity(self.parts.len());
        let mut calls: Vec<Call> = Vec::new();
        let last = self.parts.len().saturating_sub(1);
        for (position, piece) in self.parts.into_iter().enumerate() {
            match piece {
                Piece::Text {
                    text,
                    provider_data,
                } => parts.push(AssistantPart::Text {
                    text: text.into(),
                    provider_data,
                }),
                Piece::Reasoning {
                    text,
                    provider_data,
                } => parts.push(AssistantPart::Reasoning {
                    text: text.into(),
                    provider_data,
                }),
                Piece::Call {
                    call_id,
                    tool_name,
                    arguments,
                    provider_data,
                } => {
                    // The output limit may fall right before the first argument.
                    let cut =
                        position == last && self.completion.stop_reason == Some(StopReason::Length);
                    let parsed = if cut {
                        parse_begun_arguments(&arguments)
                    } else {
                        parse_arguments(&arguments)
                    };
                    let parsed = parsed.map(Arc::new);
                    if !complete && parsed.is_err() {
                        continue;
                    }
                    let is_taken =
                        taken(&call_id) || calls.iter().any(|other| *other.call_id == *call_id);
                    let call_id: Arc<str> = if call_id.trim().is_empty() || is_taken {
                        fresh_id().into()
                    } else {
                        call_id.into()
                    };
                    let tool_name: Arc<str> = tool_name.into();
                    parts.push(AssistantPart::ToolCall {
                        call_id: Arc::clone(&call_id),
                        tool_name: Arc::clone(&tool_name),
                        arguments: parsed
                            .as_ref()
                            .map_or_else(|_| Arc::new(Value::Object(Map::new())), Arc::clone),
                        provider_data,
                    });
                    calls.push(Call {
                        call_id,
                        tool_name,
                        arguments: parsed,
                        over_limit: false,
                    });
                }
            }
        }
        // An answer of blanks alone is no message.
        let says_something = parts.iter().any(|part| match part {
            AssistantPart::Text { text, .. } => !text.trim().is_empty(),
            AssistantPart::Reasoning {
                text,
                provider_data,
            } => !text.trim().is_empty() || provider_data.is_some(),
            AssistantPart::ToolCall { .. } => true,
        });
        if says_something {
            (parts, calls)
        } else {
            (Vec::new(), calls)
        }
    }
}

/// An id every provider takes.
fn fresh_id() -> String {
    format!("call_{}", uuid::Uuid::new_v4().simple())
}
