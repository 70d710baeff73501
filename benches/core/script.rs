//! What the scripted model says, item by item. It yields once per item, as a network would.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;

use crate::workload::{DELTA, Kind, Workload};

/// One thing a model says.
pub(crate) enum Item {
    Delta(String),
    Call {
        id: String,
        arguments: String,
    },
    End,
}

/// The answer to one model call.
pub(crate) struct Script {
    items: usize,
    at: usize,
    first_call: usize,
    is_tool_round: bool,
    /// After the deltas nothing comes any more.
    hangs: bool,
    pause: bool,
}

impl Script {
    /// The answer to call number `number` of a turn, from 0.
    pub(crate) fn new(workload: &Workload, number: usize) -> Self {
        let is_tool_round = number < workload.rounds;
        Self {
            items: if is_tool_round {
                workload.calls
            } else {
                workload.deltas
            },
            at: 0,
            first_call: number * workload.calls,
            is_tool_round,
            hangs: workload.kind == Kind::Cancel,
            pause: false,
        }
    }
}

impl Stream for Script {
    type Item = Item;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Item>> {
        if self.pause {
            self.pause = false;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        if self.at == self.items && self.hangs {
            return Poll::Pending;
        }
        if self.at > self.items {
            return Poll::Ready(None);
        }
        let item = if self.at == self.items {
            Item::End
        } else if self.is_tool_round {
            let number = self.first_call + self.at;
            Item::Call {
                id: format!("call_{number}"),
                arguments: format!("{{\"text\":\"hello{:06}\"}}", number % 1_000_000),
            }
        } else {
            Item::Delta(DELTA.to_owned())
        };
        self.at += 1;
        self.pause = self.at < self.items;
        Poll::Ready(Some(item))
    }
}
