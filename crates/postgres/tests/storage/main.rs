//! The storages against a real server, which the tests start by themselves.
#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on fails"
)]

mod conformance;
mod processes;
mod server;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use server::Server;
use youyou_agent_postgres::{Postgres, PostgresOptions};

/// The server that all running tests share. It stops with the last of them.
fn shared() -> Option<Arc<Server>> {
    static SERVER: Mutex<Weak<Server>> = Mutex::new(Weak::new());
    let mut shared = SERVER.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(server) = shared.upgrade() {
        return Some(server);
    }
    let server = Arc::new(server::start()?);
    *shared = Arc::downgrade(&server);
    Some(server)
}

/// The name of a schema that nobody has used.
fn fresh_schema() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("test_{}", COUNT.fetch_add(1, Ordering::Relaxed))
}

async fn open(server: &Server, schema: &str) -> Postgres {
    PostgresOptions::new(server.url())
        .schema(schema)
        .max_connections(4)
        .connect()
        .await
        .unwrap()
}
