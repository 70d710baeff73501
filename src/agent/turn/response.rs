//! One answer of a model while it arrives: its parts in order, and what was shown.

use std::collections::HashSet;
use std::sync::Arc;

use crate::agent::message::{AssistantPart, ProviderData};
use crate::agent::provider::{Completion, StopReason};
use crate::agent::text::excerpt;
use crate::agent::tool::arguments::{self, Arguments, Written};
use crate::agent::tool::dispatcher::Call;

/// Longest id of a call, in bytes; a longer one is replaced. Some servers keep data in it.
const MAX_CALL_ID: usize = 16 * 1024;

/// Longest name of a tool that is kept, in characters. No tool has one that long.
const MAX_TOOL_NAME: usize = 200;

/// The parts of an answer so far.
#[derive(Debug, Default)]
pub(super) struct Response {
    parts: Vec<Piece>,
    /// Whether the user has seen anything of it: then it cannot be taken back.
    pub(super) shown: bool,
    /// What the provider told at its end.
    pub(super) completion: Completion,
    /// Bytes of text, reasoning and calls so far.
    bytes: usize,
    /// How many more calls are kept.
    room_for_calls: usize,
    dropped_calls: usize,
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
    /// An answer that keeps this many calls and drops the rest.
    pub(super) fn with_room_for(calls: usize) -> Self {
        Self {
            room_for_calls: calls,
            ..Self::default()
        }
    }

    /// How much of a piece still fits below a limit, in whole characters. Counts it as taken.
    pub(super) fn admit(&mut self, piece: &str, limit: usize) -> usize {
        let fits = piece.floor_char_boundary(limit.saturating_sub(self.bytes));
        self.bytes = self.bytes.saturating_add(fits);
        fits
    }

    /// Whether a call of this size still fits below a limit. Counts it as taken: also one that
    /// is dropped, so that an answer of calls without end has one.
    pub(super) fn admit_call(&mut self, size: usize, limit: usize) -> bool {
        self.bytes = self.bytes.saturating_add(size.max(1));
        self.bytes <= limit
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
        if self.room_for_calls == 0 {
            self.dropped_calls += 1;
            return;
        }
        self.room_for_calls -= 1;
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

    /// The finished parts and the calls among them, whose arguments have at most `limit` bytes
    /// each. Ids are made unique by `taken`, which tells whether the session knows one already.
    /// In a response that was cut, calls whose arguments are no object did not arrive whole and
    /// are left out.
    pub(super) async fn finish(
        mut self,
        complete: bool,
        limit: usize,
        taken: impl Fn(&str) -> bool,
    ) -> (Vec<AssistantPart>, Vec<Call>) {
        let mut parts = Vec::with_capacity(self.parts.len());
        let mut calls: Vec<Call> = Vec::new();
        let mut ids: HashSet<Arc<str>> = HashSet::new();
        let mut arguments = self.read_arguments(limit).await.into_iter();
        let several = arguments.len() > 1;
        for piece in self.parts {
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
                    provider_data,
                    ..
                } => {
                    let Some(arguments) = arguments.next() else {
                        continue;
                    };
                    if !complete && arguments.is_err() {
                        continue;
                    }
                    let usable = !call_id.trim().is_empty() && call_id.len() <= MAX_CALL_ID;
                    let call_id: Arc<str> = if usable && !taken(&call_id) {
                        call_id.into()
                    } else {
                        fresh_id().into()
                    };
                    let is_double = several && !ids.insert(Arc::clone(&call_id));
                    let call_id = if is_double {
                        fresh_id().into()
                    } else {
                        call_id
                    };
                    let call = Call {
                        call_id,
                        tool_name: excerpt(&tool_name, MAX_TOOL_NAME).into(),
                        arguments,
                        over_limit: false,
                        dropped_after: 0,
                    };
                    parts.push(AssistantPart::ToolCall {
                        call_id: Arc::clone(&call.call_id),
                        tool_name: Arc::clone(&call.tool_name),
                        arguments: call.shown_arguments(),
                        provider_data,
                    });
                    calls.push(call);
                }
            }
        }
        if let Some(last) = calls.last_mut() {
            last.dropped_after = self.dropped_calls;
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

    /// Reads the arguments of all calls, in order.
    async fn read_arguments(&mut self, limit: usize) -> Vec<Result<Arguments, String>> {
        // The output limit may fall right before the first argument.
        let may_be_cut = self.completion.stop_reason == Some(StopReason::Length);
        let last = self.parts.len().saturating_sub(1);
        let pieces = self.parts.iter_mut().enumerate();
        let written = pieces.filter_map(|(position, piece)| match piece {
            Piece::Call { arguments, .. } => Some(Written {
                text: std::mem::take(arguments),
                may_be_cut: may_be_cut && position == last,
            }),
            Piece::Text { .. } | Piece::Reasoning { .. } => None,
        });
        arguments::read_all(written.collect(), limit).await
    }
}

/// An id every provider takes.
fn fresh_id() -> String {
    format!("call_{}", uuid::Uuid::new_v4().simple())
}
