//! Fragments of tool calls into calls: the one home of this rule for OpenAI's Chat Completions.
//!
//! The protocol numbers calls and gives id and name with the first fragment. Servers leave the
//! number out or give all calls the same, repeat the name or the id with each fragment, give
//! another id to each, begin with `{}` in place of nothing, or send a whole call twice.

use std::collections::HashMap;

/// A fragment as it came; what is empty is as good as missing.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Fragment<'a> {
    pub(crate) index: Option<u64>,
    pub(crate) id: &'a str,
    pub(crate) name: &'a str,
    pub(crate) arguments: &'a str,
    /// The arguments came as an object, not as a piece of text: they are whole.
    pub(crate) is_whole: bool,
}

/// A call, as far as it came.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arguments: String,
    /// The vendor's own fields beside these, as JSON: each name with its newest value.
    pub(crate) extra: Vec<(String, String)>,
    /// Where it belongs among the calls.
    index: u64,
    progress: Progress,
}

/// The calls of one answer.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    all: Vec<Call>,
    /// The newest call of each index.
    by_index: HashMap<u64, usize>,
    by_id: HashMap<String, usize>,
    /// Behind the greatest index so far.
    next: u64,
}

impl Calls {
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Takes a fragment to the call that it belongs to. `None` where it says nothing.
    pub(crate) fn take(&mut self, fragment: Fragment<'_>) -> Option<&mut Call> {
        let index = fragment.index.or_else(|| self.index_of(&fragment));
        let known = index.and_then(|index| self.by_index.get(&index).copied());
        let known = known.filter(|at| {
            self.all
                .get(*at)
                .is_some_and(|call| call.goes_on(&fragment))
        });
        let at = match known {
            Some(at) => at,
            None if fragment.is_empty() => return None,
            None => self.begin(index.unwrap_or(self.next)),
        };
        if !fragment.id.is_empty() {
            self.by_id.entry(fragment.id.to_owned()).or_insert(at);
        }
        let call = self.all.get_mut(at)?;
        call.add(&fragment);
        Some(call)
    }

    /// A fragment without an index belongs to the call with its id, or to the newest one.
    fn index_of(&self, fragment: &Fragment<'_>) -> Option<u64> {
        let known = self.by_id.get(fragment.id).and_then(|at| self.all.get(*at));
        let is_new = !fragment.id.is_empty() && !fragment.name.is_empty();
        let newest = self.all.last().filter(|_| !is_new);
        known.or(newest).map(|call| call.index)
    }

    fn begin(&mut self, index: u64) -> usize {
        let at = self.all.len();
        self.all.push(Call {
            index,
            ..Call::default()
        });
        self.by_index.insert(index, at);
        self.next = self.next.max(index.saturating_add(1));
        at
    }

    /// The calls in the order of their indices; those that share one in the order they came.
    pub(crate) fn finish(&mut self) -> Vec<Call> {
        let mut all = std::mem::take(self).all;
        all.sort_by_key(|call| call.index);
        all
    }
}

impl Fragment<'_> {
    fn is_empty(&self) -> bool {
        self.id.is_empty() && self.name.is_empty() && self.arguments.trim().is_empty()
    }
}

impl Call {
    /// Whether a fragment with the index of this call is a part of it.
    fn goes_on(&self, fragment: &Fragment<'_>) -> bool {
        let differ = |old: &str, new: &str| !old.is_empty() && !new.is_empty() && old != new;
        let is_other_id = differ(&self.id, fragment.id);
        let is_other_name = differ(&self.name, fragment.name);
        let is_blank = fragment.arguments.trim().is_empty();
        if self.arguments.trim().is_empty() {
            // Names come in pieces, too. A whole call of another id follows one without arguments.
            let is_piece_of_name = fragment.id.is_empty() && is_blank;
            return (!is_other_name || is_piece_of_name)
                && !(is_other_id && is_object(fragment.arguments));
        }
        if is_other_name {
            return false;
        }
        if is_placeholder(&self.arguments) {
            return !is_other_id;
        }
        if !self.progress.is_closed {
            // Some servers give each fragment an id of its own.
            return true;
        }
        // The call is whole. What comes now is another one, unless it says nothing new.
        !is_other_id
            && (is_blank || fragment.name.is_empty() || fragment.arguments == self.arguments)
    }

    fn add(&mut self, fragment: &Fragment<'_>) {
        if self.id.is_empty() {
            fragment.id.clone_into(&mut self.id);
        }
        if fragment.name.starts_with(&self.name) {
            fragment.name.clone_into(&mut self.name);
        } else {
            self.name.push_str(fragment.name);
        }
        let is_said_again = self.progress.is_closed && fragment.arguments == self.arguments;
        if fragment.arguments.is_empty() || is_said_again {
            return;
        }
        let is_new = !fragment.arguments.trim().is_empty();
        if fragment.is_whole || is_new && is_placeholder(&self.arguments) {
            self.arguments.clear();
            self.progress = Progress::default();
        }
        self.arguments.push_str(fragment.arguments);
        self.progress.take(fragment.arguments);
    }
}

/// Whether arguments may stand for none that came yet.
fn is_placeholder(arguments: &str) -> bool {
    let arguments = arguments.trim();
    let inner = arguments
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'));
    arguments == "null" || inner.is_some_and(|inner| inner.trim().is_empty())
}

fn is_object(text: &str) -> bool {
    let mut progress = Progress::default();
    progress.take(text);
    progress.is_closed
}

/// How far a JSON object came, piece by piece: the whole text is never read again.
#[derive(Debug, Default, PartialEq, Eq)]
struct Progress {
    depth: usize,
    in_string: bool,
    is_escaped: bool,
    /// The last bracket was closed and nothing followed.
    is_closed: bool,
}

impl Progress {
    fn take(&mut self, text: &str) {
        for byte in text.bytes() {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' if self.in_string => self.is_escaped = true,
                b'"' => self.in_string = !self.in_string,
                _ if self.in_string => {}
                b'{' | b'[' => {
                    self.depth += 1;
                    self.is_closed = false;
                }
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    self.is_closed = self.depth == 0;
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests;
