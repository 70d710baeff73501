//! The history as providers get it: an immutable list whose copies share everything.
//!
//! Full chunks form a chain from the newest to the oldest, so that taking a copy and
//! adding a message cost the same at any length.

use std::sync::Arc;

use super::Message;

const CHUNK: usize = 64;

/// An ordered list of shared messages. Cloning costs two reference counts.
#[derive(Debug, Clone, Default)]
pub struct Messages {
    /// Chunks of exactly [`CHUNK`] messages, the newest first.
    full: Option<Arc<Node>>,
    /// The messages after the last full chunk.
    tail: Arc<Vec<Arc<Message>>>,
}

#[derive(Debug)]
struct Node {
    older: Option<Arc<Node>>,
    messages: Vec<Arc<Message>>,
    /// Messages in this chunk and all older ones.
    len: usize,
}

impl Drop for Node {
    /// Unlinks the chain step by step: a recursive drop would overflow the stack.
    fn drop(&mut self) {
        let mut next = self.older.take();
        while let Some(mut node) = next.and_then(Arc::into_inner) {
            next = node.older.take();
        }
    }
}

impl Messages {
    /// How many messages there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.full.as_ref().map_or(0, |node| node.len) + self.tail.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The newest message.
    #[must_use]
    pub fn last(&self) -> Option<&Arc<Message>> {
        self.tail
            .last()
            .or_else(|| self.full.as_ref().and_then(|node| node.messages.last()))
    }

    /// The messages, oldest first. Walks the chain of chunks once to find the start.
    #[must_use]
    pub fn iter(&self) -> MessagesIter<'_> {
        let mut chunks = vec![self.tail.as_slice()];
        let mut node = self.full.as_deref();
        while let Some(current) = node {
            chunks.push(&current.messages);
            node = current.older.as_deref();
        }
        MessagesIter {
            chunks,
            current: [].iter(),
        }
    }

    /// The messages, newest first, without any allocation.
    pub fn iter_rev(&self) -> impl Iterator<Item = &Arc<Message>> {
        let chunks = std::iter::successors(self.full.as_deref(), |node| node.older.as_deref());
        self.tail
            .iter()
            .rev()
            .chain(chunks.flat_map(|node| node.messages.iter().rev()))
    }

    /// Adds a message. Copies made before do not see it.
    pub fn push(&mut self, message: impl Into<Arc<Message>>) {
        let tail = Arc::make_mut(&mut self.tail);
        if tail.capacity() == 0 {
            tail.reserve_exact(CHUNK);
        }
        tail.push(message.into());
        if tail.len() == CHUNK {
            let messages = std::mem::take(tail);
            let len = self.full.as_ref().map_or(0, |node| node.len) + CHUNK;
            self.full = Some(Arc::new(Node {
                older: self.full.take(),
                messages,
                len,
            }));
        }
    }
}

impl<M: Into<Arc<Message>>> FromIterator<M> for Messages {
    fn from_iter<I: IntoIterator<Item = M>>(iter: I) -> Self {
        let mut list = Self::default();
        list.extend(iter);
        list
    }
}

impl<M: Into<Arc<Message>>> Extend<M> for Messages {
    fn extend<I: IntoIterator<Item = M>>(&mut self, iter: I) {
        for message in iter {
            self.push(message);
        }
    }
}

impl<'a> IntoIterator for &'a Messages {
    type Item = &'a Arc<Message>;
    type IntoIter = MessagesIter<'a>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl PartialEq for Messages {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter_rev().eq(other.iter_rev())
    }
}

/// Iterates over [`Messages`], oldest first.
#[derive(Debug, Clone)]
pub struct MessagesIter<'a> {
    /// The newest chunk first; taken from the end.
    chunks: Vec<&'a [Arc<Message>]>,
    current: std::slice::Iter<'a, Arc<Message>>,
}

impl<'a> Iterator for MessagesIter<'a> {
    type Item = &'a Arc<Message>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(message) = self.current.next() {
                return Some(message);
            }
            self.current = self.chunks.pop()?.iter();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(n: usize) -> Message {
        Message::System(n.to_string().into())
    }

    #[test]
    fn keeps_order_across_chunks_both_ways() {
        for len in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 5 * CHUNK, 1_000] {
            let list: Messages = (0..len).map(note).collect();
            assert_eq!(list.len(), len);
            let forward: Vec<String> = list.iter().map(|message| message.text()).collect();
            let expected: Vec<String> = (0..len).map(|n| n.to_string()).collect();
            assert_eq!(forward, expected);
            let mut backward: Vec<String> = list.iter_rev().map(|message| message.text()).collect();
            backward.reverse();
            assert_eq!(backward, expected);
        }
    }

    #[test]
    fn a_copy_does_not_see_later_messages() {
        let mut list: Messages = (0..CHUNK - 1).map(note).collect();
        let copy = list.clone();
        list.push(note(99));
        list.push(note(100));
        assert_eq!(copy.len(), CHUNK - 1);
        assert_eq!(list.len(), CHUNK + 1);
    }

    #[test]
    fn a_very_long_list_is_dropped_without_recursion() {
        let list: Messages = (0..CHUNK * 100_000)
            .map(|_| Message::System("x".into()))
            .collect();
        drop(list);
    }
}
