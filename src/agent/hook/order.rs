//! The order in which the handlers of one hook run: stages, `before`, registration.

use super::Hook;
use super::run::Tapped;
use crate::agent::error::AgentError;

/// Puts handlers in order: lower stages first, within a stage as they were registered, except
/// that those which must come before another one are moved right before it.
///
/// # Errors
/// `INVALID_CONFIG` naming the taps that each would have to run before the next one.
pub(super) fn ordered<H: Hook>(mut left: Vec<Tapped<H>>) -> Result<Vec<Tapped<H>>, AgentError> {
    let mut ordered = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let next = next_of(&left).map_err(|circle| impossible(&left, &circle))?;
        ordered.push(left.remove(next));
    }
    Ok(ordered)
}

/// The position of the handler that runs next: the first one, or else the first that must come
/// before it, and so on.
///
/// # Errors
/// The positions of handlers in a circle: each must run after the next one.
fn next_of<H: Hook>(left: &[Tapped<H>]) -> Result<usize, Vec<usize>> {
    let mut path = vec![0];
    let mut at = 0;
    while let Some(earlier) = earlier_than(left, at) {
        if let Some(seen) = path.iter().position(|passed| *passed == earlier) {
            return Err(path.split_off(seen));
        }
        path.push(earlier);
        at = earlier;
    }
    Ok(at)
}

/// The first handler that must run before this one.
fn earlier_than<H: Hook>(left: &[Tapped<H>], at: usize) -> Option<usize> {
    let later = &left.get(at)?.tap;
    let mut others = left.iter().enumerate().filter(|(other, _)| *other != at);
    let (earlier, _) = others.find(|(_, other)| {
        other.tap.stage < later.stage || other.tap.before.contains(&later.name)
    })?;
    Some(earlier)
}

fn impossible<H: Hook>(left: &[Tapped<H>], circle: &[usize]) -> AgentError {
    let taps = circle.iter().filter_map(|at| left.get(*at));
    let named: Vec<String> = taps
        .map(|tapped| {
            format!(
                "\"{}\" of the plugin \"{}\" (stage {})",
                tapped.tap.name, tapped.plugin_id, tapped.tap.stage
            )
        })
        .collect();
    let reason = format!(
        "the handlers of {} cannot be put in order, because of these each would have to run after the next one, and the last one after the first: {}; change a stage or a before",
        H::NAME,
        named.join(", ")
    );
    AgentError::invalid_config("plugin", &reason)
}
