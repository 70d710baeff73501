//! What both start-up programs share: an app that says when its page is there, and ends.

use tauri::webview::PageLoadEvent;
use tauri::{Builder, Context, Manager as _, Wry};

/// Runs the app until its page has loaded. Whoever started it takes the time.
pub(crate) fn run(builder: Builder<Wry>, context: Context) {
    builder
        .on_page_load(|webview, page| {
            if page.event() == PageLoadEvent::Finished {
                println!("loaded");
                webview.app_handle().exit(0);
            }
        })
        .run(context)
        .expect("the app runs");
}
