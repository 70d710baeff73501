//! What codes, statuses and words of servers mean. A new one is one line.

use youyou_agent::ProviderErrorKind as Kind;

use super::facts::Facts;

/// What a failure means, finer than its kind where a person needs other words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The conversation does not fit the model.
    Overflow,
    /// The request has too many bytes for the server.
    TooLarge,
    RateLimited,
    Overloaded,
    Timeout,
    Auth,
    Quota,
    /// The server does not know the model.
    Model,
    /// There is no model server at the address.
    Address,
    /// The server's filter refused the request.
    Filter,
    /// The model cannot take an image or a file.
    Content,
    /// The server calls the request malformed.
    Request,
    /// No connection came about.
    Unreachable,
    /// The connection broke.
    Broken,
    Unknown,
}

impl Meaning {
    pub(super) fn kind(self, retry_after_ms: Option<u64>) -> Kind {
        match self {
            Self::Overflow => Kind::ContextLengthExceeded,
            Self::RateLimited => Kind::RateLimited { retry_after_ms },
            Self::Overloaded => Kind::Overloaded,
            Self::Timeout => Kind::Timeout,
            Self::Auth => Kind::Auth,
            Self::Quota => Kind::Quota,
            Self::Content => Kind::UnsupportedContent,
            Self::TooLarge | Self::Model | Self::Address | Self::Filter | Self::Request => {
                Kind::InvalidRequest
            }
            Self::Unreachable | Self::Broken => Kind::Network,
            Self::Unknown => Kind::Other,
        }
    }

    /// Whether the server said no more than that something is wrong, so that its words may
    /// tell more.
    pub(super) fn is_vague(self) -> bool {
        matches!(
            self,
            Self::Request | Self::Overloaded | Self::TooLarge | Self::Unknown
        )
    }
}

/// Codes, types and states of all servers, in lower case.
const CODES: &[(&str, Meaning)] = &[
    ("context_length_exceeded", Meaning::Overflow), // OpenAI
    ("context_window_exceeded", Meaning::Overflow), // several gateways
    ("contextwindowexceedederror", Meaning::Overflow), // LiteLLM
    ("exceed_context_size_error", Meaning::Overflow), // llama.cpp
    ("model_max_prompt_tokens_exceeded", Meaning::Overflow), // GitHub Copilot
    ("tokens_limit_reached", Meaning::Overflow),    // GitHub Models
    ("max_context_length_exceeded", Meaning::Overflow),
    ("prompt_too_long", Meaning::Overflow),
    ("input_too_long", Meaning::Overflow),
    ("1261", Meaning::Overflow),              // Zhipu
    ("request_too_large", Meaning::TooLarge), // Anthropic: bytes
    ("413", Meaning::TooLarge),
    ("insufficient_quota", Meaning::Quota), // OpenAI
    ("billing_error", Meaning::Quota),      // Anthropic
    ("billing_not_active", Meaning::Quota),
    ("billing_hard_limit_reached", Meaning::Quota),
    ("insufficient_balance", Meaning::Quota),    // DeepSeek
    ("insufficient_user_quota", Meaning::Quota), // One API
    ("exceeded_current_quota_error", Meaning::Quota), // Moonshot
    ("payment_required", Meaning::Quota),
    ("credits_exhausted", Meaning::Quota),
    ("arrearage", Meaning::Quota),                    // DashScope
    ("allocationquota.freetieronly", Meaning::Quota), // DashScope
    ("accountoverdueerror", Meaning::Quota),          // Volcano
    ("1113", Meaning::Quota),                         // Zhipu
    ("1008", Meaning::Quota),                         // MiniMax
    ("402", Meaning::Quota),
    ("rate_limit_error", Meaning::RateLimited), // Anthropic
    ("rate_limit_exceeded", Meaning::RateLimited), // OpenAI
    ("rate_limit_reached_error", Meaning::RateLimited), // Moonshot
    ("ratelimiterror", Meaning::RateLimited),   // LiteLLM
    ("ratelimitreached", Meaning::RateLimited), // Azure, GitHub
    ("resource_exhausted", Meaning::RateLimited), // Gemini
    ("too_many_requests", Meaning::RateLimited),
    ("throttling", Meaning::RateLimited), // DashScope
    ("throttling.ratequota", Meaning::RateLimited),
    ("throttling.allocationquota", Meaning::RateLimited),
    ("throttlingexception", Meaning::RateLimited), // Bedrock
    ("slow_down", Meaning::RateLimited),           // OpenAI
    ("1302", Meaning::RateLimited),                // Zhipu
    ("1303", Meaning::RateLimited),
    ("429", Meaning::RateLimited),
    ("overloaded_error", Meaning::Overloaded), // Anthropic
    ("overloaded", Meaning::Overloaded),
    ("engine_overloaded_error", Meaning::Overloaded), // Moonshot
    ("server_overloaded", Meaning::Overloaded),
    ("server_error", Meaning::Overloaded), // OpenAI
    ("api_error", Meaning::Overloaded),    // Anthropic
    ("internal_server_error", Meaning::Overloaded),
    ("internalservererror", Meaning::Overloaded), // LiteLLM, vLLM
    ("internalerror", Meaning::Overloaded),
    ("internal_error", Meaning::Overloaded),
    ("internal", Meaning::Overloaded),    // Gemini
    ("unavailable", Meaning::Overloaded), // Gemini
    ("service_unavailable", Meaning::Overloaded),
    ("serviceunavailableerror", Meaning::Overloaded), // LiteLLM
    ("serviceunavailableexception", Meaning::Overloaded), // Bedrock
    ("modelnotreadyexception", Meaning::Overloaded),  // Bedrock
    ("bad_gateway", Meaning::Overloaded),
    ("no_capacity", Meaning::Overloaded),
    ("1305", Meaning::Overloaded), // Zhipu
    ("500", Meaning::Overloaded),
    ("502", Meaning::Overloaded),
    ("503", Meaning::Overloaded),
    ("520", Meaning::Overloaded),
    ("529", Meaning::Overloaded),
    ("timeout_error", Meaning::Timeout), // Anthropic
    ("timeout", Meaning::Timeout),       // LiteLLM
    ("request_timeout", Meaning::Timeout),
    ("deadline_exceeded", Meaning::Timeout),     // Gemini
    ("modeltimeoutexception", Meaning::Timeout), // Bedrock
    ("408", Meaning::Timeout),
    ("504", Meaning::Timeout),
    ("524", Meaning::Timeout),
    ("authentication_error", Meaning::Auth), // Anthropic
    ("permission_error", Meaning::Auth),     // Anthropic
    ("invalid_api_key", Meaning::Auth),      // OpenAI
    ("invalidapikey", Meaning::Auth),        // DashScope
    ("api_key_invalid", Meaning::Auth),      // Gemini, beside a 400
    ("incorrect_api_key", Meaning::Auth),
    ("missing_api_key", Meaning::Auth),
    ("invalid_authentication_error", Meaning::Auth), // Moonshot
    ("incorrect_api_key_error", Meaning::Auth),      // Moonshot
    ("authenticationerror", Meaning::Auth),          // LiteLLM
    ("unauthenticated", Meaning::Auth),              // Gemini
    ("permission_denied", Meaning::Auth),            // Gemini
    ("unauthorized", Meaning::Auth),
    ("forbidden", Meaning::Auth),
    ("accessdeniedexception", Meaning::Auth), // Bedrock
    ("unrecognizedclientexception", Meaning::Auth), // Bedrock
    ("unsupported_country_region_territory", Meaning::Auth), // OpenAI
    ("1001", Meaning::Auth),                  // Zhipu
    ("1004", Meaning::Auth),                  // MiniMax
    ("401", Meaning::Auth),
    ("403", Meaning::Auth),
    ("model_not_found", Meaning::Model),    // OpenAI
    ("unknown_model", Meaning::Model),      // GitHub Models
    ("deploymentnotfound", Meaning::Model), // Azure
    ("modelnotfounderror", Meaning::Model),
    ("1211", Meaning::Model),                          // Zhipu
    ("content_filter", Meaning::Filter),               // Azure
    ("responsibleaipolicyviolation", Meaning::Filter), // Azure
    ("content_policy_violation", Meaning::Filter),
    ("data_inspection_failed", Meaning::Filter), // DashScope
    ("datainspectionfailed", Meaning::Filter),   // DashScope
    ("invalid_prompt", Meaning::Filter),         // OpenAI
    ("1301", Meaning::Filter),                   // Zhipu
    ("1026", Meaning::Filter),                   // MiniMax
    ("1027", Meaning::Filter),                   // MiniMax
    ("invalid_image_format", Meaning::Content),
    ("image_parse_error", Meaning::Content),
    ("unsupported_image_media_type", Meaning::Content),
    ("invalid_request_error", Meaning::Request), // OpenAI, Anthropic
    ("badrequesterror", Meaning::Request),       // vLLM, LiteLLM
    ("invalid_argument", Meaning::Request),      // Gemini
    ("invalidparameter", Meaning::Request),      // DashScope
    ("invalid_parameter_error", Meaning::Request),
    ("failed_precondition", Meaning::Request), // Gemini
    ("validationexception", Meaning::Request), // Bedrock
    ("bad_request", Meaning::Request),
    ("400", Meaning::Request),
    ("422", Meaning::Request),
];

/// Words that tell more than a vague code or status does, in lower case. All of a line must be
/// there.
const WORDS: &[(&[&str], Meaning)] = &[
    (&["prompt is too long"], Meaning::Overflow), // Anthropic
    (&["exceed context limit"], Meaning::Overflow), // Anthropic, input and max_tokens
    (&["input is too long"], Meaning::Overflow),  // Bedrock
    (&["exceeds the maximum number of tokens"], Meaning::Overflow), // Gemini
    (&["maximum context length"], Meaning::Overflow), // vLLM, DeepSeek, OpenRouter, SGLang
    (&["max context length"], Meaning::Overflow), // Moonshot
    (&["maximum prompt length"], Meaning::Overflow), // xAI
    (&["maximum context size"], Meaning::Overflow),
    (&["maximum input length"], Meaning::Overflow),
    (&["maximum model length"], Meaning::Overflow), // vLLM
    (&["context size has been exceeded"], Meaning::Overflow), // llama.cpp
    (&["exceeds the available context size"], Meaning::Overflow), // llama.cpp
    (&["exceed", "context window"], Meaning::Overflow), // MiniMax, OpenAI Responses
    (&["exceed", "context length"], Meaning::Overflow), // Ollama, LM Studio
    (&["exceed", "context size"], Meaning::Overflow),
    (&["greater than the context length"], Meaning::Overflow), // LM Studio
    (&["context length", "too long"], Meaning::Overflow),
    (&["range of input length should be"], Meaning::Overflow), // DashScope
    (&["prompt exceeds max length"], Meaning::Overflow),       // Zhipu
    (&["prompt", "too long"], Meaning::Overflow),
    (&["tokens", "must be", "`inputs`"], Meaning::Overflow), // TGI
    (&["too many tokens"], Meaning::Overflow),
    (&["reduce the length of the messages"], Meaning::Overflow), // OpenAI, Groq
    (&["max size", "tokens"], Meaning::Overflow),                // GitHub Models
    (&["credit balance is too low"], Meaning::Quota),            // Anthropic, with a 400
    (&["insufficient", "balance"], Meaning::Quota),
    (&["insufficient", "credit"], Meaning::Quota), // OpenRouter
    (&["exceeded your current quota"], Meaning::Quota), // OpenAI
    (&["api key not valid"], Meaning::Auth),       // Gemini
    (&["incorrect api key"], Meaning::Auth),       // xAI, with a 400
    (&["invalid api key"], Meaning::Auth),
    (&["invalid token"], Meaning::Auth),
    (&["model not exist"], Meaning::Model), // DeepSeek, with a 400
    (&["model", "does not exist"], Meaning::Model),
    (&["model", "not found"], Meaning::Model),
    (&["image", "not support"], Meaning::Content),
    (&["multimodal", "not support"], Meaning::Content),
    (&["image", "only supported by"], Meaning::Content),
    (&["vision", "not support"], Meaning::Content),
    (&["support image input"], Meaning::Content), // OpenRouter: no endpoint does
    (&["image input is not"], Meaning::Content),
    (&["invalid content type", "image"], Meaning::Content),
    (&["rate limit"], Meaning::RateLimited),
    (&["too many requests"], Meaning::RateLimited),
    (&["overloaded"], Meaning::Overloaded),
    (&["timed out"], Meaning::Timeout),
];

/// What the codes of one level of an error say: the first that is not vague, else the first.
pub(super) fn by_codes(codes: &[String]) -> Option<Meaning> {
    let known = || {
        codes.iter().filter_map(|code| {
            let code = code.to_ascii_lowercase();
            CODES
                .iter()
                .find(|(known, _)| *known == code)
                .map(|(_, meaning)| *meaning)
        })
    };
    known()
        .find(|meaning| !meaning.is_vague())
        .or_else(|| known().next())
}

/// What words say that a vague meaning does not.
pub(super) fn by_words(vague: Option<Meaning>, said: &str) -> Option<Meaning> {
    if vague.is_some_and(|meaning| !meaning.is_vague()) {
        return vague;
    }
    let said = said.to_lowercase();
    WORDS
        .iter()
        .find(|(words, _)| words.iter().all(|word| said.contains(word)))
        .map(|(_, meaning)| *meaning)
        .or(vague)
}

/// What a status means beside what the body says.
pub(super) fn by_status(status: u16, facts: &Facts, model: &str) -> Meaning {
    let told = facts.meaning();
    let decided = told.filter(|meaning| !meaning.is_vague());
    match (decided, status) {
        // A count of tokens, whatever it is called: fewer of them pass.
        (_, 413) if facts.said().to_lowercase().contains("token") => Meaning::Overflow,
        (Some(decided), _) => decided,
        (None, 413) => Meaning::TooLarge,
        (None, 404 | 405) if facts.names(model) => Meaning::Model,
        (None, 300..=399 | 404 | 405) => Meaning::Address,
        (None, 401 | 403) => Meaning::Auth,
        (None, 402) => Meaning::Quota,
        (None, 408 | 504 | 524) => Meaning::Timeout,
        (None, 429) => Meaning::RateLimited,
        (None, status) => told.unwrap_or(match status {
            400..=499 => Meaning::Request,
            500..=599 => Meaning::Overloaded,
            _ => Meaning::Unknown,
        }),
    }
}
