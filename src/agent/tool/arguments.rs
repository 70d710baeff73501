//! The arguments of a call, read from what the model wrote and within limits.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::storable::{MAX_DEPTH, text_fits_depth};
use crate::agent::text::excerpt;

/// JSON of more bytes is read and checked beside the runtime, so that no timer waits for it.
const LARGE_BYTES: usize = 64 * 1024;

const CUT: &str = "the arguments were cut before their end";

/// Arguments as the model wrote them.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) text: String,
    /// Whether the end of the answer may be missing: nothing is no sign of a call without
    /// arguments then.
    pub(crate) may_be_cut: bool,
}

/// Arguments that are a JSON object.
#[derive(Debug, Clone)]
pub(crate) struct Arguments {
    pub(crate) value: Arc<Value>,
    /// Bytes of their JSON.
    pub(crate) bytes: usize,
}

/// Reads the arguments of all calls of an answer, each of at most `limit` bytes. What cannot be
/// used is a text for the model that says what is wrong.
pub(crate) async fn read_all(
    written: Vec<Written>,
    limit: usize,
) -> Vec<Result<Arguments, String>> {
    let count = written.len();
    let bytes = written.iter().map(|one| one.text.len()).sum();
    let read = move || written.into_iter().map(|one| read(&one, limit)).collect();
    match beside(bytes, read).await {
        Ok(arguments) => arguments,
        Err(stopped) => vec![Err(stopped); count],
    }
}

/// Does what takes long for many bytes on a thread of its own, and else at once.
pub(super) async fn beside<T: Send + 'static>(
    bytes: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, String> {
    if bytes <= LARGE_BYTES {
        return Ok(work());
    }
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|stopped| format!("the arguments could not be read: {stopped}"))
}

/// An object, possibly wrapped in one JSON string; nothing and null mean `{}`.
fn read(written: &Written, limit: usize) -> Result<Arguments, String> {
    let raw = written.text.as_str();
    if raw.len() > limit {
        return Err(format!(
            "the arguments have {} bytes, the limit is {limit}; the tool was not run. Do it in several calls with less in each",
            raw.len()
        ));
    }
    if written.may_be_cut && raw.trim().is_empty() {
        return Err(unusable(CUT, raw));
    }
    let value = match parse(raw)? {
        Value::String(inner) => match parse(&inner) {
            Ok(object @ Value::Object(_)) => object,
            _ => return Err(unusable("the arguments are a text, not an object", raw)),
        },
        object @ Value::Object(_) => object,
        Value::Null => Value::Object(Map::new()),
        Value::Array(_) => return Err(unusable("the arguments are an array, not an object", raw)),
        Value::Bool(_) | Value::Number(_) => {
            let what = "the arguments are a single value, not an object";
            return Err(unusable(what, raw));
        }
    };
    Ok(Arguments {
        value: Arc::new(value),
        bytes: raw.len(),
    })
}

fn parse(raw: &str) -> Result<Value, String> {
    if raw.trim().is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    if !text_fits_depth(raw) {
        let what = format!("the arguments are nested deeper than {MAX_DEPTH} levels");
        return Err(unusable(&what, raw));
    }
    serde_json::from_str(raw).map_err(|error| {
        if error.is_eof() {
            unusable(CUT, raw)
        } else {
            unusable(&format!("the arguments are not valid JSON ({error})"), raw)
        }
    })
}

fn unusable(what: &str, raw: &str) -> String {
    format!(
        "{what}; the tool was not run. Send the arguments as one complete JSON object. Received: {}",
        excerpt(raw, 200)
    )
}
