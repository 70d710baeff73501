//! The desktop chat.
#![cfg_attr(not(debug_assertions), windows_subsystem = "windows")]

use std::process::ExitCode;

fn main() -> ExitCode {
    match youyou_chat::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("YouYou Chat could not start: {error}");
            ExitCode::FAILURE
        }
    }
}
