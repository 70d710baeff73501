//! What the tests of this layer need and an app must not: Tauri's mock runtime sends
//! neither page-load nor window-destroyed events.

use std::sync::atomic::Ordering;

use tauri::{Manager, Runtime};

use super::state::Ipc;

/// Names of all commands, as the handler knows them.
#[must_use]
pub fn commands() -> &'static [&'static str] {
    super::bindings::COMMANDS
}

/// Makes every command panic in its body, or stops that.
pub fn panic_in_commands<R: Runtime>(app: &impl Manager<R>, panics: bool) {
    app.state::<Ipc>().panics.store(panics, Ordering::SeqCst);
}

/// As if the webview loaded another page.
pub fn page_loads<R: Runtime>(app: &impl Manager<R>, webview: &str) {
    app.state::<Ipc>().page_loads(webview);
}

/// As if the window was destroyed.
pub fn window_destroyed<R: Runtime>(app: &impl Manager<R>, window: &str) {
    app.state::<Ipc>().window_destroyed(window);
}

/// How many subscriptions are open.
#[must_use]
pub fn subscriptions<R: Runtime>(app: &impl Manager<R>) -> usize {
    app.state::<Ipc>().subscriptions.count()
}
