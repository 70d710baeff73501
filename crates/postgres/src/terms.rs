//! What a text is found by: the words of a text, and for scripts without spaces their
//! characters and pairs of characters.
//!
//! PostgreSQL's own parser takes a whole Chinese or Japanese sentence for one word.

use std::collections::HashSet;

/// The most terms of a query, from its beginning; a user may paste a whole document.
const QUERY_TERMS: usize = 128;

/// The different terms of a text, in order.
pub(crate) fn index_terms(text: &str) -> Vec<String> {
    let mut seen = HashSet::new();
    let mut terms = terms(text);
    terms.retain(|term| seen.insert(term.clone()));
    terms
}

/// The different terms of a query.
pub(crate) fn query_terms(text: &str) -> Vec<String> {
    let mut terms = index_terms(text);
    terms.truncate(QUERY_TERMS);
    terms
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
mod tests {
    use super::*;

    #[test]
    fn words_stay_whole_and_dense_scripts_become_characters_and_pairs() {
        assert_eq!(
            index_terms("Uses Tauri开发, daily."),
            ["uses", "tauri", "开", "发", "开发", "daily"]
        );
    }

    #[test]
    fn each_term_comes_once_and_a_long_query_is_cut() {
        assert_eq!(query_terms("a 好 A 好"), ["a", "好"]);
        assert!(query_terms("?! \"' -- ()*").is_empty());
        let long: String = (0..5_000).map(|n| format!("word{n} ")).collect();
        assert_eq!(query_terms(&long).len(), QUERY_TERMS);
    }
}
