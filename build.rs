fn main() {
    #[cfg(feature = "tauri")]
    tauri_plugin::Builder::new(&[]).build();
}
