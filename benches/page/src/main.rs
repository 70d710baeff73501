//! An app whose page measures how events reach it: through a plain Tauri channel, and through
//! the plugin. Both ways carry the same scripted answer.

mod memory;
mod model;
mod raw;
mod script;

use youyou_agent::{AgentBuilder, AgentConfig};

fn main() {
    let agent = AgentBuilder::new(AgentConfig::new("scripted"))
        .provider(model::Scripted)
        .tool(model::Big);
    tauri::Builder::default()
        .plugin(youyou_agent::init(agent))
        .invoke_handler(tauri::generate_handler![raw::raw, memory::memory])
        .run(tauri::generate_context!())
        .expect("the app runs");
}
