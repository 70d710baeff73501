//! Faults happen when and as planned, and the storages in memory show what they hold.

use std::num::NonZeroUsize;

use futures_util::FutureExt as _;
use youyou_agent::testing::{
    Fault, FaultyMemories, FaultySessions, Gate, InMemoryMemories, InMemorySessions,
    MemoryOperation, SessionOperation, StorageCall, When, memory, session_created, user_message,
};
use youyou_agent::{MemoryStorage as _, SessionStorage as _, StorageError};

fn faulty() -> FaultySessions<InMemorySessions> {
    FaultySessions::new(InMemorySessions::new())
}

async fn write(storage: &FaultySessions<InMemorySessions>, index: u64) -> Result<(), StorageError> {
    storage.append("s1", &[user_message(index, "text")]).await
}

async fn outcomes(storage: &FaultySessions<InMemorySessions>, calls: u64) -> Vec<bool> {
    let mut outcomes = Vec::new();
    for index in 0..calls {
        outcomes.push(write(storage, index).await.is_ok());
    }
    outcomes
}

#[tokio::test]
async fn the_planned_calls_fail_and_only_those() {
    let storage = faulty();
    let faults = storage.faults();
    faults.fail(SessionOperation::Append, When::Nth(2));
    assert_eq!(outcomes(&storage, 3).await, [true, false, true]);
    // Counted from the moment of planning.
    faults.fail(SessionOperation::Append, When::From(2));
    assert_eq!(outcomes(&storage, 3).await, [true, false, false]);
    assert!(storage.load("s1").await.is_ok());
    faults.heal();
    assert_eq!(outcomes(&storage, 1).await, [true]);
    faults.fail(SessionOperation::Append, When::Always);
    assert_eq!(outcomes(&storage, 2).await, [false, false]);
    assert_eq!(faults.count(SessionOperation::Append), 9);
}

#[tokio::test]
async fn each_fault_does_what_its_name_says() {
    let storage = faulty();
    let next = |fault: Fault| {
        storage
            .faults()
            .inject(SessionOperation::Append, When::Nth(1), fault)
    };
    let written = || storage.inner().events("s1").len();

    next(Fault::Error("down".into()));
    assert_eq!(write(&storage, 0).await, Err(StorageError::new("down")));
    assert_eq!(written(), 0);
    storage.faults().heal();

    next(Fault::ErrorAfter("lost".into()));
    assert_eq!(write(&storage, 0).await, Err(StorageError::new("lost")));
    assert_eq!(written(), 1);
    storage.faults().heal();

    next(Fault::Hang);
    assert_eq!(write(&storage, 1).now_or_never(), None);
    assert_eq!(written(), 1);
    storage.faults().heal();

    next(Fault::HangAfter);
    assert_eq!(write(&storage, 1).now_or_never(), None);
    assert_eq!(written(), 2);
    storage.faults().heal();

    next(Fault::Panic("boom".into()));
    let panic = std::panic::AssertUnwindSafe(write(&storage, 2))
        .catch_unwind()
        .await;
    assert_eq!(panic.unwrap_err().downcast_ref::<String>().unwrap(), "boom");
    assert_eq!(written(), 2);
    storage.faults().heal();

    let gate = Gate::closed();
    next(Fault::Gate(gate.clone()));
    let mut writing = Box::pin(write(&storage, 2));
    assert_eq!((&mut writing).now_or_never(), None);
    gate.open();
    writing.await.unwrap();
    assert_eq!(written(), 3);
}

#[tokio::test]
async fn calls_are_noted_with_what_they_were_about() {
    let storage = faulty();
    let events = [session_created(0, "title", "m1"), user_message(1, "hi")];
    storage.append("s1", &events).await.unwrap();
    storage.find("title").await.unwrap();
    storage.list(None, NonZeroUsize::MIN).await.unwrap();
    storage.faults().called(SessionOperation::List, 1).await;
    let call = |operation, subject: &str, indices: &[u64]| StorageCall {
        operation,
        subject: subject.to_owned(),
        indices: indices.to_vec(),
    };
    let expected = [
        call(SessionOperation::Append, "s1", &[0, 1]),
        call(SessionOperation::Find, "title", &[]),
        call(SessionOperation::List, "", &[]),
    ];
    assert_eq!(storage.faults().calls(), expected);
}

#[tokio::test]
async fn memory_operations_fail_as_planned() {
    let storage = FaultyMemories::new(InMemoryMemories::new());
    storage.faults().fail(MemoryOperation::Upsert, When::Nth(2));
    assert!(storage.upsert(memory("m1", "", "a")).await.is_ok());
    assert!(storage.upsert(memory("m2", "", "b")).await.is_err());
    assert!(storage.upsert(memory("m3", "", "c")).await.is_ok());
    let ids: Vec<String> = storage
        .inner()
        .all()
        .into_iter()
        .map(|memory| memory.id)
        .collect();
    assert_eq!(ids, ["m1", "m3"]);
}

#[tokio::test]
async fn a_cursor_that_no_page_gave_is_refused() {
    let storage = InMemorySessions::new();
    let refusal = storage
        .list(Some("garbage"), NonZeroUsize::MIN)
        .await
        .unwrap_err();
    assert!(
        refusal.message.contains("\"garbage\" is no cursor"),
        "{refusal}"
    );
}
