//! Checks the capabilities and embeds what the app needs.

fn main() {
    // The pages are embedded: what was built anew must get in.
    println!("cargo:rerun-if-changed=../dist");
    tauri_build::build();
}
