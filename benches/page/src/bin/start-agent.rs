//! The same app with the plugin, a provider and a tool.

#[path = "../model.rs"]
mod model;
#[path = "../script.rs"]
mod script;
#[path = "../start.rs"]
mod start;

use youyou_agent::{AgentBuilder, AgentConfig};

fn main() {
    let agent = AgentBuilder::new(AgentConfig::new("scripted"))
        .provider(model::Scripted)
        .tool(model::Big);
    let builder = tauri::Builder::default().plugin(youyou_agent::init(agent));
    start::run(builder, tauri::generate_context!());
}
