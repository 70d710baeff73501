//! What the word means with which a server ends an answer.

use youyou_agent::StopReason;

/// The meaning of a finish reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The answer ended so.
    Stop(StopReason),
    /// The server failed while it answered; the same request may succeed later.
    Failed,
    /// The model wrote a call that its server could not read; another try may succeed.
    BadCall,
    /// The server paused a long answer (Anthropic's `pause_turn`): the request goes on with
    /// what came so far.
    Paused,
    /// A word that is not in the table. The answer ends with [`StopReason::Other`] and a
    /// warning.
    Unknown,
}

/// The words of all protocols, in lower case: Gemini writes its own in capitals.
const WORDS: &[(&str, Ending)] = &[
    ("stop", Ending::Stop(StopReason::EndTurn)),
    ("end_turn", Ending::Stop(StopReason::EndTurn)),
    ("stop_sequence", Ending::Stop(StopReason::EndTurn)),
    ("tool_calls", Ending::Stop(StopReason::EndTurn)),
    ("tool_use", Ending::Stop(StopReason::EndTurn)),
    ("function_call", Ending::Stop(StopReason::EndTurn)),
    ("completed", Ending::Stop(StopReason::EndTurn)),
    ("complete", Ending::Stop(StopReason::EndTurn)),
    ("eos", Ending::Stop(StopReason::EndTurn)),
    ("length", Ending::Stop(StopReason::Length)),
    ("max_tokens", Ending::Stop(StopReason::Length)),
    ("max_output_tokens", Ending::Stop(StopReason::Length)),
    (
        "model_context_window_exceeded",
        Ending::Stop(StopReason::Length),
    ),
    ("model_length", Ending::Stop(StopReason::Length)),
    ("content_filter", Ending::Stop(StopReason::ContentFilter)),
    ("content_filtered", Ending::Stop(StopReason::ContentFilter)),
    (
        "guardrail_intervened",
        Ending::Stop(StopReason::ContentFilter),
    ),
    ("sensitive", Ending::Stop(StopReason::ContentFilter)),
    ("safety", Ending::Stop(StopReason::ContentFilter)),
    ("recitation", Ending::Stop(StopReason::ContentFilter)),
    (
        "prohibited_content",
        Ending::Stop(StopReason::ContentFilter),
    ),
    ("blocklist", Ending::Stop(StopReason::ContentFilter)),
    ("spii", Ending::Stop(StopReason::ContentFilter)),
    ("language", Ending::Stop(StopReason::ContentFilter)),
    ("model_armor", Ending::Stop(StopReason::ContentFilter)),
    ("escalation", Ending::Stop(StopReason::ContentFilter)),
    ("image_safety", Ending::Stop(StopReason::ContentFilter)),
    (
        "image_prohibited_content",
        Ending::Stop(StopReason::ContentFilter),
    ),
    ("image_recitation", Ending::Stop(StopReason::ContentFilter)),
    ("refusal", Ending::Stop(StopReason::Refusal)),
    ("pause_turn", Ending::Paused),
    ("error", Ending::Failed),
    ("network_error", Ending::Failed),
    ("abort", Ending::Failed),
    ("aborted", Ending::Failed),
    ("cancelled", Ending::Failed),
    ("failed", Ending::Failed),
    ("insufficient_system_resource", Ending::Failed),
    ("malformed_function_call", Ending::BadCall),
    ("malformed_tool_call", Ending::BadCall),
    ("malformed_model_output", Ending::BadCall),
    ("malformed_response", Ending::BadCall),
    ("unexpected_tool_call", Ending::BadCall),
    ("too_many_tool_calls", Ending::BadCall),
    ("missing_thought_signature", Ending::BadCall),
];

/// Looks up a finish reason; capitals do not matter.
pub(crate) fn ending(word: &str) -> Ending {
    WORDS
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(word))
        .map_or(Ending::Unknown, |(_, ending)| *ending)
}
