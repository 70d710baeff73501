//! The order in which the handlers of one hook run: stages, `before`, registration.

use super::Hook;
use super::registry::Tapped;
use crate::agent::error::AgentError;

/// Puts handlers in order: lower stages first, each before those it named, and otherwise as
/// they were registered.
///
/// # Errors
/// `INVALID_CONFIG` naming the taps that each would have to run before another one.
pub(super) fn ordered<H: Hook>(taps: Vec<Tapped<H>>) -> Result<Vec<Tapped<H>>, AgentError> {
    let mut left: Vec<Tapped<H>> = taps;
    let mut done = Vec::with_capacity(left.len());
    // Sorting is stable: within a stage the order of registration holds.
    left.sort_by_key(|tapped| tapped.tap.stage);
    while !left.is_empty() {
        let next = (0..left.len()).find(|at| is_free(&left, *at));
        let Some(next) = next else {
            let names: Vec<String> = left
                .iter()
                .map(|tapped| format!("\"{}\"", tapped.tap.name))
                .collect();
            return Err(AgentError::invalid_config(
                "plugin",
                &format!(
                    "the taps {} of {} cannot be put in order: look at their stages and at what each must come before",
                    names.join(", "),
                    H::NAME
                ),
            ));
        };
        done.push(left.remove(next));
    }
    Ok(done)
}

/// Whether nothing that is left has to run before this one.
fn is_free<H: Hook>(left: &[Tapped<H>], at: usize) -> bool {
    let Some(candidate) = left.get(at) else {
        return false;
    };
    let mut others = left.iter().enumerate().filter(|(other, _)| *other != at);
    !others.any(|(_, other)| {
        other.tap.stage < candidate.tap.stage || other.tap.before.contains(&candidate.tap.name)
    })
}
