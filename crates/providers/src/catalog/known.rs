//! What is known of models by their names.

use youyou_agent::Capabilities;

/// The window of a model of which nothing is known. Most have at least this.
const WINDOW: u32 = 128_000;
/// The longest answer of a model of which nothing is known.
const OUTPUT: u32 = 32_000;

/// Parts of names that are no chat models with text in and out.
const OTHER_KINDS: &[&str] = &[
    "embed",
    "audio",
    "realtime",
    "tts",
    "image",
    "transcribe",
    "whisper",
    "dall-e",
    "moderation",
    "guard",
    "rerank",
    "ocr",
    "gpt-3.5-turbo-instruct",
    "search",
    "live",
    "computer-use",
    "veo",
    "lyria",
    "robotics",
    "deep-research",
    "asr",
];

/// Window, vision, reasoning of models by a part of their names; the first entry counts.
const TRAITS: &[(&str, u32, bool, bool)] = &[
    ("gpt-4.1", 1_047_576, true, false),
    ("gpt-4o", 128_000, true, false),
    ("gpt-4", 128_000, true, false),
    ("gpt-3.5", 16_385, false, false),
    ("gpt-oss", 131_072, false, true),
    ("gpt-5-chat", 128_000, true, false),
    ("gpt-", 400_000, true, true),
    ("chatgpt-", 128_000, true, false),
    ("claude-3-7", 200_000, true, true),
    ("claude-3.7", 200_000, true, true),
    ("claude-3", 200_000, true, false),
    ("claude", 200_000, true, true),
    ("gemini-2.0", 1_048_576, true, false),
    ("gemini-1.5", 1_048_576, true, false),
    ("gemini", 1_048_576, true, true),
    ("gemma-3", 131_072, true, false),
    ("deepseek-reasoner", 128_000, false, true),
    ("deepseek-r1", 128_000, false, true),
    ("deepseek", 128_000, false, false),
    ("grok-4-fast", 2_000_000, true, true),
    ("grok-4", 256_000, true, true),
    ("grok-code", 256_000, false, true),
    ("grok-3-mini", 131_072, false, true),
    ("grok", 131_072, false, false),
    ("kimi-k2-thinking", 262_144, false, true),
    ("kimi-k2.5", 262_144, true, true),
    ("kimi", 262_144, false, false),
    ("moonshot-v1-8k", 8_192, false, false),
    ("moonshot-v1-32k", 32_768, false, false),
    ("glm-4.5v", 65_536, true, true),
    ("glm-4.6", 200_000, false, true),
    ("glm-4.5", 131_072, false, true),
    ("glm-5", 200_000, false, true),
    ("minimax-m", 204_800, false, true),
    ("magistral", 131_072, true, true),
    ("pixtral", 131_072, true, false),
    ("mistral-large", 131_072, true, false),
    ("mistral-medium", 131_072, true, false),
    ("mistral-small", 131_072, true, false),
    ("qwen3-coder", 262_144, false, false),
    ("qwen3-vl", 131_072, true, true),
    ("qwen3-max", 262_144, false, false),
    ("qwen-plus", 131_072, false, true),
    ("qwen3", 131_072, false, true),
    ("qwq", 131_072, false, true),
    ("llama-4", 131_072, true, false),
    ("o1", 200_000, true, true),
    ("o3", 200_000, true, true),
    ("o4", 200_000, true, true),
];

/// The longest answers, in tokens, where they are shorter or longer than usual.
const OUTPUTS: &[(&str, u32)] = &[
    ("claude-3-7", 64_000),
    ("claude-3-5", 8_192),
    ("claude-3", 4_096),
    ("claude-opus-4-1", 32_000),
    ("claude-opus-4-2", 32_000),
    ("claude-opus-4-0", 32_000),
    ("claude-", 64_000),
];

/// Beginnings of names whose models share what only they understand, and what they are called
/// for short.
const FAMILIES: &[(&str, &str)] = &[
    ("gpt-oss", "gpt-oss"),
    ("gpt-", "gpt"),
    ("chatgpt-", "gpt"),
    ("o1", "gpt"),
    ("o3", "gpt"),
    ("o4", "gpt"),
    ("codex", "gpt"),
    ("claude", "claude"),
    ("gemini", "gemini"),
    ("deepseek", "deepseek"),
    ("grok", "grok"),
    ("kimi", "kimi"),
    ("glm", "glm"),
    ("minimax", "minimax"),
    ("qwen", "qwen"),
    ("qwq", "qwen"),
    ("mistral", "mistral"),
    ("magistral", "mistral"),
    ("ministral", "mistral"),
    ("llama", "llama"),
];

/// The window in tokens and what the model can do.
pub(super) fn traits(name: &str) -> (u32, Capabilities) {
    let name = bare(name);
    // Short names such as o1 would be found in the middle of others.
    let is_it = |part: &str| name.starts_with(part) || part.len() > 3 && name.contains(part);
    let found = TRAITS.iter().find(|(part, ..)| is_it(part));
    let (window, vision, reasoning) = found
        .map_or((WINDOW, false, false), |(_, window, vision, reasoning)| {
            (*window, *vision, *reasoning)
        });
    let can = Capabilities {
        vision,
        reasoning,
        ..Capabilities::default()
    };
    (window, can)
}

/// The longest answer of a model, in tokens.
pub(crate) fn max_output(name: &str) -> u32 {
    let name = bare(name);
    let found = OUTPUTS.iter().find(|(part, _)| name.contains(part));
    found.map_or(OUTPUT, |(_, output)| *output)
}

/// The family of a model; its own name where none is known.
pub(crate) fn family(name: &str) -> String {
    let bare = bare(name);
    let found = FAMILIES.iter().find(|(start, _)| bare.starts_with(start));
    found.map_or(bare, |(_, family)| (*family).to_owned())
}

pub(super) fn is_of_another_kind(name: &str) -> bool {
    let name = name.to_lowercase();
    OTHER_KINDS.iter().any(|kind| name.contains(kind))
}

/// A name without the maker in front of it (`openai/gpt-5`, `us.anthropic.claude-…`).
fn bare(name: &str) -> String {
    let name = name.to_lowercase();
    let name = name.rsplit('/').next().unwrap_or(&name);
    let after_maker = name.rsplit_once("anthropic.").map(|(_, rest)| rest);
    after_maker.unwrap_or(name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_known_by_its_name_whoever_serves_it() {
        for (name, known) in [
            ("gpt-5-mini", "gpt"),
            ("openai/o3", "gpt"),
            ("openai/gpt-oss-120b", "gpt-oss"),
            ("us.anthropic.claude-sonnet-4-5-v1:0", "claude"),
            ("anthropic/claude-sonnet-4.5", "claude"),
            ("google/gemini-2.5-pro", "gemini"),
            ("MiniMax-M2", "minimax"),
            ("my-own", "my-own"),
        ] {
            assert_eq!(family(name), known, "{name}");
        }
        assert_eq!(traits("openai/o3").0, 200_000);
        assert_eq!(traits("foo-o1-bar"), traits("my-own"));
        assert_eq!(
            (max_output("claude-3-5-haiku"), max_output("x")),
            (8_192, 32_000)
        );
    }
}
