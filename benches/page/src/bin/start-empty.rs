//! An app with one page and nothing else.

#[path = "../start.rs"]
mod start;

fn main() {
    start::run(tauri::Builder::default(), tauri::generate_context!());
}
