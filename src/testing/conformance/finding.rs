//! Finding sessions by id and title, literally.

use super::rule::{Rule, ids};
use crate::SessionStorage;

async fn check<S: SessionStorage>(storage: &S, rule: Rule, cases: &[(&str, &[&str])]) {
    for (query, expected) in cases {
        let found = rule.got(storage.find(query).await);
        rule.same((*query, ids(&found)), (*query, expected.to_vec()));
    }
}

pub(super) async fn precedence<S: SessionStorage>(storage: S) {
    let rule = Rule(
        "find: the exact id, else all exact titles, else all id prefixes, else all titles with it",
    );
    let sessions = [
        ("abc", "plain"),
        ("abc1", "about abc1 and more"),
        ("abc2", "ab"),
        ("x1", "plain"),
        ("x2", "abc"),
        ("x3", "has plain in it"),
        ("x4", "x"),
    ];
    for (time, (id, title)) in (1..).zip(sessions) {
        rule.write_session(&storage, id, title, time).await;
    }
    let cases: [(&str, &[&str]); 8] = [
        ("abc", &["abc"]),
        ("abc1", &["abc1"]),
        // A title wins over prefixes, though it is itself the prefix of ids.
        ("ab", &["abc2"]),
        ("plain", &["x1", "abc"]),
        ("a", &["abc2", "abc1", "abc"]),
        ("x", &["x4"]),
        ("lain", &["x3", "x1", "abc"]),
        ("nothing like it", &[]),
    ];
    check(&storage, rule, &cases).await;

    let rule = Rule("a blank query finds nothing");
    check(
        &storage,
        rule,
        &[("", &[]), (" ", &[]), ("\t\n", &[]), ("\u{3000}", &[])],
    )
    .await;
}

pub(super) async fn literal<S: SessionStorage>(storage: S) {
    let rule = Rule("find compares literally: no patterns, no folding of case");
    let titles = [
        ("1", "100% sure"),
        ("2", "snake_case"),
        ("3", "snakeXcase"),
        ("4", r"back\slash"),
        ("5", "it's \"quoted\""),
        ("6", "star * and [set]"),
        ("7", "Straße"),
        ("8", "修复登录问题"),
        ("9", "UPPER"),
        ("a\u{0}b", "nul \u{0} byte"),
        ("p_q", "underscore id"),
        ("pxq", "no underscore id"),
    ];
    for (time, (id, title)) in (1..).zip(titles) {
        rule.write_session(&storage, id, title, time).await;
    }
    let cases: [(&str, &[&str]); 20] = [
        ("%", &["1"]),
        ("0% s", &["1"]),
        ("snake_case", &["2"]),
        ("_case", &["2"]),
        (r"\", &["4"]),
        (r"back\s", &["4"]),
        ("'", &["5"]),
        ("\"quoted", &["5"]),
        ("*", &["6"]),
        ("[set]", &["6"]),
        ("STRASSE", &[]),
        ("straße", &[]),
        ("登录", &["8"]),
        ("upper", &[]),
        ("PPE", &["9"]),
        ("a\u{0}", &["a\u{0}b"]),
        ("l \u{0} b", &["a\u{0}b"]),
        ("a\u{0}c", &[]),
        ("p_", &["p_q"]),
        ("P", &["9"]),
    ];
    check(&storage, rule, &cases).await;
}

pub(super) async fn order<S: SessionStorage>(storage: S) {
    let rule = Rule("all matches are found, in the order of the list");
    for n in 0..60_u64 {
        rule.write_session(&storage, &format!("id-{n:02}"), "the same title", n / 2)
            .await;
    }
    let listed = rule.listed(&storage, 100).await;
    rule.same(
        rule.got(storage.find("the same title").await),
        listed.clone(),
    );
    rule.same(rule.got(storage.find("id-").await), listed.clone());
    rule.same(rule.got(storage.find("same").await), listed);
}
