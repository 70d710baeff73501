//! The model servers that the app asks: vendors with a key, and servers of the user's own.

use std::sync::Arc;

use youyou_agent_providers::{Endpoint, Providers};

use crate::settings::Settings;

/// All model servers, each with its key and its address from the settings, else from the
/// environment. `variable` looks up an environment variable.
pub fn providers(settings: &Arc<Settings>, variable: impl Fn(&str) -> Option<String>) -> Providers {
    let keys = Arc::clone(settings);
    let keys = move |id: &str| keys.key(id).map(|key| key.reveal().to_owned());
    let usual = Providers::with_keys(keys).detect_local_servers();
    let mut elsewhere = Vec::new();
    for endpoint in usual.endpoints() {
        // Local servers have no variable that they all know, so the app has one for each.
        let own = format!("YOUYOU_CHAT_{}", endpoint.id().to_uppercase());
        let name = endpoint.address_variable().unwrap_or(&own);
        let address = variable(name).filter(|address| !address.trim().is_empty());
        elsewhere.extend(address.map(|address| at(endpoint.id(), &address)));
    }
    // Last, because what the user set replaces what the environment says.
    let chosen = settings.endpoints();
    elsewhere.extend(chosen.iter().map(|(id, address)| at(id, address)));
    elsewhere.into_iter().fold(usual, Providers::endpoint)
}

/// A known server at another address, or one of the user's own, which speaks OpenAI's protocol.
fn at(id: &str, address: &str) -> Endpoint {
    Endpoint::local_server(id, address)
        .or_else(|| Some(Endpoint::vendor(id)?.address(address)))
        .unwrap_or_else(|| Endpoint::openai_compatible(id, address).prefixed())
}

/// The environment variables that may hold the key of a vendor, with the vendor's id.
pub(crate) fn key_variables() -> impl Iterator<Item = (&'static str, &'static str)> {
    Endpoint::vendors().flat_map(|id| {
        let variables = Endpoint::vendor(id).map(|vendor| vendor.key_variables());
        variables
            .unwrap_or_default()
            .iter()
            .map(move |variable| (id, *variable))
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_the_settings_win_over_those_of_the_environment_and_may_name_new_servers() {
        let folder = tempfile::tempdir().unwrap();
        let stored = serde_json::json!({ "endpoints": {
            "anthropic": "https://proxy.example/",
            "vllm": "http://box:8000",
            "my-server": "box:9000/v1",
        } });
        std::fs::write(folder.path().join("settings.json"), stored.to_string()).unwrap();
        let settings = Arc::new(Settings::load(folder.path(), |_| None).unwrap());
        let variable = |name: &str| {
            let address = match name {
                "OPENAI_BASE_URL" => "https://openai.example/v1",
                "ANTHROPIC_BASE_URL" => "https://anthropic.example",
                "YOUYOU_CHAT_OLLAMA" => "http://127.0.0.1:1",
                "GEMINI_BASE_URL" => " ",
                _ => return None,
            };
            Some(address.to_owned())
        };
        let providers = providers(&settings, variable);
        let address = |id: &str| {
            let found = providers.endpoints().find(|server| server.id() == id);
            found.map(|server| (server.shown_address(), server.needs_key()))
        };
        for (id, shown, needs_key) in [
            ("openai", "https://openai.example/v1", true),
            ("anthropic", "https://proxy.example/v1", true),
            ("deepseek", "https://api.deepseek.com/v1", true),
            (
                "gemini",
                "https://generativelanguage.googleapis.com/v1beta",
                true,
            ),
            ("ollama", "http://127.0.0.1:1/v1", false),
            ("lmstudio", "http://127.0.0.1:1234/v1", false),
            ("vllm", "http://box:8000/v1", false),
            ("my-server", "https://box:9000/v1", false),
        ] {
            assert_eq!(address(id), Some((shown.to_owned(), needs_key)), "{id}");
        }
    }
}
