//! What the scripted model says, item by item. It yields once per item, as a network would.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;

use crate::workload::{DELTA, Kind, Workload, call_arguments, call_id};

/// One thing a model says.
#[derive(Debug)]
pub enum Item {
    /// A piece of text.
    Delta(String),
    /// A call of the tool `echo`.
    Call {
        /// The call's id.
        id: String,
        /// An object with `text`, as JSON.
        arguments: String,
    },
    /// The answer is whole.
    End,
}

/// The answer to one model call.
#[derive(Debug)]
pub struct Script {
    items: usize,
    at: usize,
    first_call: usize,
    is_tool_round: bool,
    /// After the deltas nothing comes any more.
    hangs: bool,
    pause: bool,
}

impl Script {
    /// The answer to model call number `number` of a session, from 0: ids never come twice.
    pub fn new(workload: &Workload, number: usize) -> Self {
        let calls_of_turn = workload.model_calls();
        let (turn, step) = (number / calls_of_turn, number % calls_of_turn);
        let is_tool_round = step < workload.rounds;
        Self {
            items: if is_tool_round {
                workload.calls
            } else {
                workload.deltas
            },
            at: 0,
            first_call: (turn * workload.rounds + step) * workload.calls,
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
                id: call_id(number),
                arguments: call_arguments(number),
            }
        } else {
            Item::Delta(DELTA.to_owned())
        };
        self.at += 1;
        self.pause = self.at < self.items;
        Poll::Ready(Some(item))
    }
}
