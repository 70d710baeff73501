//! What a memory is found by: the words of a text, and for scripts without spaces their
//! characters and pairs of characters.
//!
//! SQLite's own tokenizer takes a whole Chinese or Japanese sentence for one word, and its
//! trigrams miss the many words of two characters.

/// The most terms of a query; a user may paste a whole document.
const QUERY_TERMS: usize = 400;

/// The terms of a text, in order, separated by blanks: what is put into the index.
pub(super) fn index_terms(text: &str) -> String {
    terms(text).join(" ")
}

/// The query as FTS5 wants it: any of its terms. `None` if there is none.
pub(super) fn match_query(text: &str) -> Option<String> {
    let mut terms = terms(text);
    terms.sort();
    terms.dedup();
    terms.truncate(QUERY_TERMS);
    // Terms hold letters and digits only; quotes keep FTS5 from taking AND, OR and NOT as its own.
    let quoted: Vec<String> = terms.iter().map(|term| format!("\"{term}\"")).collect();
    (!quoted.is_empty()).then(|| quoted.join(" OR "))
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
    fn a_query_of_signs_only_finds_nothing_and_a_long_one_is_cut() {
        assert_eq!(match_query("?! \"' -- ()*"), None);
        let long: String = (0..5_000).map(|n| format!("word{n} ")).collect();
        assert_eq!(
            match_query(&long).map(|query| query.matches(" OR ").count()),
            Some(QUERY_TERMS - 1)
        );
    }
}
