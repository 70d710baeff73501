//! Everything a server may do, over real sockets: each stream in one piece and at one byte per
//! chunk.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

#[path = "../support/mod.rs"]
mod support;

mod addresses;
mod agent;
mod back;
mod catalog;
mod chat;
mod failures;
mod fuzz;
mod keys;
mod torn;
mod vendors;

use support::{Pace, Reply, Server, ask, bare, provider, user};
use youyou_agent::{ChatEvent, ChatRequest, ProviderError, ProviderErrorKind};
use youyou_agent_providers::Endpoint;

const BOTH: [Pace; 2] = [Pace::Whole, Pace::Bytes];

/// What a server of OpenAI's protocol means with an answer, however it is cut.
async fn read(reply: Reply) -> (Vec<ChatEvent>, Result<(), ProviderError>) {
    let mut got = Vec::new();
    for pace in BOTH {
        let server = Server::start(pace, vec![reply.clone()]);
        let provider = provider(Endpoint::openai_compatible("own", &server.address).named("Own"));
        let (events, ended) = ask(&provider, ChatRequest::new("m", [user("Hi")])).await;
        got.push((bare(events), ended));
    }
    let other = got.pop().unwrap();
    let first = got.pop().unwrap();
    assert_eq!(first.0, other.0, "one byte per chunk is the same");
    assert_eq!(
        first.1.as_ref().map_err(without_port),
        other.1.as_ref().map_err(without_port),
        "one byte per chunk is the same"
    );
    first
}

fn without_port(error: &ProviderError) -> (ProviderErrorKind, String) {
    let message: String = error
        .message
        .chars()
        .filter(|letter| !letter.is_ascii_digit())
        .collect();
    (error.kind.clone(), message)
}

/// The error that an answer is.
async fn failure(reply: Reply) -> ProviderError {
    let (events, ended) = read(reply).await;
    match ended {
        Err(error) => error,
        Ok(()) => panic!("no error but {events:?}"),
    }
}
