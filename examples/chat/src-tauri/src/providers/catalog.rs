//! What is known about the vendors and their models. Vendors list names only, so windows and
//! capabilities come from here.

use ::genai::adapter::AdapterKind;
use youyou_agent::{Capabilities, ModelInfo};

/// A vendor that is reached with a key.
#[derive(Debug)]
pub struct Vendor {
    /// Id of its provider.
    pub id: &'static str,
    /// Its name for people.
    pub name: &'static str,
    /// The environment variable that may hold the key.
    pub key_variable: &'static str,
    /// The protocol.
    pub adapter: AdapterKind,
    /// The base address, ending with a slash.
    pub endpoint: &'static str,
    /// Models offered until the vendor has listed its own.
    well_known: &'static [&'static str],
    /// Only names that start so are chat models of this vendor; empty: all.
    families: &'static [&'static str],
    /// Whether ids carry the vendor's id in front, because its names may be another's too.
    prefixed: bool,
}

/// All vendors, in the order in which they are offered.
pub static VENDORS: [Vendor; 5] = [
    Vendor {
        id: "openai",
        name: "OpenAI",
        key_variable: "OPENAI_API_KEY",
        adapter: AdapterKind::OpenAI,
        endpoint: "https://api.openai.com/v1/",
        well_known: &["gpt-5", "gpt-5-mini", "gpt-4.1"],
        families: &["gpt-", "o1", "o3", "o4", "chatgpt-"],
        prefixed: false,
    },
    Vendor {
        id: "anthropic",
        name: "Anthropic",
        key_variable: "ANTHROPIC_API_KEY",
        adapter: AdapterKind::Anthropic,
        endpoint: "https://api.anthropic.com/v1/",
        well_known: &["claude-sonnet-4-5", "claude-haiku-4-5", "claude-opus-4-1"],
        families: &["claude-"],
        prefixed: false,
    },
    Vendor {
        id: "gemini",
        name: "Google Gemini",
        key_variable: "GEMINI_API_KEY",
        adapter: AdapterKind::Gemini,
        endpoint: "https://generativelanguage.googleapis.com/v1beta/",
        well_known: &["gemini-2.5-pro", "gemini-2.5-flash"],
        families: &["gemini-"],
        prefixed: false,
    },
    Vendor {
        id: "deepseek",
        name: "DeepSeek",
        key_variable: "DEEPSEEK_API_KEY",
        adapter: AdapterKind::DeepSeek,
        endpoint: "https://api.deepseek.com/v1/",
        well_known: &["deepseek-chat", "deepseek-reasoner"],
        families: &["deepseek-"],
        prefixed: false,
    },
    Vendor {
        id: "openrouter",
        name: "OpenRouter",
        key_variable: "OPENROUTER_API_KEY",
        adapter: AdapterKind::OpenRouter,
        endpoint: "https://openrouter.ai/api/v1/",
        well_known: &["openrouter/auto"],
        families: &[],
        prefixed: true,
    },
];

/// Parts of names that are no chat models with text in and out.
const OTHER_KINDS: &[&str] = &[
    "embed",
    "audio",
    "realtime",
    "tts",
    "image",
    "transcribe",
    "moderation",
    "instruct",
    "search",
    "live",
    "computer-use",
    "veo",
    "lyria",
    "robotics",
    "codex",
];

/// Size of the context window, vision, reasoning: the first entry whose text is in the name.
const TRAITS: &[(&str, u32, bool, bool)] = &[
    ("gpt-4.1", 1_047_576, true, false),
    ("gpt-4o", 128_000, true, false),
    ("gpt-4", 128_000, true, false),
    ("gpt-3.5", 16_385, false, false),
    ("gpt-oss", 131_072, false, true),
    ("gpt-", 400_000, true, true),
    ("o1", 200_000, true, true),
    ("o3", 200_000, true, true),
    ("o4", 200_000, true, true),
    ("claude-3", 200_000, true, false),
    ("claude-", 200_000, true, true),
    ("gemini-2.0", 1_048_576, true, false),
    ("gemini-1.5", 1_048_576, true, false),
    ("gemini-", 1_048_576, true, true),
    ("deepseek-reasoner", 128_000, false, true),
    ("deepseek", 128_000, false, false),
];

/// The models offered before the vendor was asked.
pub(super) fn well_known(vendor: &Vendor) -> Vec<ModelInfo> {
    vendor
        .well_known
        .iter()
        .map(|name| model(vendor, name))
        .collect()
}

/// The chat models among the names a vendor lists.
pub(super) fn chat_models(vendor: &Vendor, names: &[String]) -> Vec<ModelInfo> {
    let mut names: Vec<&str> = names
        .iter()
        .map(|name| name.strip_prefix("models/").unwrap_or(name))
        .filter(|name| {
            vendor.families.is_empty()
                || vendor
                    .families
                    .iter()
                    .any(|family| name.starts_with(family))
        })
        .filter(|name| !OTHER_KINDS.iter().any(|kind| name.contains(kind)))
        .collect();
    names.sort_unstable();
    names.dedup();
    names.into_iter().map(|name| model(vendor, name)).collect()
}

/// The vendor's own name of a model.
pub(super) fn wire_name<'a>(vendor: &Vendor, model_id: &'a str) -> &'a str {
    if !vendor.prefixed {
        return model_id;
    }
    model_id
        .strip_prefix(vendor.id)
        .and_then(|rest| rest.strip_prefix(':'))
        .unwrap_or(model_id)
}

fn model(vendor: &Vendor, name: &str) -> ModelInfo {
    let traits = TRAITS.iter().find(|(part, ..)| name.contains(part));
    let (window, vision, reasoning) = traits
        .map_or((128_000, false, false), |(_, window, vision, reasoning)| {
            (*window, *vision, *reasoning)
        });
    let id = if vendor.prefixed {
        format!("{}:{name}", vendor.id)
    } else {
        name.to_owned()
    };
    let can = Capabilities {
        vision,
        reasoning,
        ..Capabilities::default()
    };
    ModelInfo::new(id, name, window, can)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
mod tests {
    use super::*;

    fn vendor(id: &str) -> &'static Vendor {
        VENDORS.iter().find(|vendor| vendor.id == id).unwrap()
    }

    #[test]
    fn only_chat_models_of_a_vendors_list_are_offered() {
        let names = [
            "gpt-5",
            "text-embedding-3-large",
            "gpt-4o-audio-preview",
            "o3",
            "whisper-1",
            "dall-e-3",
            "gpt-5",
        ];
        let models = chat_models(vendor("openai"), &names.map(str::to_owned));
        let ids: Vec<&str> = models.iter().map(|model| model.id.as_str()).collect();
        assert_eq!(ids, ["gpt-5", "o3"]);
        let gemini = chat_models(vendor("gemini"), &["models/gemini-2.5-pro".to_owned()]);
        assert_eq!(
            gemini
                .first()
                .map(|model| (model.id.as_str(), model.context_window)),
            Some(("gemini-2.5-pro", 1_048_576))
        );
    }

    #[test]
    fn names_of_a_gateway_never_clash_with_a_vendors_and_go_out_as_they_came() {
        let openrouter = vendor("openrouter");
        let models = chat_models(openrouter, &["anthropic/claude-sonnet-4.5".to_owned()]);
        let id = models.first().map(|model| model.id.clone()).unwrap();
        assert_eq!(id, "openrouter:anthropic/claude-sonnet-4.5");
        assert_eq!(wire_name(openrouter, &id), "anthropic/claude-sonnet-4.5");
        assert!(
            models
                .first()
                .is_some_and(|model| model.capabilities.vision)
        );
    }
}
