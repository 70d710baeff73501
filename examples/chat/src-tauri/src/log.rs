//! Where the app's log goes: the terminal and a file. It never holds what was said.

use std::fs::File;
use std::path::Path;
use std::sync::Mutex;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Starts logging. `wanted` is what `YOUYOU_CHAT_LOG` says, such as `youyou_agent=debug`.
pub(crate) fn start(folder: &Path, wanted: Option<&str>) {
    let filter = wanted
        .and_then(|wanted| wanted.parse::<Targets>().ok())
        .unwrap_or_else(|| {
            Targets::new()
                .with_default(LevelFilter::WARN)
                .with_target("youyou_agent", LevelFilter::INFO)
                .with_target("youyou_chat", LevelFilter::INFO)
        });
    let terminal = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    // Each start begins a new file: the log is for the last run.
    let file =
        std::fs::create_dir_all(folder).and_then(|()| File::create(folder.join("youyou-chat.log")));
    let file = file.ok().map(|file| {
        tracing_subscriber::fmt::layer()
            .with_ansi(false)
            .with_writer(Mutex::new(file))
    });
    // It fails only if somebody has started logging before: then that one is used.
    let _ = tracing_subscriber::registry()
        .with(filter)
        .with(terminal)
        .with(file)
        .try_init();
}
