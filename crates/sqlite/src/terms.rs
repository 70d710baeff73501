//! What a text is found by: the words of a text, and for scripts without spaces their
//! characters and pairs of characters.
//!
//! SQLite's own tokenizer takes a whole Chinese or Japanese sentence for one word, and its
//! trigrams miss the many words of two characters.

use std::collections::HashSet;

/// The most terms of a query, from its beginning; a user may paste a whole document.
const QUERY_TERMS: usize = 128;
/// The most terms of a query that all have to fit, from its beginning.
const REQUIRED_TERMS: usize = 64;

/// The terms of a text, in order, separated by blanks: what is put into the index.
pub(crate) fn index_terms(text: &str) -> String {
    terms(text).join(" ")
}

/// The different terms of a query of which any may fit, each as FTS5 wants it.
pub(crate) fn query_terms(text: &str) -> Vec<String> {
    let mut seen = HashSet::new();
    terms(text)
        .into_iter()
        .map(|term| quoted(&term))
        .filter(|term| seen.insert(term.clone()))
        .take(QUERY_TERMS)
        .collect()
}

/// The terms of a query that all have to fit, in lower case: its words, and of scripts without
/// spaces the pairs of characters, which say where a word is more closely than characters do.
pub(crate) fn required_terms(text: &str) -> Vec<String> {
    let mut terms = Vec::new();
    for (run, dense) in runs(&text.to_lowercase()) {
        if dense && run.chars().nth(1).is_some() {
            terms.extend(pairs(run));
        } else {
            terms.push(run.to_owned());
        }
        if terms.len() >= REQUIRED_TERMS {
            break;
        }
    }
    terms.truncate(REQUIRED_TERMS);
    terms
}

/// A term as FTS5 wants it. Terms hold letters and digits only; quotes keep FTS5 from taking
/// AND, OR and NOT as its own.
pub(crate) fn quoted(term: &str) -> String {
    format!("\"{term}\"")
}

fn terms(text: &str) -> Vec<String> {
    let mut terms = Vec::new();
    for (run, dense) in runs(&text.to_lowercase()) {
        if dense {
            terms.extend(run.chars().map(String::from));
            terms.extend(pairs(run));
        } else {
            terms.push(run.to_owned());
        }
    }
    terms
}

fn pairs(run: &str) -> impl Iterator<Item = String> {
    run.chars()
        .zip(run.chars().skip(1))
        .map(|(first, second)| String::from_iter([first, second]))
}

/// The words of a text, each with whether it is of a script without spaces. "Tauri开发" is two.
fn runs(text: &str) -> impl Iterator<Item = (&str, bool)> {
    text.split(|c: char| !c.is_alphanumeric()).flat_map(|word| {
        let mut rest = word;
        std::iter::from_fn(move || {
            let dense = is_dense(rest.chars().next()?);
            let end = rest.find(|c| is_dense(c) != dense).unwrap_or(rest.len());
            let (run, after) = rest.split_at(end);
            rest = after;
            Some((run, dense))
        })
    })
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
        assert_eq!(required_terms(&long).len(), REQUIRED_TERMS);
    }

    #[test]
    fn what_has_to_fit_is_words_and_pairs_and_a_character_only_where_it_stands_alone() {
        assert_eq!(
            required_terms("Tauri 开发者, 好!"),
            ["tauri", "开发", "发者", "好"]
        );
        assert!(required_terms(" ?! ").is_empty());
    }
}
