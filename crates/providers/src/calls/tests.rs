use super::*;

/// One fragment: index, id, name, arguments.
type Given<'a> = (Option<u64>, &'a str, &'a str, &'a str);

fn calls(fragments: &[Given<'_>]) -> Vec<(String, String, String)> {
    let mut calls = Calls::default();
    for (index, id, name, arguments) in fragments {
        let (index, is_whole) = (*index, false);
        calls.take(Fragment {
            index,
            id,
            name,
            arguments,
            is_whole,
        });
    }
    let all = calls.finish().into_iter();
    all.map(|call| (call.id, call.name, call.arguments))
        .collect()
}

fn assert_calls(fragments: &[Given<'_>], expected: &[(&str, &str, &str)]) {
    let made = calls(fragments);
    let made: Vec<(&str, &str, &str)> = made
        .iter()
        .map(|(id, name, arguments)| (id.as_str(), name.as_str(), arguments.trim()))
        .collect();
    assert_eq!(made, expected, "{fragments:?}");
}

const LINZ: &str = r#"{"city":"Linz"}"#;

// P3
#[test]
fn a_name_in_each_fragment_is_one_call() {
    let first = ["", " ", "{}", "{ }", "null"];
    for first in first {
        assert_calls(
            &[
                (Some(0), "w1", "weather", first),
                (Some(0), "", "weather", r#"{"city":"#),
                (Some(0), "", "weather", r#""Linz"}"#),
                (Some(0), "", "weather", ""),
            ],
            &[("w1", "weather", LINZ)],
        );
        assert_calls(
            &[
                (None, "w1", "weather", first),
                (None, "", "", r#"{"city":"#),
                (None, "", "", r#""Linz"}"#),
            ],
            &[("w1", "weather", LINZ)],
        );
        assert_calls(
            &[
                (Some(0), "w1", "weather", first),
                (Some(1), "w2", "weather", first),
                (Some(0), "", "weather", LINZ),
                (Some(1), "", "weather", r#"{"city":"Graz"}"#),
            ],
            &[
                ("w1", "weather", LINZ),
                ("w2", "weather", r#"{"city":"Graz"}"#),
            ],
        );
    }
    assert_calls(
        &[(Some(0), "w1", "weather", "{}")],
        &[("w1", "weather", "{}")],
    );
}

// E2
#[test]
fn fragments_of_parallel_calls_interleave() {
    assert_calls(
        &[
            (Some(1), "b", "get", r#"{"q":"#),
            (Some(0), "a", "get", r#"{"q":"#),
            (Some(0), "", "", r#""x"}"#),
            (Some(1), "", "", r#""y"}"#),
        ],
        &[("a", "get", r#"{"q":"x"}"#), ("b", "get", r#"{"q":"y"}"#)],
    );
}

#[test]
fn whole_calls_that_share_an_index_or_have_none_stay_apart() {
    for index in [Some(0), None] {
        for ids in [["a", "b"], ["", ""]] {
            let [a, b] = ids;
            assert_calls(
                &[(index, a, "one", LINZ), (index, b, "two", "{}")],
                &[(a, "one", LINZ), (b, "two", "{}")],
            );
            assert_calls(
                &[
                    (index, a, "one", LINZ),
                    (index, b, "one", r#"{"city":"Graz"}"#),
                ],
                &[(a, "one", LINZ), (b, "one", r#"{"city":"Graz"}"#)],
            );
        }
        assert_calls(
            &[(index, "a", "one", "{}"), (index, "b", "one", "{}")],
            &[("a", "one", "{}"), ("b", "one", "{}")],
        );
    }
}

#[test]
fn a_fragment_with_an_id_of_its_own_goes_on_with_what_is_not_whole() {
    assert_calls(
        &[
            (Some(0), "r1", "weather", r#"{"ci"#),
            (Some(0), "r2", "weather", r#"ty":"Li"#),
            (Some(0), "r3", "", r#"nz"}"#),
        ],
        &[("r1", "weather", LINZ)],
    );
}

#[test]
fn what_is_said_twice_counts_once() {
    assert_calls(
        &[
            (Some(0), "a", "one", LINZ),
            (Some(0), "a", "one", LINZ),
            (Some(0), "", "", ""),
        ],
        &[("a", "one", LINZ)],
    );
}

#[test]
fn a_name_in_pieces_is_joined_and_one_told_anew_is_not_doubled() {
    assert_calls(
        &[(Some(0), "a", "wea", ""), (Some(0), "", "ther", "")],
        &[("a", "weather", "")],
    );
    assert_calls(
        &[(Some(0), "a", "wea", ""), (Some(0), "", "weather", "")],
        &[("a", "weather", "")],
    );
}

#[test]
fn indices_that_count_from_one_or_skip_make_no_calls_of_their_own() {
    assert_calls(
        &[(Some(7), "b", "two", "{}"), (Some(1), "a", "one", "{}")],
        &[("a", "one", "{}"), ("b", "two", "{}")],
    );
}

#[test]
fn a_fragment_that_says_nothing_is_no_call() {
    assert_calls(&[(None, "", "", ""), (Some(3), "", "", " ")], &[]);
}

#[test]
fn brackets_in_strings_close_nothing() {
    assert_calls(
        &[
            (Some(0), "a", "one", r#"{"x":"}\""#),
            (Some(0), "", "one", r#"}"}"#),
        ],
        &[("a", "one", r#"{"x":"}\"}"}"#)],
    );
}

// X5
#[test]
fn a_hundred_thousand_calls_take_linear_time() {
    let mut calls = Calls::default();
    for index in 0..100_000 {
        let id = format!("c{index}");
        calls.take(Fragment {
            id: &id,
            name: "one",
            arguments: "{}",
            ..Fragment::default()
        });
    }
    assert_eq!(calls.finish().len(), 100_000);
}
