//! Keeps secrets out of what models read: keys in a tool's output are blacked out.

use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use regex::Regex;
use youyou_agent::{AfterToolUse, HookOutcome, HookRegistry, OnFault, Plugin, PluginError, Tap};

use crate::settings::Settings;

const BLACK: &str = "[secret removed]";

/// What secrets look like: the vendors' own prefixes, so that ordinary text stays as it is.
const SHAPES: &[&str] = &[
    r"\bsk-[A-Za-z0-9_-]{20,}", // OpenAI, Anthropic, DeepSeek, OpenRouter
    r"\bAIza[A-Za-z0-9_-]{35}", // Google
    r"\b(?:ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9]{36,}", // GitHub
    r"\bgithub_pat_[A-Za-z0-9_]{22,}",
    r"\bglpat-[A-Za-z0-9_-]{20,}",        // GitLab
    r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",     // AWS
    r"\bxox[abprs]-[A-Za-z0-9-]{10,}",    // Slack
    r"\b(?:sk|rk)_live_[A-Za-z0-9]{16,}", // Stripe
    r"\bnpm_[A-Za-z0-9]{36}",
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\z)",
];

/// All shapes as one expression.
static SECRETS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(&SHAPES.join("|")).ok());

/// Blacks out secrets after each tool. If it fails, the output is withheld.
pub struct SecretRedactor {
    settings: Arc<Settings>,
}

impl SecretRedactor {
    /// Also knows the keys in the settings, whatever they look like.
    #[must_use]
    pub fn new(settings: Arc<Settings>) -> Self {
        Self { settings }
    }
}

#[async_trait]
impl Plugin for SecretRedactor {
    fn id(&self) -> &str {
        "secret-redactor"
    }

    fn display_name(&self) -> &str {
        "Secret redactor"
    }

    fn description(&self) -> &str {
        "Replaces keys and passwords in tool output by \"[secret removed]\"; do not ask for them."
    }

    fn apply(&self, hooks: &mut HookRegistry) -> Result<(), PluginError> {
        let secrets = SECRETS
            .as_ref()
            .ok_or_else(|| PluginError::new("a secret's shape is no valid expression"))?;
        let settings = Arc::clone(&self.settings);
        // An output that could not be checked must not reach the model.
        let tap = Tap::named("redact").on_fault(OnFault::Deny);
        hooks.after_tool_use(tap, move |hook: AfterToolUse| {
            let redacted = redact(secrets, &settings, &hook.output);
            std::future::ready(Ok(match redacted {
                Some(output) => HookOutcome::ContinueWith(output),
                None => HookOutcome::Continue,
            }))
        });
        Ok(())
    }
}

/// The output without secrets, or `None` if there was none in it.
fn redact(secrets: &Regex, settings: &Settings, output: &str) -> Option<String> {
    let mut redacted = secrets.replace_all(output, BLACK).into_owned();
    for key in settings.keys() {
        // A very short key would black out half of every text.
        if key.reveal().len() >= 8 {
            redacted = redacted.replace(key.reveal(), BLACK);
        }
    }
    (redacted != output).then_some(redacted)
}

#[cfg(test)]
#[expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on fails"
)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_blacked_out_and_ordinary_text_stays() {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings::load(folder.path(), |_| None).unwrap();
        settings.set_key("openai", "an-unusual-key").unwrap();
        let secrets = SECRETS.as_ref().unwrap();
        let long = "a1".repeat(20);
        let found = [
            format!("OPENAI_API_KEY=sk-proj-{long}"),
            format!("token: ghp_{long}"),
            "aws AKIAIOSFODNN7EXAMPLE".to_owned(),
            "the key is an-unusual-key.".to_owned(),
            "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----".to_owned(),
            "-----BEGIN PRIVATE KEY-----\nMIIE and then it was cut".to_owned(),
        ];
        for text in found {
            let redacted =
                redact(secrets, &settings, &text).unwrap_or_else(|| panic!("missed: {text}"));
            assert!(
                redacted.contains(BLACK)
                    && !redacted.contains("MIIE")
                    && !redacted.contains("a1a1"),
                "{redacted}"
            );
        }
        for text in [
            "task-list",
            "sk-short",
            "密钥管理",
            "let risk-assessment = 1;",
            "",
        ] {
            assert_eq!(redact(secrets, &settings, text), None, "{text}");
        }
    }
}
