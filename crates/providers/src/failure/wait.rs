//! How long a server asks to wait.

use std::time::{Duration, SystemTime};

use reqwest::header::HeaderMap;

/// The wait in the headers, in milliseconds: `retry-after-ms`, else `retry-after` in seconds
/// or as a date.
pub(super) fn asked_by(headers: &HeaderMap) -> Option<u64> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    if let Some(ms) = text("retry-after-ms").and_then(|ms| ms.parse::<f64>().ok()) {
        return in_ms(ms / 1000.0);
    }
    let wait = text("retry-after")?;
    if let Some(wait) = in_words(wait) {
        return Some(wait);
    }
    let date = httpdate::parse_http_date(wait).ok()?;
    let wait = date.duration_since(SystemTime::now()).unwrap_or_default();
    u64::try_from(wait.as_millis()).ok()
}

/// `34`, `34s`, `1.5s`, `1m30s`, `250ms`, in milliseconds.
pub(super) fn in_words(text: &str) -> Option<u64> {
    if let Ok(seconds) = text.parse::<f64>() {
        return in_ms(seconds);
    }
    let mut rest = text;
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
        let (number, unit) = rest.split_at_checked(digits)?;
        let number: f64 = number.parse().ok()?;
        let letters = unit
            .find(|letter: char| !letter.is_ascii_alphabetic())
            .unwrap_or(unit.len());
        let (unit, next) = unit.split_at_checked(letters)?;
        seconds += number
            * match unit {
                "ms" => 0.001,
                "s" => 1.0,
                "m" => 60.0,
                "h" => 3600.0,
                _ => return None,
            };
        rest = next;
    }
    in_ms(seconds)
}

/// The wait that a message names in words: "Please try again in 1.5s."
pub(super) fn after_phrase(message: &str) -> Option<u64> {
    let message = message.to_lowercase();
    let phrases = [
        "try again in ",
        "retry in ",
        "retry after ",
        "try again after ",
    ];
    let (_, rest) = phrases
        .iter()
        .find_map(|phrase| message.split_once(phrase))?;
    let mut words = rest.split_whitespace();
    let wait = words.next()?.trim_end_matches(['.', ',', ')']);
    let is_bare = wait.parse::<f64>().is_ok();
    match words
        .next()
        .map(|unit| unit.trim_end_matches(['.', ',', ')']))
    {
        Some("ms" | "milliseconds") if is_bare => in_words(&format!("{wait}ms")),
        Some("minutes" | "minute") if is_bare => in_words(&format!("{wait}m")),
        Some("hours" | "hour") if is_bare => in_words(&format!("{wait}h")),
        _ => in_words(wait),
    }
}

/// Negative, infinite and absurd waits are none.
fn in_ms(seconds: f64) -> Option<u64> {
    let wait = Duration::try_from_secs_f64(seconds).ok()?;
    u64::try_from(wait.as_millis()).ok()
}
