//! How the answer of an extracting model is read: the memories it proposes, whatever is around
//! them, in an amount of work that its length limits.

use serde_json::{Deserializer, Value};

use super::prompt::EXAMPLE;
use crate::agent::text::{is_bad_control, without_control_characters};
use crate::agent::thoughts::without_thoughts;

/// Longest memory, in characters.
const MAX_CONTENT: usize = 2_000;
/// Tags of a memory at most, and their length in characters.
const MAX_TAGS: usize = 10;
const MAX_TAG: usize = 60;
/// Longest id that is compared with those of known memories, in bytes.
const MAX_ID: usize = 128;
/// Memories of one answer at most.
const MAX_PROPOSALS: usize = 100;

/// How often the whole answer may be parsed, in sum over all places where a list may begin.
const PASSES: usize = 4;
/// What may be parsed of any answer, however short, in bytes.
const FREE_BYTES: usize = 64 * 1024;
/// What a place costs at least, in bytes: an attempt that fails at once is work, too.
const LEAST_COST: usize = 64;

/// A memory as a model proposes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Proposal {
    pub(super) id: Option<String>,
    pub(super) content: String,
    pub(super) tags: Vec<String>,
}

/// Reads an answer: the first JSON value of the expected shape, whatever is around it.
/// `None` where there is none; bad items are left out one by one.
pub(super) fn read(answer: &str) -> Option<Vec<Proposal>> {
    let answer = without_thoughts(answer);
    find(&answer, &mut 0)
}

/// Looks for the list, and adds up what that costs, in bytes parsed.
fn find(answer: &str, cost: &mut usize) -> Option<Vec<Proposal>> {
    let budget = answer.len().saturating_mul(PASSES) + FREE_BYTES;
    let mut cut = false;
    let mut empty = None;
    for (at, _) in answer.match_indices(['[', '{']) {
        if *cost > budget {
            break;
        }
        let (length, value) = first_value(answer.get(at..)?);
        *cost = cost.saturating_add(length.max(LEAST_COST));
        let items = match value {
            Ok(value) => items_of(value),
            Err(error) => {
                cut |= error.is_eof();
                None
            }
        };
        match items {
            Some(items) if !items.is_empty() => {
                let proposals = items.iter().filter_map(proposal);
                return Some(proposals.take(MAX_PROPOSALS).collect());
            }
            // It may be part of the prose, or of a list that was cut.
            Some(_) if !cut => empty = Some(Vec::new()),
            Some(_) | None => {}
        }
    }
    empty
}

/// The JSON value that a text begins with, and how many bytes were looked at.
fn first_value(text: &str) -> (usize, Result<Value, serde_json::Error>) {
    let mut values = Deserializer::from_str(text).into_iter();
    match values.next() {
        Some(Ok(value)) => (values.byte_offset(), Ok(value)),
        Some(Err(error)) => {
            let lines = text
                .split_inclusive('\n')
                .take(error.line().saturating_sub(1));
            let length = lines.map(str::len).sum::<usize>() + error.column();
            (length, Err(error))
        }
        None => (text.len(), Ok(Value::Null)),
    }
}

fn items_of(value: Value) -> Option<Vec<Value>> {
    let items = match value {
        Value::Array(items) => items,
        Value::Object(mut object) => match object.remove("memories") {
            Some(Value::Array(items)) => items,
            _ => return None,
        },
        _ => return None,
    };
    let fits = items.is_empty() || items.iter().any(|item| item.get("content").is_some());
    fits.then_some(items)
}

fn proposal(item: &Value) -> Option<Proposal> {
    let content = clean(item.get("content")?.as_str()?)?;
    let is_example = content
        .get(..EXAMPLE.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(EXAMPLE));
    if is_example || content.chars().count() > MAX_CONTENT {
        return None;
    }
    let id = match item.get("id") {
        None | Some(Value::Null) => None,
        Some(id) => Some(id.as_str()?.trim())
            .filter(|id| !id.is_empty() && id.len() <= MAX_ID)
            .map(str::to_owned),
    };
    let tags = match item.get("tags") {
        None | Some(Value::Null) => Vec::new(),
        Some(tags) => tags
            .as_array()?
            .iter()
            .map(Value::as_str)
            .collect::<Option<Vec<&str>>>()?
            .into_iter()
            .filter_map(clean)
            .filter(|tag| tag.chars().count() <= MAX_TAG)
            .take(MAX_TAGS)
            .collect(),
    };
    Some(Proposal { id, content, tags })
}

/// A text without control characters. `None` if nothing in it can be read.
fn clean(text: &str) -> Option<String> {
    let text = text.trim();
    let blank = text.chars().all(|c| c.is_whitespace() || is_bad_control(c));
    (!blank).then(|| without_control_characters(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_means_harm_is_read_in_linear_work() {
        // X3
        const LENGTH: usize = 64 * 1024;
        for piece in [
            "[",
            "{",
            "[{",
            "[1,",
            "{\"a\":",
            "[\"",
            "[{\"content\":\"x\"},",
            "{\"memories\":[",
            "[\n",
            "[{\"content\":\"[{",
        ] {
            let answer = piece.repeat(LENGTH / piece.len());
            let mut cost = 0;
            assert_eq!(find(&answer, &mut cost), None, "{piece}");
            let most = FREE_BYTES + (PASSES + 1) * LENGTH;
            assert!(cost <= most, "{piece}: {cost} > {most}");
        }
    }

    #[test]
    fn how_much_was_looked_at_is_known_for_values_and_errors() {
        for (text, length) in [
            ("[1, 2] and more", 6),
            ("[1,\n 2\n] and more", 8),
            ("[see", 2),
            ("[1,\n\n  x", 8),
            ("[1,\n2", 5),
        ] {
            assert_eq!(first_value(text).0, length, "{text}");
        }
    }
}
