//! How a webview reaches the agent.
pub(crate) mod bindings;
mod forward;
mod page;
mod requests;
mod subscriptions;
