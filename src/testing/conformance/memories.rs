//! The rules of [`MemoryStorage`].

use std::future::Future;
use std::num::NonZeroUsize;
use std::sync::Arc;

use super::rule::Rule;
use crate::testing::memory;
use crate::{Memory, MemoryStorage};

/// Runs a [`MemoryStorage`] through the rules of its trait. `fresh` gives an empty storage
/// each time. Needs a tokio runtime.
///
/// Of ranking only the least is asked, since it is the storage's own business: a memory
/// that shares a word with the query is found, in scripts without spaces too.
///
/// # Panics
/// When a rule is broken, with its words, what was found and what was expected.
///
/// # Examples
/// ```
/// use youyou_agent::testing::{InMemoryMemories, memory_storage_conformance};
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # runtime.block_on(async {
/// memory_storage_conformance(async || InMemoryMemories::new()).await;
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
pub async fn memory_storage_conformance<S, F, Fut>(fresh: F)
where
    S: MemoryStorage,
    F: Fn() -> Fut,
    Fut: Future<Output = S>,
{
    round_trip(fresh().await).await;
    upserting(fresh().await).await;
    order(fresh().await).await;
    namespaces(fresh().await).await;
    deleting(fresh().await).await;
    searching(fresh().await).await;
    any_query(fresh().await).await;
    at_once(fresh().await).await;
}

fn at_most(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).unwrap_or(NonZeroUsize::MIN)
}

fn at(time: u64, memory: Memory) -> Memory {
    Memory {
        created_at: time,
        updated_at: time,
        ..memory
    }
}

fn ids(memories: &[Memory]) -> Vec<&str> {
    memories.iter().map(|memory| memory.id.as_str()).collect()
}

async fn round_trip<S: MemoryStorage>(storage: S) {
    let rule = Rule("a memory comes back as it was written");
    rule.same(rule.got(storage.load("").await), Vec::new());
    let written = Memory {
        id: "记忆 'm' \"1\"".to_owned(),
        namespace: "空间/a b".to_owned(),
        content: "用户喜欢绿茶 👩‍👩‍👧 'q' \"q\" \\ %_ \r\n\t end ".to_owned(),
        source: "session-1".to_owned(),
        tags: vec!["茶".to_owned(), "a,b".to_owned(), String::new()],
        created_at: 1,
        updated_at: (1 << 53) - 1,
    };
    rule.got(storage.upsert(written.clone()).await);
    rule.same(rule.got(storage.load("空间/a b").await), vec![written]);
}

async fn upserting<S: MemoryStorage>(storage: S) {
    let first = Memory {
        tags: vec!["tea".to_owned()],
        ..at(1_000, memory("m1", "", "likes tea"))
    };
    let rule = Rule("the same content again changes nothing but updated_at");
    rule.got(storage.upsert(first.clone()).await);
    let again = Memory {
        source: "elsewhere".to_owned(),
        tags: vec!["other".to_owned()],
        ..at(2_000, first.clone())
    };
    rule.got(storage.upsert(again).await);
    let expected = Memory {
        updated_at: 2_000,
        ..first
    };
    rule.same(rule.got(storage.load("").await), vec![expected]);

    let rule = Rule("other content changes everything but created_at");
    let changed = Memory {
        source: "elsewhere".to_owned(),
        tags: vec!["coffee".to_owned(), "咖啡".to_owned()],
        ..at(3_000, memory("m1", "", "likes coffee now"))
    };
    rule.got(storage.upsert(changed.clone()).await);
    let expected = Memory {
        created_at: 1_000,
        ..changed
    };
    rule.same(rule.got(storage.load("").await), vec![expected.clone()]);
    rule.same(
        rule.got(storage.search("", "coffee", at_most(5)).await),
        vec![expected],
    );

    let rule = Rule("a search does not find what a memory said before");
    rule.same(
        rule.got(storage.search("", "tea", at_most(5)).await),
        Vec::new(),
    );
}

async fn order<S: MemoryStorage>(storage: S) {
    let rule = Rule("load gives the most recently updated first");
    for (id, time) in [("m1", 5), ("m2", 9), ("m3", 1)] {
        rule.got(storage.upsert(at(time, memory(id, "", id))).await);
    }
    rule.same(
        ids(&rule.got(storage.load("").await)),
        vec!["m2", "m1", "m3"],
    );
    rule.got(storage.upsert(at(10, memory("m3", "", "m3"))).await);
    rule.same(
        ids(&rule.got(storage.load("").await)),
        vec!["m3", "m2", "m1"],
    );
}

async fn namespaces<S: MemoryStorage>(storage: S) {
    let rule = Rule("namespaces do not see each other");
    let spaces = ["", "a", "A", "a%", "a/b"];
    for (n, space) in spaces.iter().enumerate() {
        let content = format!("apple number {n}");
        rule.got(
            storage
                .upsert(memory(&format!("m{n}"), space, &content))
                .await,
        );
    }
    for (n, space) in spaces.iter().enumerate() {
        let expected = format!("m{n}");
        rule.same(
            ids(&rule.got(storage.load(space).await)),
            vec![expected.as_str()],
        );
        let found = rule.got(storage.search(space, "apple", at_most(10)).await);
        rule.same(ids(&found), vec![expected.as_str()]);
    }
    rule.same(rule.got(storage.load("b").await), Vec::new());

    let rule = Rule("an id is unique over all namespaces: it moves, it is never doubled");
    rule.got(storage.upsert(memory("m0", "a", "pear")).await);
    rule.same(rule.got(storage.load("").await), Vec::new());
    rule.same(rule.got(storage.load("a").await).len(), 2);
}

async fn deleting<S: MemoryStorage>(storage: S) {
    let rule = Rule("delete removes one memory of one namespace and says whether it was there");
    for id in ["m1", "m2"] {
        rule.got(storage.upsert(memory(id, "a", "apple")).await);
    }
    rule.same(rule.got(storage.delete("b", "m1").await), false);
    rule.same(rule.got(storage.delete("a", "nobody").await), false);
    rule.same(rule.got(storage.load("a").await).len(), 2);
    rule.same(rule.got(storage.delete("a", "m1").await), true);
    rule.same(rule.got(storage.delete("a", "m1").await), false);
    rule.same(ids(&rule.got(storage.load("a").await)), vec!["m2"]);
    rule.same(
        ids(&rule.got(storage.search("a", "apple", at_most(5)).await)),
        vec!["m2"],
    );
}

async fn searching<S: MemoryStorage>(storage: S) {
    let rule = Rule("search finds what shares a word with the user's own text");
    for (id, content) in [
        ("tea", "The user likes green tea."),
        ("city", "用户住在杭州"),
        ("dog", "The dog is called Rex."),
    ] {
        rule.got(storage.upsert(memory(id, "", content)).await);
    }
    for (query, expected) in [
        ("tea", "tea"),
        ("Which tea should I drink today?", "tea"),
        ("REX", "dog"),
        ("杭州", "city"),
        ("明天杭州会下雨吗?", "city"),
    ] {
        let found = rule.got(storage.search("", query, at_most(3)).await);
        rule.holds(
            ids(&found).contains(&expected),
            &format!("{query:?} does not find {expected:?} but {:?}", ids(&found)),
        );
    }

    let rule = Rule("search gives at most `limit` memories, each once");
    for n in 0..30 {
        rule.got(
            storage
                .upsert(memory(&format!("n{n}"), "many", "one apple"))
                .await,
        );
    }
    for limit in [1, 7, 30, 100] {
        let found = rule.got(storage.search("many", "apple apple", at_most(limit)).await);
        rule.same(found.len(), limit.min(30));
        let mut distinct = ids(&found);
        distinct.sort_unstable();
        distinct.dedup();
        rule.same(distinct.len(), found.len());
    }

    let rule = Rule("search puts the memory that fits best first");
    rule.got(
        storage
            .upsert(memory("best", "many", "one apple and one yellow banana"))
            .await,
    );
    let found = rule.got(
        storage
            .search("many", "apple yellow banana", at_most(3))
            .await,
    );
    rule.same(ids(&found).first(), Some(&"best"));
}

async fn any_query<S: MemoryStorage>(storage: S) {
    let rule = Rule("search takes any text, whatever it means to a query language");
    rule.got(storage.upsert(memory("m1", "", "apple")).await);
    let long = "apple 频道 ".repeat(20_000);
    let queries = [
        "",
        " \n",
        "\"",
        "'",
        "\"apple",
        "apple*",
        "(apple",
        "apple)",
        "AND",
        "NOT apple",
        "apple OR",
        "NEAR(",
        "content:apple",
        "^",
        "-",
        "a-b",
        "%",
        "_",
        "\\",
        "{}",
        "[",
        "?!.,;:",
        "\u{0}",
        "👩‍👩‍👧",
    ];
    for query in queries.into_iter().chain([long.as_str()]) {
        let found = rule.got(storage.search("", query, at_most(5)).await);
        rule.holds(found.len() <= 1, "a memory is found more than once");
    }
    rule.same(
        ids(&rule.got(storage.search("", &long, at_most(5)).await)),
        vec!["m1"],
    );
}

#[expect(
    clippy::panic,
    reason = "a broken rule fails the test that runs the kit"
)]
async fn at_once<S: MemoryStorage>(storage: S) {
    let rule = Rule("memories that are written at the same time are all there");
    let storage = Arc::new(storage);
    let writers: Vec<_> = (0..40)
        .map(|n| {
            let storage = Arc::clone(&storage);
            tokio::spawn(async move { storage.upsert(memory(&format!("m{n}"), "", "apple")).await })
        })
        .collect();
    for writer in writers {
        match writer.await {
            Ok(answer) => rule.got(answer),
            Err(stopped) => panic!("rule broken: {}: a writer was stopped: {stopped}", rule.0),
        }
    }
    rule.same(rule.got(storage.load("").await).len(), 40);
}
