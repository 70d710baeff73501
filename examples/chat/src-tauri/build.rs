//! Checks the capabilities and embeds what the app needs.

fn main() {
    tauri_build::build();
}
