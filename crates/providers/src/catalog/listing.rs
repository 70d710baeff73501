//! Lists of models in the forms of the vendors.

use serde_json::Value;
use youyou_agent::{Capabilities, ModelInfo};

use super::{is_offered, known};
use crate::endpoint::Endpoint;

/// Where servers tell the window of a model, the true one before the greatest.
const WINDOWS: &[&str] = &[
    "/loaded_context_length",
    "/meta/n_ctx",                  // llama.cpp
    "/top_provider/context_length", // OpenRouter
    "/max_model_len",               // vLLM
    "/context_length",
    "/context_window",
    "/max_context_length", // Mistral
    "/max_context_window_tokens",
    "/inputTokenLimit",            // Gemini
    "/max_input_tokens",           // Anthropic, LiteLLM
    "/limits/max_input_tokens",    // GitHub Models
    "/providers/0/context_length", // Hugging Face
    "/meta/n_ctx_train",
];

/// Where servers list what a model takes or can do.
const ABILITIES: &[&str] = &[
    "/architecture/input_modalities", // OpenRouter
    "/supported_input_modalities",    // GitHub Models
    "/input_modalities",
    "/modalities/input",
    "/supported_parameters", // OpenRouter
    "/supported_features",
    "/capabilities",
    "/tags",
];

/// The models in a server's answer; `None` where it is no list.
pub(crate) fn read(endpoint: &Endpoint, body: &str) -> Option<Vec<ModelInfo>> {
    let body: Value = serde_json::from_str(body).ok()?;
    let list = ["data", "models"]
        .iter()
        .find_map(|key| body.get(key)?.as_array());
    let list = list.or_else(|| body.as_array())?;
    let mut models: Vec<ModelInfo> = list
        .iter()
        .filter_map(|entry| model(endpoint, entry))
        .collect();
    models.sort_by(|one, other| one.id.cmp(&other.id));
    models.dedup_by(|one, other| one.id == other.id);
    Some(models)
}

fn model(endpoint: &Endpoint, entry: &Value) -> Option<ModelInfo> {
    let word = |key: &str| {
        entry
            .get(key)
            .and_then(Value::as_str)
            .filter(|word| !word.trim().is_empty())
    };
    let name = word("id").or(word("name")).or(entry.as_str())?;
    let name = name.strip_prefix("models/").unwrap_or(name);
    if !is_offered(endpoint, name) || !is_for_chat(endpoint, entry) {
        return None;
    }
    let (known_window, known) = known::traits(name);
    let window = WINDOWS
        .iter()
        .find_map(|place| tokens(entry.pointer(place)?));
    let told = abilities(entry);
    let has = |words: &[&str]| told.iter().any(|ability| words.contains(&ability.as_str()));
    let can = Capabilities {
        tool_use: said(
            entry,
            &[
                "/capabilities/function_calling",
                "/capabilities/tool_calling",
            ],
        )
        // A list of parameters without tools says that there are none.
        .or_else(|| entry.get("supported_parameters").map(|_| has(&["tools"])))
        .unwrap_or(true),
        vision: said(
            entry,
            &[
                "/capabilities/vision",
                "/supports_vision",
                "/supports_image_in",
            ],
        )
        .unwrap_or_else(|| has(&["image", "vision"]) || known.vision),
        reasoning: said(
            entry,
            &[
                "/thinking",
                "/capabilities/thinking/supported",
                "/supports_reasoning",
            ],
        )
        .unwrap_or_else(|| has(&["reasoning", "thinking"]) || known.reasoning),
        ..known
    };
    let shown = word("display_name").or(word("displayName"));
    // A gateway's names for people come without the maker.
    let shown = shown
        .or(word("name").filter(|_| word("id").is_some()))
        .unwrap_or(name);
    Some(ModelInfo::new(
        endpoint.model_id(name),
        shown,
        window.unwrap_or(known_window),
        can,
    ))
}

/// Whether a vendor says that a model is none to chat with.
fn is_for_chat(endpoint: &Endpoint, entry: &Value) -> bool {
    let methods = entry
        .get("supportedGenerationMethods")
        .and_then(Value::as_array);
    let generates =
        methods.is_none_or(|methods| methods.iter().any(|method| method == "generateContent"));
    let kind = entry.get("type").and_then(Value::as_str);
    let is_chat = !endpoint.is_known_vendor
        || kind.is_none_or(|kind| {
            matches!(
                kind,
                "chat" | "language" | "model" | "text" | "llm" | "base"
            )
        }) && said(entry, &["/capabilities/completion_chat"]).unwrap_or(true);
    generates && is_chat
}

fn said(entry: &Value, places: &[&str]) -> Option<bool> {
    places
        .iter()
        .find_map(|place| entry.pointer(place)?.as_bool())
}

fn abilities(entry: &Value) -> Vec<String> {
    let lists = ABILITIES
        .iter()
        .filter_map(|place| entry.pointer(place)?.as_array());
    lists
        .flatten()
        .filter_map(|word| Some(word.as_str()?.to_lowercase()))
        .collect()
}

/// A number of tokens; zero is unknown.
pub(crate) fn tokens(value: &Value) -> Option<u32> {
    let number = value
        .as_u64()
        .or_else(|| value.as_str()?.trim().parse().ok())?;
    (number > 0).then(|| u32::try_from(number).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(endpoint: &Endpoint, body: &str) -> Vec<String> {
        let models = read(endpoint, body).unwrap();
        models.into_iter().map(|model| model.id).collect()
    }

    // P23
    #[test]
    fn what_the_users_own_server_lists_is_offered_and_nothing_else() {
        let own = Endpoint::openai_compatible("own", "http://h/v1");
        let body = r#"{"data":[{"id":"qwen3-coder"},{"id":"my-model-instruct"},{"id":"codex-image-search"}]}"#;
        assert_eq!(
            ids(&own, body),
            ["codex-image-search", "my-model-instruct", "qwen3-coder"]
        );
        assert_eq!(ids(&own, r#"{"data":[]}"#), [""; 0]);
        assert_eq!(
            ids(&own.prefixed(), r#"[{"id":"a"},{"id":""},{},7,"b"]"#),
            ["own:a", "own:b"]
        );
    }

    #[test]
    fn only_chat_models_of_a_vendors_list_are_offered() {
        let openai = Endpoint::vendor("openai").unwrap();
        let body = r#"{"data":[{"id":"gpt-5"},{"id":"text-embedding-3-large"},{"id":"gpt-4o-audio-preview"},
            {"id":"o3"},{"id":"whisper-1"},{"id":"dall-e-3"},{"id":"gpt-5"},{"id":"gpt-5-codex"}]}"#;
        assert_eq!(ids(&openai, body), ["gpt-5", "gpt-5-codex", "o3"]);
        let gemini = Endpoint::vendor("gemini").unwrap();
        let body = r#"{"models":[
            {"name":"models/gemini-2.5-pro","displayName":"Gemini 2.5 Pro","inputTokenLimit":1048576,
             "supportedGenerationMethods":["generateContent"],"thinking":true},
            {"name":"models/gemini-embedding-001","supportedGenerationMethods":["embedContent"]}]}"#;
        let models = read(&gemini, body).unwrap();
        let expected = ModelInfo::new(
            "gemini-2.5-pro",
            "Gemini 2.5 Pro",
            1_048_576,
            Capabilities {
                vision: true,
                reasoning: true,
                ..Capabilities::default()
            },
        );
        assert_eq!(models, [expected]);
    }

    #[test]
    fn what_a_server_tells_of_a_model_counts_more_than_what_is_known_of_its_name() {
        let own = Endpoint::openai_compatible("own", "http://h/v1");
        for (entry, window) in [
            (r#"{"id":"gpt-5","max_model_len":4096}"#, 4096),
            (
                r#"{"id":"gpt-5","meta":{"n_ctx":512,"n_ctx_train":9999}}"#,
                512,
            ),
            (r#"{"id":"gpt-5","context_length":"8192"}"#, 8192),
            (r#"{"id":"gpt-5","context_length":0}"#, 400_000),
            (
                r#"{"id":"gpt-5","context_length":-1,"top_provider":{"context_length":null}}"#,
                400_000,
            ),
            (r#"{"id":"gpt-5","context_length":99999999999}"#, u32::MAX),
        ] {
            let models = read(&own, &format!("[{entry}]")).unwrap();
            assert_eq!(
                models.first().map(|model| model.context_window),
                Some(window),
                "{entry}"
            );
        }
        let body = r#"[{"id":"x","architecture":{"input_modalities":["text","image"]},"supported_parameters":["reasoning"]}]"#;
        let can = read(&own, body)
            .unwrap()
            .first()
            .map(|model| model.capabilities);
        let expected = Capabilities {
            tool_use: false,
            vision: true,
            reasoning: true,
            ..Capabilities::default()
        };
        assert_eq!(can, Some(expected));
    }

    #[test]
    fn names_of_a_gateway_never_clash_with_a_vendors_and_go_out_as_they_came() {
        let openrouter = Endpoint::vendor("openrouter").unwrap();
        let body = r#"{"data":[{"id":"anthropic/claude-sonnet-4.5"}]}"#;
        assert_eq!(
            ids(&openrouter, body),
            ["openrouter:anthropic/claude-sonnet-4.5"]
        );
        let sent = openrouter.wire_name("openrouter:anthropic/claude-sonnet-4.5");
        assert_eq!(sent, "anthropic/claude-sonnet-4.5");
    }

    #[test]
    fn what_is_no_list_is_none() {
        let own = Endpoint::openai_compatible("own", "http://h/v1");
        for body in [
            "",
            "<html>",
            "{}",
            r#"{"data":{}}"#,
            "null",
            r#"{"error":"x"}"#,
        ] {
            assert!(read(&own, body).is_none(), "{body}");
        }
    }
}
