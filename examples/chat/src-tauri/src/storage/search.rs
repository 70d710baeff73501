//! What a memory is found by: the words of a text, and for scripts without spaces their
//! characters and pairs of characters.
//!
//! SQLite's own tokenizer takes a whole Chinese or Japanese sentence for one word, and its
//! trigrams miss the many words of two characters.

use std::collections::HashSet;

/// The most terms of a query, from its beginning; a user may paste a whole document.
const QUERY_TERMS: usize = 128;

/// The terms of a text, in order, separated by blanks: what is put into the index.
pub(super) fn index_terms(text: &str) -> String {
    terms(text).join(" ")
}

/// The different terms of a query, each as FTS5 wants it.
pub(super) fn query_terms(text: &str) -> Vec<String> {
    let mut seen = HashSet::new();
    // Terms hold letters and digits only; quotes keep FTS5 from taking AND, OR and NOT as its own.
    terms(text)
        .into_iter()
        .map(|term| format!("\"{term}\""))
        .filter(|term| seen.insert(term.clone()))
        .take(QUERY_TERMS)
        .collect()
}

fn terms(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    let mut terms = Vec::new();
    for word in lower
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
    {
        // "Tauri开发" is a word and two characters.
        let mut rest = word;
        while let Some(first) = rest.chars().next() {
            let dense = is_dense(first);
            let end = rest.find(|c| is_dense(c) != dense).unwrap_or(rest.len());
            let (run, after) = rest.split_at(end);
            if dense {
                let characters: Vec<char> = run.chars().collect();
                terms.extend(characters.iter().map(char::to_string));
                terms.extend(characters.windows(2).map(|pair| pair.iter().collect()));
            } else {
                terms.push(run.to_owned());
            }
            rest = after;
        }
    }
    terms
}

/// Whether words of this character's script are written without spaces between them.
fn is_dense(c: char) -> bool {
    matches!(c,
        '\u{2E80}'..='\u{2FDF}'     // radicals
        | '\u{3005}'..='\u{3007}'   // iteration mark, zero
        | '\u{3040}'..='\u{30FF}'   // kana
        | '\u{31F0}'..='\u{31FF}'
        | '\u{3400}'..='\u{4DBF}'   // Han
        | '\u{4E00}'..='\u{9FFF}'
        | '\u{AC00}'..='\u{D7AF}'   // Hangul: spaces, but long endings
        | '\u{F900}'..='\u{FAFF}'
        | '\u{FF66}'..='\u{FF9F}'   // half-width kana
        | '\u{20000}'..='\u{3FFFF}')
}

#[cfg(test)]
#[expect(clippy::indexing_slicing, reason = "a test that cannot go on fails")]
mod tests {
    use super::*;

    #[test]
    fn words_stay_whole_and_dense_scripts_become_characters_and_pairs() {
        assert_eq!(
            index_terms("Uses Tauri开发, daily."),
            "uses tauri 开 发 开发 daily"
        );
    }

    #[test]
    fn a_query_has_each_term_once_and_a_long_one_is_cut() {
        assert_eq!(query_terms("a 好 A 好"), ["\"a\"", "\"好\""]);
        assert!(query_terms("?! \"' -- ()*").is_empty());
        let long: String = (0..5_000).map(|n| format!("word{n} ")).collect();
        let terms = query_terms(&long);
        assert_eq!(terms.len(), QUERY_TERMS);
        assert_eq!(terms[0], "\"word0\"");
    }
}
