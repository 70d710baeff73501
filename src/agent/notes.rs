//! The fixed words that the agent itself says to a model, in one place.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::storage::Interruption;

/// The fixed words that a model reads: notes after answers that were cut, results of calls that
/// did not run, and what stands for something that is missing.
///
/// They are part of requests only, never stored and never shown. The default mixes Chinese
/// and English as the first agents of this kind did; [`Notes::english`] is English throughout.
/// Every field can be replaced, for instance by words in the language of the app. A blank one
/// fails the build with `INVALID_CONFIG`.
///
/// # Examples
/// ```
/// use youyou_agent::{AgentConfig, Notes};
///
/// let config = AgentConfig {
///     notes: Notes::english(),
///     ..AgentConfig::new("gpt-5")
/// };
/// # let _ = config;
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Notes {
    /// After an answer that the user cancelled.
    pub cancelled: Cow<'static, str>,
    /// After an answer that an error cut.
    pub failed: Cow<'static, str>,
    /// After an answer that the end of the process cut.
    pub process_ended: Cow<'static, str>,
    /// After a message that the model answered with nothing.
    pub no_answer: Cow<'static, str>,
    /// Result of a call that was skipped because the user cancelled.
    pub call_cancelled: Cow<'static, str>,
    /// Result of a call that did not run for another reason.
    pub call_not_executed: Cow<'static, str>,
    /// Result of a call that was running when the process ended.
    pub call_outcome_unknown: Cow<'static, str>,
    /// Result of a call whose tool said nothing.
    pub no_output: Cow<'static, str>,
    /// In place of an image, for a model that cannot see images.
    pub image_unseen: Cow<'static, str>,
    /// In place of an image that the model refused.
    pub image_refused: Cow<'static, str>,
    /// At the start of a conversation whose first messages cannot be read.
    pub earlier_missing: Cow<'static, str>,
    /// In place of messages that were removed without a summary.
    pub earlier_removed: Cow<'static, str>,
    /// Before a summary.
    pub summary: Cow<'static, str>,
    /// At the end of a summary that was cut at its limit.
    pub summary_cut: Cow<'static, str>,
    /// After a summary behind which more messages were removed without one.
    pub removed_since_summary: Cow<'static, str>,
}

impl Default for Notes {
    fn default() -> Self {
        Self {
            cancelled: "[此消息因用户取消而中断]".into(),
            failed: "[此消息因错误而中断]".into(),
            process_ended: "[此消息因程序中断而未完成]".into(),
            call_cancelled: "[已取消] not executed".into(),
            ..Self::english()
        }
    }
}

impl Notes {
    /// All words in English.
    #[must_use]
    pub fn english() -> Self {
        Self {
            cancelled: "[The user cancelled this message before it was complete.]".into(),
            failed: "[An error cut this message off.]".into(),
            process_ended: "[The program ended before this message was complete.]".into(),
            no_answer: "[The model gave no answer to this message.]".into(),
            call_cancelled: "[cancelled] not executed".into(),
            call_not_executed: "[not executed] This call did not run.".into(),
            call_outcome_unknown: "[outcome unknown] The program ended while this call was running. It may or may not have taken effect; check before you repeat it.".into(),
            no_output: "(no output)".into(),
            image_unseen: "[An image is left out here: this model cannot see images.]".into(),
            image_refused: "[An image is left out here: the model refused it.]".into(),
            earlier_missing: "[Earlier messages are not available.]".into(),
            earlier_removed: "[Earlier messages of this conversation were removed because the context was full.]".into(),
            summary: "[Summary of the conversation so far]".into(),
            summary_cut: "[The summary was cut here: it was too long.]".into(),
            removed_since_summary: "[More messages after this summary were removed because the context was full.]".into(),
        }
    }

    /// The note after an answer that was cut for this reason.
    #[must_use]
    pub fn interruption(&self, interruption: Interruption) -> &str {
        match interruption {
            Interruption::Cancelled => &self.cancelled,
            Interruption::Failed => &self.failed,
            Interruption::ProcessEnded => &self.process_ended,
        }
    }

    /// The first field that is blank.
    pub(crate) fn blank_field(&self) -> Option<&'static str> {
        let fields = [
            ("cancelled", &self.cancelled),
            ("failed", &self.failed),
            ("process_ended", &self.process_ended),
            ("no_answer", &self.no_answer),
            ("call_cancelled", &self.call_cancelled),
            ("call_not_executed", &self.call_not_executed),
            ("call_outcome_unknown", &self.call_outcome_unknown),
            ("no_output", &self.no_output),
            ("image_unseen", &self.image_unseen),
            ("image_refused", &self.image_refused),
            ("earlier_missing", &self.earlier_missing),
            ("earlier_removed", &self.earlier_removed),
            ("summary", &self.summary),
            ("summary_cut", &self.summary_cut),
            ("removed_since_summary", &self.removed_since_summary),
        ];
        let blank = fields.iter().find(|(_, words)| words.trim().is_empty());
        blank.map(|(field, _)| *field)
    }
}
