//! Which memories fit a text best.
//!
//! Each term adds to the memories it is in, the more the fewer they are. That is bm25 for
//! texts that say a thing once, as memories do. SQLite's own `bm25` reads every position in
//! every memory that has any of the terms, which takes tens of milliseconds among 20,000;
//! this reads lists of numbers, and of common words only the beginning.

use std::collections::BinaryHeap;

use rusqlite::{Connection, params};

use crate::terms::query_terms;

/// A term of more memories than this says little, and only the newest of them count.
const COMMON: usize = 1_000;
/// One more tells that there are more.
const LIMIT: i64 = COMMON as i64 + 1;
/// What a common term adds: as if half of all memories had it.
const COMMON_WEIGHT: f64 = std::f64::consts::LN_2;
/// Scores are whole numbers of this part, so that they have an order.
const UNIT: f64 = 1e-4;

/// The keys of memories that have any term of `text`, the best first; among equals the newest.
pub(crate) fn ranked(
    connection: &Connection,
    text: &str,
) -> rusqlite::Result<impl Iterator<Item = i64>> {
    let newest: i64 =
        connection.query_one("SELECT coalesce(max(key), 0) FROM memories", [], |row| {
            row.get(0)
        })?;
    let mut scores = vec![0_u32; usize::try_from(newest).unwrap_or(0).saturating_add(1)];
    let mut statement = connection.prepare_cached(
        "SELECT rowid FROM memory_terms WHERE memory_terms MATCH ?1 ORDER BY rowid DESC LIMIT ?2",
    )?;
    for term in query_terms(text) {
        let found: Vec<i64> = statement
            .query_map(params![term, LIMIT], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        let weight = weight(found.len(), scores.len());
        for key in found {
            let score = usize::try_from(key)
                .ok()
                .and_then(|key| scores.get_mut(key));
            if let Some(score) = score {
                *score = score.saturating_add(weight);
            }
        }
    }
    let mut best: BinaryHeap<(u32, i64)> = scores
        .into_iter()
        .zip(0..)
        .filter(|(score, _)| *score > 0)
        .collect();
    Ok(std::iter::from_fn(move || best.pop().map(|(_, key)| key)))
}

/// The inverse document frequency of bm25.
fn weight(found: usize, all: usize) -> u32 {
    let weight = if found > COMMON {
        COMMON_WEIGHT
    } else {
        let (found, all) = (found as f64, all as f64);
        (1.0 + (all - found + 0.5).max(0.0) / (found + 0.5)).ln()
    };
    (weight / UNIT) as u32
}
