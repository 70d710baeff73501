//! How much memory the app and its web process hold, in KiB, as Linux tells it.

use std::collections::HashSet;
use std::fs;

use serde::Serialize;

/// Resident memory.
#[derive(Debug, Serialize)]
pub(crate) struct Held {
    app: u64,
    web: u64,
}

/// What is held now.
#[tauri::command]
pub(crate) fn memory() -> Held {
    let own = std::process::id();
    let processes: Vec<u32> = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    // The web process may hang below a helper of the app.
    let mut family = HashSet::from([own]);
    loop {
        let before = family.len();
        family.extend(
            processes
                .iter()
                .filter(|process| {
                    u32::try_from(field(**process, "PPid:"))
                        .is_ok_and(|parent| family.contains(&parent))
                })
                .copied()
                .collect::<Vec<_>>(),
        );
        if family.len() == before {
            break;
        }
    }
    let is_web = |process: &&u32| {
        let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
        name.starts_with("WebKitWebProces")
    };
    Held {
        app: field(own, "VmRSS:"),
        web: family
            .iter()
            .filter(is_web)
            .map(|process| field(*process, "VmRSS:"))
            .sum(),
    }
}

fn field(process: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(name));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok())
        .unwrap_or_default()
}
