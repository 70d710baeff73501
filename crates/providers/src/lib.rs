//! Language models for the YouYou agent: OpenAI, Anthropic, Gemini and every server that speaks
//! one of their protocols.
//!
//! [`Providers`] is all an app needs: the vendors whose keys it has, servers of its own
//! ([`Endpoint`]), and model servers that run on this computer.
//! ```no_run
//! use youyou_agent::{AgentBuilder, AgentConfig};
//! use youyou_agent_providers::{Endpoint, Providers};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let providers = Providers::from_env() // OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY, ...
//!     .endpoint(Endpoint::openai_compatible("my-server", "http://127.0.0.1:8000/v1"))
//!     .detect_local_servers();
//! let agent = AgentBuilder::new(AgentConfig::new("gpt-5-mini"))
//!     .providers(providers)
//!     .build()
//!     .await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Keys
//! They come from a [`KeySource`]: the environment, a closure, the system's keyring (feature
//! `keyring`). A key is asked for at each request and is in no `Debug` output, log or error.
//! ```
//! use youyou_agent_providers::Providers;
//!
//! // For instance from an app's own settings; asked for by the provider's id.
//! let keys = |provider: &str| (provider == "openai").then(|| "sk-secret".to_owned());
//! let providers = Providers::with_keys(keys);
//! ```
//! [`Providers::check`] tells whether a key and an address work, for a settings dialog.
//!
//! # One question, without an agent
//! Each provider is a [`ModelProvider`](youyou_agent::ModelProvider) and can be used alone:
//! ```
//! # use std::io::{Read, Write};
//! use futures_util::StreamExt;
//! use tokio_util::sync::CancellationToken;
//! use youyou_agent::{ChatEvent, ChatRequest, ContentBlock, Message, UserMessage, UserOrigin};
//! use youyou_agent_providers::{Endpoint, Providers};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # // A server that says hello to everyone.
//! # let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
//! # let address = format!("http://{}/v1", listener.local_addr()?);
//! # std::thread::spawn(move || {
//! #     let (mut stream, _) = listener.accept().unwrap();
//! #     stream.read(&mut [0; 65_536]).unwrap();
//! #     let body = "data: {\"choices\":[{\"delta\":{\"content\":\"Hello.\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
//! #     let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n";
//! #     write!(stream, "{head}content-length: {}\r\n\r\n{body}", body.len()).unwrap();
//! # });
//! let own = Endpoint::openai_compatible("my-server", &address);
//! let provider = Providers::new().endpoint(own).into_iter().next().ok_or("no provider")?;
//! let hi = Message::User(UserMessage {
//!     content: vec![ContentBlock::text("Hi")],
//!     origin: UserOrigin::Input,
//! });
//! let request = ChatRequest::new("qwen3", [hi]);
//! let mut answer = provider.chat(request, CancellationToken::new()).await?;
//! let mut said = String::new();
//! while let Some(event) = answer.next().await {
//!     if let ChatEvent::TextDelta { text, .. } = event? {
//!         said.push_str(&text);
//!     }
//! }
//! assert_eq!(said, "Hello.");
//! # Ok(())
//! # }
//! ```
//!
//! # What it holds to
//! - Nothing the model said is lost, doubled or reordered, however the bytes are cut.
//! - What a vendor wants back goes back byte for byte in its place (signed reasoning, thought
//!   signatures, encrypted items), to that vendor and model family only.
//! - An answer that was cut, filtered or refused never looks whole; an end of the data without an
//!   end mark is an error.
//! - An error has the vendor's own reason, taken out of what wraps it.
//! - This computer is reached without a proxy; everything else through that of the system.

mod answer;
#[cfg(feature = "__bench")]
#[doc(hidden)]
pub mod bench;
mod calls;
mod catalog;
mod check;
mod endpoint;
mod failure;
mod http;
mod keys;
mod line;
mod local;
mod providers;
mod server;
mod sse;
mod think;
mod vendor;
mod wire;

pub use endpoint::Endpoint;
#[cfg(feature = "keyring")]
pub use keys::Keyring;
pub use keys::{Environment, Key, KeySource};
pub use providers::Providers;
