//! The kit notices wrong pages of events and wrong moves of the head.

use async_trait::async_trait;
use youyou_agent::testing::{InMemorySessions, session_storage_conformance};
use youyou_agent::{
    EventPage, HeadMove, PageRequest, SessionEvent, SessionStorage as _, StorageError,
};

use crate::altered::{Alteration, Altered, breaks};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Flaw {
    BeginsBehindFrom,
    IgnoresLimit,
    IgnoresUntil,
    HoldsUntil,
    EmptyRangeFails,
    FullPageHasNext,
    NextIsTheLastOne,
    NextSkipsNoGap,
    NextBehindUntil,
    IgnoresBytes,
    LeavesOutLargeOnes,
    EndsBeforeLargeOnes,
    FindsMovesByTheirWords,
    MovesInOrderOfWriting,
    KeepsReplacedMoves,
    ForgetsMovesToTheStart,
    UnknownHasNoPageButFails,
}

fn last_index(page: &EventPage) -> Option<u64> {
    page.events.last().map(|event| event.index)
}

#[async_trait]
impl Alteration for Flaw {
    async fn load_page(
        &self,
        inner: &InMemorySessions,
        session_id: &str,
        request: PageRequest,
    ) -> Result<Option<EventPage>, StorageError> {
        let mut altered = request;
        match self {
            Self::BeginsBehindFrom => altered.from = request.from.saturating_add(1),
            Self::IgnoresLimit => altered.limit = std::num::NonZeroUsize::MAX,
            Self::IgnoresUntil => altered.until = None,
            Self::HoldsUntil => {
                altered.until = request.until.map(|until| until.saturating_add(1));
            }
            Self::IgnoresBytes => altered.max_bytes = u64::MAX,
            Self::EmptyRangeFails if request.until.is_some_and(|until| until < request.from) => {
                return Err(StorageError::new("attempt to subtract with overflow"));
            }
            Self::UnknownHasNoPageButFails if inner.events(session_id).is_empty() => {
                return Err(StorageError::new("no rows returned"));
            }
            _ => {}
        }
        let Some(mut page) = inner.load_page(session_id, altered).await? else {
            return Ok(None);
        };
        let size = |event: &SessionEvent| serde_json::to_vec(event).unwrap().len() as u64;
        match self {
            Self::FullPageHasNext if page.events.len() == request.limit.get() => {
                page.next = last_index(&page).map(|last| last + 1);
            }
            Self::NextIsTheLastOne if page.next.is_some() => page.next = last_index(&page),
            Self::NextSkipsNoGap if page.next.is_some() => {
                page.next = last_index(&page).map(|last| last + 1);
            }
            Self::NextBehindUntil if page.next.is_none() => page.next = request.until,
            Self::LeavesOutLargeOnes => {
                page.events.retain(|event| size(event) <= request.max_bytes);
            }
            Self::EndsBeforeLargeOnes if page.events.len() > 1 => {
                let last = page.events.pop().unwrap();
                if size(&last) > request.max_bytes {
                    page.next = Some(last.index);
                } else {
                    page.events.push(last);
                }
            }
            _ => {}
        }
        Ok(Some(page))
    }

    async fn head_moves(
        &self,
        inner: &InMemorySessions,
        session_id: &str,
    ) -> Result<Vec<HeadMove>, StorageError> {
        let mut moves = inner.head_moves(session_id).await?;
        match self {
            Self::FindsMovesByTheirWords => {
                let events = inner.events(session_id);
                let quotes = |event: &&SessionEvent| {
                    serde_json::to_string(event).unwrap().contains("headMoved")
                };
                moves = events
                    .iter()
                    .filter(quotes)
                    .map(|event| HeadMove {
                        index: event.index,
                        to: event.head_moved_to().flatten(),
                    })
                    .collect();
            }
            Self::MovesInOrderOfWriting => moves.sort_by_key(|one| one.index == 11),
            Self::KeepsReplacedMoves if inner.events(session_id).len() > 6 => {
                moves.push(HeadMove {
                    index: 11,
                    to: Some(9),
                });
                moves.sort_by_key(|one| one.index);
                moves.dedup();
            }
            Self::ForgetsMovesToTheStart => moves.retain(|one| one.to.is_some()),
            _ => {}
        }
        Ok(moves)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_flaw_of_pages_and_moves_is_found_and_its_rule_named() {
    let requests = "load_page gives what the request asks for";
    let cases = [
        (Flaw::BeginsBehindFrom, requests),
        (Flaw::IgnoresLimit, requests),
        (Flaw::IgnoresUntil, requests),
        (Flaw::HoldsUntil, requests),
        (Flaw::EmptyRangeFails, requests),
        (Flaw::FullPageHasNext, requests),
        (Flaw::NextIsTheLastOne, requests),
        (Flaw::NextSkipsNoGap, requests),
        (Flaw::NextBehindUntil, requests),
        (Flaw::IgnoresBytes, "passes max_bytes"),
        (Flaw::LeavesOutLargeOnes, "passes max_bytes"),
        (Flaw::EndsBeforeLargeOnes, "larger than max_bytes"),
        (Flaw::FindsMovesByTheirWords, "gives every move of the head"),
        (Flaw::MovesInOrderOfWriting, "gives every move of the head"),
        (Flaw::ForgetsMovesToTheStart, "gives every move of the head"),
        (Flaw::KeepsReplacedMoves, "a replaced event moves the head"),
        (
            Flaw::UnknownHasNoPageButFails,
            "never written does not exist",
        ),
    ];
    for (flaw, rule) in cases {
        let fresh = async || Altered::new(flaw);
        breaks(flaw, rule, session_storage_conformance(fresh)).await;
    }
}
