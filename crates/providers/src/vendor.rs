//! The vendors: what they speak, where they are, where their keys are, and their quirks.
//!
//! A new vendor is one entry of the table; nothing else names one.

use crate::catalog::Listing;
use crate::endpoint::Auth;
use crate::wire::{CallIds, EffortField, Protocol, Quirks, ReasoningBack, Shape};

/// A vendor that is reached with a key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Vendor {
    /// Id of its provider.
    pub(crate) id: &'static str,
    /// Its name for people.
    pub(crate) name: &'static str,
    /// The base address.
    pub(crate) address: &'static str,
    /// The environment variable that names another base address.
    pub(crate) address_variable: Option<&'static str>,
    /// The environment variables that may hold the key, the first that is set counts.
    pub(crate) key_variables: &'static [&'static str],
    pub(crate) protocol: Protocol,
    pub(crate) auth: Auth,
    pub(crate) listing: Listing,
    pub(crate) quirks: Quirks,
    /// Models offered until the vendor has listed its own.
    pub(crate) well_known: &'static [&'static str],
    /// Only names that begin so are chat models of this vendor; empty: all.
    pub(crate) families: &'static [&'static str],
    /// Whether ids of models carry the vendor's id in front, because others have them too.
    pub(crate) is_gateway: bool,
    /// Where the key is asked about, behind the base address, where the list of models is
    /// public and so no proof of it.
    pub(crate) check_path: Option<&'static str>,
    pub(crate) needs_no_key: bool,
}

/// The vendor with this id.
pub(crate) fn find(id: &str) -> Option<&'static Vendor> {
    VENDORS.iter().find(|vendor| vendor.id == id)
}

/// What is the same for most that speak Chat Completions.
const CHAT: Quirks = Quirks {
    max_tokens_field: "max_tokens",
    effort: EffortField::None,
    reasoning_back: ReasoningBack::WithCalls,
    usage_option: true,
    shape: Shape::Schema,
    think_tags: true,
    strict_roles: true,
    cache_marks: false,
    call_ids: CallIds::Any,
    user_after_tool: true,
};

const OWN: Vendor = Vendor {
    id: "custom",
    name: "custom",
    address: "",
    address_variable: None,
    key_variables: &[],
    protocol: Protocol::Chat,
    auth: Auth::Bearer,
    listing: Listing::OpenAi,
    quirks: CHAT,
    well_known: &[],
    families: &[],
    is_gateway: false,
    check_path: None,
    needs_no_key: false,
};

/// A gateway: it offers other vendors' models under names of its own.
const GATEWAY: Vendor = Vendor {
    is_gateway: true,
    ..OWN
};

/// All vendors, in the order in which they are offered.
pub(crate) static VENDORS: &[Vendor] = &[
    Vendor {
        id: "openai",
        name: "OpenAI",
        address: "https://api.openai.com/v1",
        address_variable: Some("OPENAI_BASE_URL"),
        key_variables: &["OPENAI_API_KEY"],
        protocol: Protocol::Responses,
        quirks: Quirks {
            max_tokens_field: "max_completion_tokens",
            effort: EffortField::ReasoningEffort,
            reasoning_back: ReasoningBack::Never,
            think_tags: false,
            call_ids: CallIds::UpTo40,
            ..CHAT
        },
        well_known: &["gpt-5", "gpt-5-mini", "gpt-4.1"],
        families: &["gpt-", "o1", "o3", "o4", "chatgpt-"],
        ..OWN
    },
    Vendor {
        id: "anthropic",
        name: "Anthropic",
        address: "https://api.anthropic.com/v1",
        address_variable: Some("ANTHROPIC_BASE_URL"),
        key_variables: &["ANTHROPIC_API_KEY"],
        protocol: Protocol::Anthropic,
        auth: Auth::Header("x-api-key"),
        listing: Listing::Anthropic,
        quirks: Quirks {
            cache_marks: true,
            ..CHAT
        },
        well_known: &["claude-sonnet-4-5", "claude-haiku-4-5", "claude-opus-4-1"],
        families: &["claude-"],
        ..OWN
    },
    Vendor {
        id: "gemini",
        name: "Google Gemini",
        address: "https://generativelanguage.googleapis.com/v1beta",
        address_variable: Some("GEMINI_BASE_URL"),
        key_variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        protocol: Protocol::Gemini,
        auth: Auth::Header("x-goog-api-key"),
        listing: Listing::Gemini,
        well_known: &["gemini-2.5-pro", "gemini-2.5-flash"],
        families: &["gemini-"],
        ..OWN
    },
    Vendor {
        id: "deepseek",
        name: "DeepSeek",
        address: "https://api.deepseek.com/v1",
        key_variables: &["DEEPSEEK_API_KEY"],
        quirks: Quirks {
            shape: Shape::Json,
            ..CHAT
        },
        well_known: &["deepseek-chat", "deepseek-reasoner"],
        families: &["deepseek-"],
        ..OWN
    },
    Vendor {
        id: "xai",
        name: "xAI",
        address: "https://api.x.ai/v1",
        key_variables: &["XAI_API_KEY"],
        quirks: Quirks {
            effort: EffortField::ReasoningEffort,
            reasoning_back: ReasoningBack::Never,
            ..CHAT
        },
        well_known: &["grok-4", "grok-code-fast-1"],
        families: &["grok-"],
        ..OWN
    },
    Vendor {
        id: "mistral",
        name: "Mistral",
        address: "https://api.mistral.ai/v1",
        key_variables: &["MISTRAL_API_KEY"],
        quirks: Quirks {
            // It refuses fields that it does not know.
            usage_option: false,
            call_ids: CallIds::Exactly9,
            user_after_tool: false,
            ..CHAT
        },
        well_known: &[
            "mistral-large-latest",
            "mistral-medium-latest",
            "mistral-small-latest",
        ],
        ..OWN
    },
    Vendor {
        id: "moonshot",
        name: "Moonshot (Kimi)",
        address: "https://api.moonshot.ai/v1",
        address_variable: Some("MOONSHOT_BASE_URL"),
        key_variables: &["MOONSHOT_API_KEY"],
        quirks: Quirks {
            shape: Shape::Json,
            ..CHAT
        },
        well_known: &["kimi-k2-0905-preview", "kimi-k2-thinking"],
        families: &["kimi-", "moonshot-"],
        ..OWN
    },
    Vendor {
        id: "zai",
        name: "Z.ai (GLM)",
        address: "https://api.z.ai/api/paas/v4",
        address_variable: Some("ZAI_BASE_URL"),
        key_variables: &["ZAI_API_KEY", "ZHIPUAI_API_KEY"],
        quirks: Quirks {
            effort: EffortField::Thinking,
            shape: Shape::Json,
            ..CHAT
        },
        well_known: &["glm-4.6", "glm-4.5-air"],
        families: &["glm-"],
        ..OWN
    },
    Vendor {
        id: "minimax",
        name: "MiniMax",
        address: "https://api.minimax.io/v1",
        address_variable: Some("MINIMAX_BASE_URL"),
        key_variables: &["MINIMAX_API_KEY"],
        quirks: Quirks {
            // Its models are trained to see their earlier thoughts.
            reasoning_back: ReasoningBack::Always,
            shape: Shape::Json,
            ..CHAT
        },
        well_known: &["MiniMax-M2"],
        families: &["MiniMax-"],
        ..OWN
    },
    Vendor {
        id: "dashscope",
        name: "Alibaba Model Studio (Qwen)",
        address: "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        address_variable: Some("DASHSCOPE_BASE_URL"),
        key_variables: &["DASHSCOPE_API_KEY"],
        quirks: Quirks {
            effort: EffortField::EnableThinking,
            shape: Shape::Json,
            ..CHAT
        },
        well_known: &["qwen3-max", "qwen-plus", "qwen3-coder-plus"],
        families: &["qwen", "qwq", "qvq"],
        ..OWN
    },
    Vendor {
        id: "groq",
        name: "Groq",
        address: "https://api.groq.com/openai/v1",
        key_variables: &["GROQ_API_KEY"],
        quirks: Quirks {
            effort: EffortField::ReasoningEffort,
            reasoning_back: ReasoningBack::Never,
            max_tokens_field: "max_completion_tokens",
            ..CHAT
        },
        well_known: &["openai/gpt-oss-120b", "llama-3.3-70b-versatile"],
        ..GATEWAY
    },
    Vendor {
        id: "cerebras",
        name: "Cerebras",
        address: "https://api.cerebras.ai/v1",
        key_variables: &["CEREBRAS_API_KEY"],
        quirks: Quirks {
            max_tokens_field: "max_completion_tokens",
            ..CHAT
        },
        well_known: &["gpt-oss-120b"],
        ..GATEWAY
    },
    Vendor {
        id: "together",
        name: "Together AI",
        address: "https://api.together.xyz/v1",
        key_variables: &["TOGETHER_API_KEY"],
        well_known: &["openai/gpt-oss-120b"],
        ..GATEWAY
    },
    Vendor {
        id: "fireworks",
        name: "Fireworks AI",
        address: "https://api.fireworks.ai/inference/v1",
        key_variables: &["FIREWORKS_API_KEY"],
        well_known: &["accounts/fireworks/models/gpt-oss-120b"],
        ..GATEWAY
    },
    Vendor {
        id: "siliconflow",
        name: "SiliconFlow",
        address: "https://api.siliconflow.com/v1",
        address_variable: Some("SILICONFLOW_BASE_URL"),
        key_variables: &["SILICONFLOW_API_KEY"],
        well_known: &["deepseek-ai/DeepSeek-V3.1"],
        ..GATEWAY
    },
    Vendor {
        id: "huggingface",
        name: "Hugging Face",
        address: "https://router.huggingface.co/v1",
        key_variables: &["HF_TOKEN"],
        well_known: &["openai/gpt-oss-120b"],
        ..GATEWAY
    },
    Vendor {
        id: "nvidia",
        name: "NVIDIA",
        address: "https://integrate.api.nvidia.com/v1",
        key_variables: &["NVIDIA_API_KEY"],
        well_known: &["openai/gpt-oss-120b"],
        ..GATEWAY
    },
    Vendor {
        id: "github",
        name: "GitHub Models",
        address: "https://models.github.ai/inference",
        // Not GITHUB_TOKEN: many have it for other ends, and it is no consent to pay with it.
        key_variables: &["GITHUB_MODELS_TOKEN"],
        listing: Listing::GitHub,
        quirks: Quirks {
            effort: EffortField::ReasoningEffort,
            reasoning_back: ReasoningBack::Never,
            ..CHAT
        },
        well_known: &["openai/gpt-4.1", "openai/gpt-4.1-mini"],
        ..GATEWAY
    },
    Vendor {
        id: "openrouter",
        name: "OpenRouter",
        address: "https://openrouter.ai/api/v1",
        address_variable: Some("OPENROUTER_BASE_URL"),
        key_variables: &["OPENROUTER_API_KEY"],
        quirks: Quirks {
            effort: EffortField::Reasoning,
            cache_marks: true,
            ..CHAT
        },
        well_known: &["openrouter/auto"],
        check_path: Some("key"),
        ..GATEWAY
    },
];

/// The entry of a server that is in no table: it speaks `protocol`, and nothing else is known.
pub(crate) const fn own(protocol: Protocol) -> Vendor {
    let (auth, listing) = match protocol {
        Protocol::Chat | Protocol::Responses => (Auth::Bearer, Listing::OpenAi),
        Protocol::Anthropic => (Auth::Header("x-api-key"), Listing::Anthropic),
        Protocol::Gemini => (Auth::Header("x-goog-api-key"), Listing::Gemini),
    };
    Vendor {
        protocol,
        auth,
        listing,
        quirks: Quirks {
            effort: EffortField::ReasoningEffort,
            ..CHAT
        },
        ..OWN
    }
}

/// Azure OpenAI, version 1 of its interface.
pub(crate) const AZURE: Vendor = Vendor {
    auth: Auth::Header("api-key"),
    listing: Listing::None,
    quirks: Quirks {
        max_tokens_field: "max_completion_tokens",
        effort: EffortField::ReasoningEffort,
        reasoning_back: ReasoningBack::Never,
        think_tags: false,
        call_ids: CallIds::UpTo40,
        ..CHAT
    },
    ..OWN
};

/// Amazon Bedrock in OpenAI's form.
pub(crate) const BEDROCK: Vendor = Vendor {
    listing: Listing::None,
    quirks: Quirks {
        effort: EffortField::ReasoningEffort,
        max_tokens_field: "max_completion_tokens",
        ..CHAT
    },
    ..OWN
};

/// Gemini on Google's Vertex AI.
pub(crate) const VERTEX: Vendor = Vendor {
    protocol: Protocol::Gemini,
    listing: Listing::None,
    ..OWN
};

/// A server of this computer.
pub(crate) const fn local(listing: Listing) -> Vendor {
    Vendor {
        listing,
        is_gateway: true,
        needs_no_key: true,
        ..own(Protocol::Chat)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_vendor_has_an_id_of_its_own_an_address_and_a_variable_for_its_key() {
        for (position, vendor) in VENDORS.iter().enumerate() {
            let first = VENDORS.iter().position(|other| other.id == vendor.id);
            assert_eq!(first, Some(position), "{}", vendor.id);
            assert!(vendor.address.starts_with("https://"), "{}", vendor.id);
            assert!(!vendor.address.ends_with('/'), "{}", vendor.id);
            assert!(!vendor.key_variables.is_empty(), "{}", vendor.id);
            assert!(!vendor.well_known.is_empty(), "{}", vendor.id);
        }
    }
}
