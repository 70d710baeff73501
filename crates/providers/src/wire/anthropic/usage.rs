//! What an answer cost, in the figures of the Messages protocol.

use youyou_agent::Usage;

use crate::wire::json::Fields;

/// The figures so far. Each event tells sums: a later figure replaces an earlier one.
#[derive(Debug, Default)]
pub(super) struct Tokens {
    /// What the responses before the last pause cost.
    before: Usage,
    input: Option<u64>,
    cache_read: Option<u64>,
    cache_written: Option<u64>,
    output: Option<u64>,
    thinking: Option<u64>,
}

impl Tokens {
    /// Takes the figures of an event; what it leaves out stays.
    pub(super) fn see(&mut self, usage: &Fields<'_>) {
        let see = |known: &mut Option<u64>, name: &str| {
            *known = usage.number(name).or(*known);
        };
        see(&mut self.input, "input_tokens");
        see(&mut self.cache_read, "cache_read_input_tokens");
        see(&mut self.cache_written, "cache_creation_input_tokens");
        see(&mut self.output, "output_tokens");
        let details = usage.object("output_tokens_details");
        self.thinking = details.number("thinking_tokens").or(self.thinking);
    }

    /// The answer goes on in another response, which costs for itself.
    pub(super) fn next_response(&mut self) {
        let mut before = self.before;
        before += self.of_response();
        *self = Self {
            before,
            ..Self::default()
        };
    }

    /// The whole cost, if any is known.
    pub(super) fn usage(&self) -> Option<Usage> {
        let mut all = self.before;
        all += self.of_response();
        (all != Usage::default()).then_some(all)
    }

    fn of_response(&self) -> Usage {
        let mut usage = Usage::default();
        // The vendor counts what is read from and written to the cache apart from the rest.
        let parts = [self.input, self.cache_read, self.cache_written];
        let input = parts
            .iter()
            .flatten()
            .fold(0_u64, |sum, part| sum.saturating_add(*part));
        // A server that knows no figures sends zeros.
        if input > 0 {
            usage.input_tokens = Some(input);
            usage.cached_input_tokens = self.cache_read;
        }
        if input > 0 || self.output.is_some_and(|output| output > 0) {
            usage.output_tokens = self.output;
            usage.reasoning_tokens = self.thinking;
        }
        usage
    }
}
