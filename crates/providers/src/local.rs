//! Model servers on this computer: Ollama, LM Studio, llama.cpp, vLLM. What they are asked for
//! is the window a model really runs with, which is often less than it could take.

use serde_json::{Value, json};
use youyou_agent::{Capabilities, ModelInfo};

use crate::catalog::{self, Listing};
use crate::endpoint::Endpoint;
use crate::keys;
use crate::line::Asker;
use crate::vendor;

/// The window where a server does not tell: small, so that nothing is cut without a word.
/// It is what Ollama gives a model by default.
const UNKNOWN_WINDOW: u32 = 4_096;

/// A server that may run on this computer.
struct Local {
    id: &'static str,
    name: &'static str,
    port: u16,
    /// The server's own variable for its address.
    variable: Option<&'static str>,
    listing: Listing,
}

const LOCAL: &[Local] = &[
    Local {
        id: "ollama",
        name: "Ollama",
        port: 11434,
        variable: Some("OLLAMA_HOST"),
        listing: Listing::Ollama,
    },
    Local {
        id: "lmstudio",
        name: "LM Studio",
        port: 1234,
        variable: None,
        listing: Listing::LmStudio,
    },
    Local {
        id: "llamacpp",
        name: "llama.cpp",
        port: 8080,
        variable: None,
        listing: Listing::LlamaCpp,
    },
    Local {
        id: "vllm",
        name: "vLLM",
        port: 8000,
        variable: None,
        listing: Listing::OpenAi,
    },
];

/// The servers that are looked for, at their usual addresses.
pub(crate) fn usual() -> impl Iterator<Item = Endpoint> {
    LOCAL.iter().map(|local| {
        let named = local
            .variable
            .and_then(keys::variable)
            .and_then(|host| address(&host, local.port));
        at(
            local,
            &named.unwrap_or_else(|| format!("http://127.0.0.1:{}", local.port)),
        )
    })
}

/// One of the servers at another address.
pub(crate) fn named(id: &str, written: &str) -> Option<Endpoint> {
    let local = LOCAL.iter().find(|local| local.id == id)?;
    let written = keys::bare(written).trim_end_matches('/');
    let root = written.strip_suffix("/v1").unwrap_or(written);
    Some(at(local, root))
}

fn at(local: &Local, root: &str) -> Endpoint {
    let entry = vendor::local(local.listing);
    Endpoint::own(local.id.into(), &format!("{root}/v1"), entry).named(local.name)
}

/// What `OLLAMA_HOST` says is where it listens: a host, a port, both, with a scheme or without.
fn address(written: &str, port: u16) -> Option<String> {
    let (scheme, rest) = written.split_once("://").unwrap_or(("http", written));
    let rest = rest.trim_end_matches('/');
    let (host, port) = match rest.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port.parse().ok()?),
        _ => (rest, port),
    };
    // All addresses of a computer are no address to go to.
    let host = match host {
        "" | "0.0.0.0" | "[::]" | "::" => "127.0.0.1",
        host => host,
    };
    Some(format!("{scheme}://{host}:{port}"))
}

/// Asks a server of this computer what it has. One that does not answer has nothing.
pub(crate) async fn models(endpoint: &Endpoint, ask: &Asker<'_>) -> Option<Vec<ModelInfo>> {
    match endpoint.vendor.listing {
        Listing::Ollama => ollama(endpoint, ask).await,
        Listing::LmStudio => lm_studio(endpoint, ask).await,
        Listing::LlamaCpp => llama_cpp(endpoint, ask).await,
        _ => None,
    }
}

async fn ollama(endpoint: &Endpoint, ask: &Asker<'_>) -> Option<Vec<ModelInfo>> {
    let tags = ask.root("/api/tags", None).await?;
    let loaded = ask.root("/api/ps", None).await.unwrap_or_default();
    let mut models = Vec::new();
    for name in items(&tags, "models").filter_map(|model| text(model, "name")) {
        let about = ask
            .root("/api/show", Some(json!({ "model": name })))
            .await
            .unwrap_or_default();
        let abilities: Vec<&str> = items(&about, "capabilities")
            .filter_map(Value::as_str)
            .collect();
        if abilities.contains(&"embedding") {
            continue;
        }
        let can = Capabilities {
            // One whose abilities are not told may have tools; Ollama says so if not.
            tool_use: abilities.is_empty() || abilities.contains(&"tools"),
            vision: abilities.contains(&"vision"),
            reasoning: abilities.contains(&"thinking"),
            ..Capabilities::default()
        };
        let running = items(&loaded, "models").find(|model| text(model, "name") == Some(name));
        let running = running.and_then(|model| catalog::tokens(model.get("context_length")?));
        let window = running
            .or_else(|| configured(&about))
            .unwrap_or_else(|| default_window(&about));
        models.push(model(endpoint, name, window, can));
    }
    Some(models)
}

/// `num_ctx` in the model's own parameters, which are lines of text.
fn configured(about: &Value) -> Option<u32> {
    let lines = text(about, "parameters")?.lines();
    let mut found = lines.filter_map(|line| line.trim().strip_prefix("num_ctx"));
    found
        .find_map(|rest| rest.trim().trim_matches('"').parse().ok())
        .filter(|window| *window > 0)
}

/// What the server gives a model that names no window: its default, or all the model has.
fn default_window(about: &Value) -> u32 {
    let info = about.get("model_info").and_then(Value::as_object);
    let most = info
        .into_iter()
        .flatten()
        .find(|(key, _)| key.ends_with(".context_length"));
    let most = most
        .and_then(|(_, most)| catalog::tokens(most))
        .unwrap_or(u32::MAX);
    most.min(UNKNOWN_WINDOW)
}

async fn lm_studio(endpoint: &Endpoint, ask: &Asker<'_>) -> Option<Vec<ModelInfo>> {
    let list = ask.root("/api/v0/models", None).await?;
    let models = items(&list, "data").filter_map(|entry| {
        let kind = text(entry, "type")?;
        let window = entry.get("loaded_context_length").and_then(catalog::tokens);
        let can = Capabilities {
            tool_use: items(entry, "capabilities").any(|ability| ability == "tool_use"),
            vision: kind == "vlm",
            ..Capabilities::default()
        };
        let name = text(entry, "id").filter(|_| matches!(kind, "llm" | "vlm"))?;
        Some(model(endpoint, name, window.unwrap_or(UNKNOWN_WINDOW), can))
    });
    Some(models.collect())
}

async fn llama_cpp(endpoint: &Endpoint, ask: &Asker<'_>) -> Option<Vec<ModelInfo>> {
    let list = ask.root("/v1/models", None).await?;
    let props = ask.root("/props", None).await.unwrap_or_default();
    let window = props
        .pointer("/default_generation_settings/n_ctx")
        .and_then(catalog::tokens);
    let says = |place: &str| props.pointer(place).and_then(Value::as_bool);
    let can = Capabilities {
        vision: says("/modalities/vision").unwrap_or(false),
        // Told by newer servers only; without tools they refuse a request that has some.
        tool_use: says("/chat_template_caps/supports_tools").unwrap_or(true),
        ..Capabilities::default()
    };
    let names = items(&list, "data").filter_map(|entry| {
        let own = entry.pointer("/meta/n_ctx").and_then(catalog::tokens);
        Some((text(entry, "id")?, window.or(own).unwrap_or(UNKNOWN_WINDOW)))
    });
    Some(
        names
            .map(|(name, window)| model(endpoint, name, window, can))
            .collect(),
    )
}

fn model(endpoint: &Endpoint, name: &str, window: u32, can: Capabilities) -> ModelInfo {
    let shown = name
        .rsplit(['/', '\\'])
        .next()
        .unwrap_or(name)
        .trim_end_matches(".gguf");
    ModelInfo::new(endpoint.model_id(name), shown, window, can)
}

fn items<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value
        .get(key)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ollamas_own_variable_says_where_it_is() {
        for (written, meant) in [
            ("127.0.0.1:9999", "http://127.0.0.1:9999"),
            ("0.0.0.0", "http://127.0.0.1:11434"),
            (":8080", "http://127.0.0.1:8080"),
            ("https://box.example:443/", "https://box.example:443"),
            ("[::]:1", "http://127.0.0.1:1"),
            ("box", "http://box:11434"),
        ] {
            assert_eq!(address(written, 11434).as_deref(), Some(meant), "{written}");
        }
    }

    // P19
    #[test]
    fn a_window_in_the_models_parameters_is_found_among_other_lines() {
        let about =
            json!({ "parameters": "stop \"<|im_end|>\"\nnum_ctx                        2048\n" });
        assert_eq!(configured(&about), Some(2048));
        assert_eq!(configured(&json!({ "parameters": "temperature 1" })), None);
        let small = json!({ "model_info": { "llama.context_length": 2000, "x": 1 } });
        assert_eq!(default_window(&small), 2000);
        assert_eq!(
            default_window(&json!({ "model_info": { "llama.context_length": 131_072 } })),
            UNKNOWN_WINDOW
        );
        assert_eq!(default_window(&Value::Null), UNKNOWN_WINDOW);
    }
}
