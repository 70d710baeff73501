//! What goes and what stays when the context is made smaller. Planning is pure.

use std::sync::Arc;

use crate::agent::context::estimate::{self, QUARTERS};
use crate::agent::context::normalize::Normalizer;
use crate::agent::context::{Context, Images, ModelProfile, SkillPrompt, transcript};
use crate::agent::event::CompactionMethod;
use crate::agent::storage::{CompactionRecord, SessionEvent, SessionEventKind, ShortenedResult};

/// Share of the window a summary may take.
const SUMMARY_SHARE: u64 = 4;
/// Smallest size an oversized result is shortened to, in bytes.
const SHORTEST_RESULT: u64 = 400;

/// What a compaction will remove and keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    /// Events before this index go ...
    boundary: u64,
    /// ... except the latest user message, if it is among them.
    pinned: Option<u64>,
    /// Results of kept rounds that are too long.
    shortened: Vec<ShortenedResult>,
    /// Whether any unit goes.
    removes: bool,
}

/// How much a compaction must free.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target {
    /// The model's window, in tokens.
    pub(super) window: u64,
    /// What the context may cost afterwards, in tokens.
    pub(super) tokens: u64,
    /// Whole units to keep at most.
    pub(super) keep_units: usize,
}

/// A user message, or an answer with its calls and results. Kept or dropped whole.
struct Unit<'a> {
    events: &'a [Arc<SessionEvent>],
    is_user: bool,
    tokens: u64,
}

impl Unit<'_> {
    fn first_index(&self) -> u64 {
        self.events.first().map_or(0, |event| event.index)
    }
}

/// What no compaction can free: the fixed part and the newest user message with its skill, in
/// tokens.
pub(super) fn irreducible_tokens(context: &Context) -> u64 {
    let latest_user = context
        .events()
        .iter()
        .rfind(|event| matches!(event.kind, SessionEventKind::UserMessage { .. }));
    let pinned = latest_user.map_or(0, |event| {
        cost_with(
            context,
            std::slice::from_ref(event),
            context.skill().cloned(),
        )
    });
    context.fixed_tokens().saturating_add(pinned)
}

/// Decides what goes. `None`: nothing can be freed.
pub(super) fn plan(context: &Context, target: Target) -> Option<Plan> {
    let units = units(context);
    let newest = units.len().checked_sub(1)?;
    let latest_user = units.iter().rposition(|unit| unit.is_user);
    let available = target.tokens.saturating_sub(irreducible_tokens(context));
    // A summary takes its share of what is left; the tail gets the rest.
    let summary = (target.window / SUMMARY_SHARE).min(available / 2);
    let budget = available - summary;
    let keep_units = target.keep_units.max(1);

    let mut first_kept = newest;
    let mut tail = 0;
    for (at, unit) in units.iter().enumerate().rev() {
        let cost = if Some(at) == latest_user {
            0
        } else {
            unit.tokens
        };
        let kept = units.len() - at;
        if at != newest && (kept > keep_units || tail + cost > budget) {
            break;
        }
        tail += cost;
        first_kept = at;
    }
    let pinned = latest_user
        .filter(|at| *at < first_kept)
        .and_then(|at| units.get(at))
        .map(Unit::first_index);
    let gone = units
        .iter()
        .take(first_kept)
        .filter(|unit| Some(unit.first_index()) != pinned)
        .count();
    let shortened = shortened(context, units.get(first_kept..)?, budget.max(1));
    let previous = context.compaction();
    let known = previous.map_or(&[][..], |record| record.shortened.as_slice());
    if gone == 0 && shortened == known {
        return None;
    }
    // Where no unit goes, what went before stays gone, and nothing else.
    let (boundary, pinned) = match previous {
        _ if gone > 0 => (units.get(first_kept)?.first_index(), pinned),
        Some(record) => (record.boundary, record.pinned),
        None => (0, None),
    };
    Some(Plan {
        boundary,
        pinned,
        shortened,
        removes: gone > 0,
    })
}

/// Limits for the results of the kept units, where those alone exceed the budget.
fn shortened(context: &Context, kept: &[Unit<'_>], budget: u64) -> Vec<ShortenedResult> {
    let results: Vec<(&Arc<str>, &Arc<str>)> = kept
        .iter()
        .flat_map(|unit| unit.events)
        .filter_map(|event| match &event.kind {
            SessionEventKind::ToolResult {
                call_id, output, ..
            } => Some((call_id, output)),
            _ => None,
        })
        .collect();
    let mut limits: Vec<ShortenedResult> = context
        .compaction()
        .map(|record| record.shortened.clone())
        .unwrap_or_default();
    limits.retain(|limit| {
        results
            .iter()
            .any(|(call_id, _)| **call_id == limit.call_id)
    });
    let total: u64 = kept
        .iter()
        .filter(|unit| !unit.is_user)
        .map(|unit| unit.tokens)
        .sum();
    if total <= budget {
        return limits;
    }
    let fair = budget / (results.len().max(1) as u64);
    for (call_id, output) in results {
        // Three bytes cost at most one token by the estimate, whatever the script.
        let max_bytes = (fair * 3).max(SHORTEST_RESULT);
        if estimate::text(output) / QUARTERS <= fair || output.len() as u64 <= max_bytes {
            continue;
        }
        match limits.iter_mut().find(|limit| limit.call_id == *call_id) {
            Some(limit) => limit.max_bytes = limit.max_bytes.min(max_bytes),
            None => limits.push(ShortenedResult {
                call_id: Arc::clone(call_id),
                max_bytes,
            }),
        }
    }
    limits
}

fn units(context: &Context) -> Vec<Unit<'_>> {
    let events = context.events();
    let starts: Vec<usize> = events
        .iter()
        .enumerate()
        .filter(|(_, event)| {
            matches!(
                event.kind,
                SessionEventKind::UserMessage { .. } | SessionEventKind::AssistantMessage { .. }
            )
        })
        .map(|(at, _)| at)
        .collect();
    let ends = starts.iter().skip(1).copied().chain([events.len()]);
    starts
        .iter()
        .zip(ends)
        .filter_map(|(start, end)| {
            let events = events.get(*start..end)?;
            let is_user = matches!(events.first()?.kind, SessionEventKind::UserMessage { .. });
            Some(Unit {
                events,
                is_user,
                tokens: cost(context, events),
            })
        })
        .collect()
}

/// What events cost as the model sees them now.
fn cost(context: &Context, events: &[Arc<SessionEvent>]) -> u64 {
    cost_with(context, events, None)
}

/// The same with a skill's prompt before its message.
fn cost_with(context: &Context, events: &[Arc<SessionEvent>], skill: Option<SkillPrompt>) -> u64 {
    let shortened = context.compaction().map(|record| CompactionRecord {
        summary: None,
        ..record.clone()
    });
    let mut folded = Normalizer::new(
        context.notes(),
        context.profile().clone(),
        shortened.as_ref(),
        context.refused_images().clone(),
        skill,
    );
    for event in events {
        folded.push(event);
    }
    folded.close_round();
    folded.cost() / QUARTERS
}

impl Plan {
    /// Whether messages go, so that a summary is worth asking for.
    pub(super) fn removes(&self) -> bool {
        self.removes
    }

    /// The record of this compaction, with a summary or, without one, what was there before.
    pub(super) fn record(&self, context: &Context, summary: Option<String>) -> CompactionRecord {
        let method = if summary.is_some() {
            CompactionMethod::Summarized
        } else {
            CompactionMethod::Truncated
        };
        let before = context
            .compaction()
            .and_then(|record| record.summary.clone());
        let notes = context.notes();
        let fallback = match before {
            before if !self.removes => before,
            None => Some(notes.earlier_removed.to_string()),
            // What is missing is told once, behind a summary or in place of one.
            Some(known)
                if known.ends_with(&*notes.removed_since_summary)
                    || known == notes.earlier_removed =>
            {
                Some(known)
            }
            Some(summary) => Some(format!("{summary}\n{}", notes.removed_since_summary)),
        };
        let mut record = CompactionRecord {
            method,
            summary: summary.or(fallback),
            boundary: self.boundary,
            pinned: self.pinned,
            shortened: self.shortened.clone(),
            tokens_before: context.estimated_tokens(),
            tokens_after: 0,
            usage: None,
        };
        record.tokens_after = context.tokens_with(&record);
        record
    }

    /// What the summariser reads: the summary so far and every message that goes, in text.
    pub(super) fn transcript(&self, context: &Context, limit_tokens: u64) -> String {
        let before = context.compaction().map(|record| CompactionRecord {
            shortened: record.shortened.clone(),
            ..record.clone()
        });
        let profile = ModelProfile {
            provider_id: Arc::clone(&context.profile().provider_id),
            images: Images::Unseen,
        };
        let mut folded = Normalizer::new(
            context.notes(),
            profile,
            before.as_ref(),
            context.refused_images().clone(),
            None,
        );
        for event in context.events() {
            if event.index < self.boundary {
                folded.push(event);
            }
        }
        folded.close_round();
        transcript::written(
            folded.messages().iter().map(|message| &**message),
            limit_tokens,
        )
    }
}

/// Longest summary for a window, in tokens.
pub(super) fn summary_limit(window: u64) -> u64 {
    (window / SUMMARY_SHARE).max(1)
}
