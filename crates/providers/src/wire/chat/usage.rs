//! What an answer cost, in the words of all who speak the protocol.

use youyou_agent::Usage;

use crate::wire::json::Fields;

/// Reads the figures; `None` where there are none. Servers that know no figures send zeros.
pub(super) fn read(usage: &Fields<'_>) -> Option<Usage> {
    let count = |fields: &Fields<'_>, names: &[&str]| {
        names
            .iter()
            .find_map(|name| fields.number(name).filter(|tokens| *tokens > 0))
    };
    let input = count(usage, &["prompt_tokens", "input_tokens"]);
    let told = count(usage, &["completion_tokens", "output_tokens"]);
    let of_input = usage.object("prompt_tokens_details");
    let of_output = usage.object("completion_tokens_details");
    // Some do not count reasoning as output (xAI, Google): the total has it.
    let total = count(usage, &["total_tokens"]);
    let rest = total
        .zip(input)
        .and_then(|(total, input)| total.checked_sub(input));
    let known = Usage {
        input_tokens: input,
        output_tokens: told.max(rest.filter(|rest| *rest > 0 && told.is_some())),
        cached_input_tokens: count(&of_input, &["cached_tokens"])
            // DeepSeek, Moonshot
            .or_else(|| count(usage, &["prompt_cache_hit_tokens", "cached_tokens"])),
        reasoning_tokens: count(&of_output, &["reasoning_tokens"])
            .or_else(|| count(usage, &["reasoning_tokens"])),
    };
    (known != Usage::default()).then_some(known)
}
