//! The visible path of a session: the chain of ancestors of its head.
//!
//! A session is a log that is only ever appended to, and a tree in that log. Each event
//! follows the one before it, except where [`HeadMove`] says what the next one follows. So
//! the moves alone tell the whole shape, and a log without any is its own path.

// Requirements: 13 A conversation one can bend, Head.

use std::ops::RangeInclusive;

use super::{HeadMove, SessionEvent};

/// Which indices lie on the visible path, as ranges in rising order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Path(Vec<RangeInclusive<u64>>);

impl Path {
    /// The path after these moves, which are in order of index.
    pub(crate) fn after(moves: &[HeadMove]) -> Self {
        let mut ranges = Vec::new();
        let mut last = u64::MAX;
        let mut earlier = moves;
        loop {
            let Some((newest, rest)) = earlier.split_last() else {
                ranges.push(0..=last);
                break;
            };
            if newest.index < last {
                ranges.push(newest.index + 1..=last);
            }
            // A move can only lead to what was there: a foreign one that does not changes
            // nothing, and the walk always goes down.
            match newest.to {
                None => break,
                Some(to) if to < newest.index => last = to,
                Some(_) => last = newest.index,
            }
            // What was written since the newest move before `last` follows that move.
            earlier = before(rest, last);
        }
        ranges.reverse();
        Self(ranges)
    }

    /// The path of a log.
    pub(crate) fn of<'a>(events: impl IntoIterator<Item = &'a SessionEvent>) -> Self {
        let moves: Vec<HeadMove> = events.into_iter().filter_map(HeadMove::of).collect();
        Self::after(&moves)
    }

    /// The ranges that hold what lies at `from` and behind it.
    pub(crate) fn ranges_from(self, from: u64) -> impl Iterator<Item = RangeInclusive<u64>> {
        let ahead = self.0.into_iter().filter(move |range| *range.end() >= from);
        ahead.map(move |range| from.max(*range.start())..=*range.end())
    }

    /// Whether an event lies on the path.
    pub(crate) fn contains(&self, index: u64) -> bool {
        let at = self.0.partition_point(|range| *range.end() < index);
        self.0.get(at).is_some_and(|range| range.contains(&index))
    }
}

/// The moves that happened before an index.
fn before(moves: &[HeadMove], index: u64) -> &[HeadMove] {
    let count = moves.partition_point(|one| one.index < index);
    moves.get(..count).unwrap_or(moves)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(moves: &[(u64, Option<u64>)]) -> Vec<RangeInclusive<u64>> {
        let moves: Vec<HeadMove> = moves
            .iter()
            .map(|&(index, to)| HeadMove { index, to })
            .collect();
        Path::after(&moves).0
    }

    #[test]
    fn a_log_without_moves_is_its_own_path() {
        assert_eq!(path(&[]), [0..=u64::MAX]);
    }

    #[test]
    fn a_move_leaves_out_what_it_moved_away_from() {
        assert_eq!(path(&[(5, Some(2))]), [0..=2, 6..=u64::MAX]);
        assert_eq!(path(&[(5, None)]), [6..=u64::MAX]);
    }

    #[test]
    fn a_move_into_another_branch_follows_that_branch_to_the_start() {
        // 0 1 2 3 4 | 5 to 1 | 6 7 | 8 to 3 | 9 | 10 to 7 | 11 ...
        let moves = [(5, Some(1)), (8, Some(3)), (10, Some(7))];
        assert_eq!(path(&moves), [0..=1, 6..=7, 11..=u64::MAX]);
        assert_eq!(path(&moves[..2]), [0..=3, 9..=u64::MAX]);
    }

    #[test]
    fn moves_one_after_another_leave_the_last() {
        assert_eq!(
            path(&[(5, Some(2)), (6, Some(4)), (7, Some(1))]),
            [0..=1, 8..=u64::MAX]
        );
    }

    #[test]
    fn a_move_that_leads_nowhere_changes_nothing() {
        assert_eq!(path(&[(5, Some(5))]), [0..=5, 6..=u64::MAX]);
        assert_eq!(path(&[(5, Some(900))]), [0..=5, 6..=u64::MAX]);
        assert_eq!(path(&[(u64::MAX, Some(3))]), [0..=3]);
    }

    #[test]
    fn an_event_is_on_the_path_if_a_range_holds_it() {
        let path = Path::after(&[HeadMove {
            index: 5,
            to: Some(2),
        }]);
        let on: Vec<u64> = (0..9).filter(|index| path.contains(*index)).collect();
        assert_eq!(on, [0, 1, 2, 6, 7, 8]);
    }
}
