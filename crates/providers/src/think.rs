//! `<think>` in the text of an answer is reasoning.
//!
//! Models whose server does not take their thoughts out of the text begin with them, and with
//! some each round of calls does. A tag in the middle of a text is the text's own: a model may
//! write about tags.

/// The tags that models are trained with.
const TAGS: &[(&str, &str)] = &[
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<seed:think>", "</seed:think>"),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
];

/// A piece of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(String),
    Thought(String),
}

/// Takes pieces of text as they come and tells thoughts from the rest.
#[derive(Debug)]
pub(crate) struct Splitter {
    state: State,
    /// What came and cannot be told yet: blanks, the start of a tag.
    held: String,
    /// The tags that were seen, so that thoughts can go back as they came.
    tags: Option<(&'static str, &'static str)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// No text came yet, or nothing but thoughts.
    Start {
        is_after_thought: bool,
    },
    /// In thoughts; blanks at their start are dropped.
    Thought {
        end: &'static str,
        is_fresh: bool,
    },
    Text,
}

impl Splitter {
    /// With `is_on` false all is text.
    pub(crate) fn new(is_on: bool) -> Self {
        let state = if is_on {
            State::Start {
                is_after_thought: false,
            }
        } else {
            State::Text
        };
        Self {
            state,
            held: String::new(),
            tags: None,
        }
    }

    /// The tags of the thoughts, if there were any.
    pub(crate) fn tags(&self) -> Option<(&'static str, &'static str)> {
        self.tags
    }

    /// Whether all that comes is text.
    pub(crate) fn is_done(&self) -> bool {
        self.state == State::Text && self.held.is_empty()
    }

    /// From here on all is text: the server tells thoughts apart itself.
    pub(crate) fn stop(&mut self) {
        if matches!(
            self.state,
            State::Start {
                is_after_thought: false
            }
        ) && self.held.is_empty()
        {
            self.state = State::Text;
        }
    }

    /// Takes a piece of text.
    pub(crate) fn take(&mut self, text: &str, give: &mut impl FnMut(Piece)) {
        if self.state == State::Text {
            if !text.is_empty() {
                give(Piece::Text(text.to_owned()));
            }
            return;
        }
        self.held.push_str(text);
        while self.step(give) {}
    }

    /// The text is over: what was held is what it looks like.
    pub(crate) fn finish(&mut self, give: &mut impl FnMut(Piece)) {
        let held = std::mem::take(&mut self.held);
        match self.state {
            _ if held.is_empty() => {}
            State::Thought { .. } => give(Piece::Thought(held)),
            // Blanks behind thoughts separate them from a text that did not come.
            State::Start {
                is_after_thought: true,
            } if held.trim().is_empty() => {}
            State::Start { .. } | State::Text => give(Piece::Text(held)),
        }
    }

    /// Whether there may be more to tell in what is held.
    fn step(&mut self, give: &mut impl FnMut(Piece)) -> bool {
        match self.state {
            State::Text => {
                let held = std::mem::take(&mut self.held);
                if !held.is_empty() {
                    give(Piece::Text(held));
                }
                false
            }
            State::Start { is_after_thought } => self.start(is_after_thought),
            State::Thought { end, is_fresh } => self.thought(end, is_fresh, give),
        }
    }

    fn start(&mut self, is_after_thought: bool) -> bool {
        let text = self.held.trim_start();
        if let Some((tag, end)) = TAGS.iter().find(|(tag, _)| text.starts_with(tag)) {
            self.held = text.get(tag.len()..).unwrap_or_default().to_owned();
            self.tags = Some((tag, end));
            self.state = State::Thought {
                end,
                is_fresh: true,
            };
            return true;
        }
        if TAGS.iter().any(|(tag, _)| tag.starts_with(text)) {
            return false;
        }
        if is_after_thought {
            self.held = text.to_owned();
        }
        self.state = State::Text;
        true
    }

    fn thought(&mut self, end: &'static str, is_fresh: bool, give: &mut impl FnMut(Piece)) -> bool {
        if is_fresh {
            let text = self.held.trim_start();
            if text.is_empty() {
                return false;
            }
            self.held = text.to_owned();
        }
        if let Some((thought, rest)) = self.held.split_once(end) {
            let thought = thought.trim_end().to_owned();
            self.held = rest.to_owned();
            self.state = State::Start {
                is_after_thought: true,
            };
            if !thought.is_empty() {
                give(Piece::Thought(thought));
            }
            return true;
        }
        let sure = sure(&self.held, end);
        let later = self.held.split_off(sure);
        let thought = std::mem::replace(&mut self.held, later);
        self.state = State::Thought {
            end,
            is_fresh: is_fresh && thought.is_empty(),
        };
        if !thought.is_empty() {
            give(Piece::Thought(thought));
        }
        false
    }
}

/// How much of a text is sure to be in front of `end`: not its start at the text's end, and not
/// the blanks that would stand before it.
fn sure(text: &str, end: &str) -> usize {
    let starts = text.char_indices().map(|(at, _)| at);
    let tail = starts
        .rev()
        .take(end.len())
        .filter(|at| text.get(*at..).is_some_and(|tail| end.starts_with(tail)));
    let tag = tail.last().unwrap_or(text.len());
    text.get(..tag).map_or(0, |before| before.trim_end().len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Thoughts and text, each joined.
    fn split(text: &str, size: usize) -> (String, String) {
        let mut splitter = Splitter::new(true);
        let (mut thoughts, mut texts) = (String::new(), String::new());
        let mut give = |piece| match piece {
            Piece::Thought(thought) => thoughts.push_str(&thought),
            Piece::Text(text) => texts.push_str(&text),
        };
        let letters: Vec<char> = text.chars().collect();
        for piece in letters.chunks(size) {
            splitter.take(&piece.iter().collect::<String>(), &mut give);
        }
        splitter.finish(&mut give);
        (thoughts, texts)
    }

    // P17
    #[test]
    fn thoughts_are_told_from_text_wherever_the_tags_are_cut() {
        for (text, thought, said) in [
            ("<think>hm</think>yes", "hm", "yes"),
            (
                "<think>\nhm\n\nwell\n</think>\n\nyes\n",
                "hm\n\nwell",
                "yes\n",
            ),
            ("\n <think>hm</think>yes", "hm", "yes"),
            ("<think></think>\n\nyes", "", "yes"),
            ("<think>a</think><think>b</think>yes", "ab", "yes"),
            (
                "<thinking>a < b </thin </thinking>yes",
                "a < b </thin",
                "yes",
            ),
            ("◁think▷嗯◁/think▷好", "嗯", "好"),
            ("<think>no end", "no end", ""),
            ("<think>no end</thi", "no end</thi", ""),
            (
                "The tag <think> begins</think> it",
                "",
                "The tag <think> begins</think> it",
            ),
            ("<thin air>", "", "<thin air>"),
            ("<thi", "", "<thi"),
            ("  indented", "", "  indented"),
            ("\n", "", "\n"),
            ("", "", ""),
        ] {
            for size in [1, 2, 3, 5, 100] {
                let expected = (thought.to_owned(), said.to_owned());
                assert_eq!(split(text, size), expected, "{text:?} in pieces of {size}");
            }
        }
    }

    #[test]
    fn a_server_that_tells_thoughts_apart_itself_has_its_text_as_it_is() {
        let mut splitter = Splitter::new(true);
        splitter.stop();
        let mut pieces = Vec::new();
        splitter.take("<think>x</think>", &mut |piece| pieces.push(piece));
        assert_eq!(pieces, [Piece::Text("<think>x</think>".to_owned())]);
    }
}
