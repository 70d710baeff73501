use super::*;

fn page(label: &str) -> Page {
    Page {
        webview: label.into(),
        window: label.into(),
    }
}

fn named(label: &str, id: &str, content: &str) -> Option<Named> {
    Named::new(&page(label), Some(id.into()), &content).unwrap()
}

async fn numbered(requests: &Requests<u32>, id: &str, number: u32) -> u32 {
    let asked = named("main", id, "the same");
    let answer = requests.once(asked, || async { Ok(number) }, |_| {}).await;
    answer.unwrap()
}

async fn refused(requests: &Requests<u32>, id: &str) {
    let asked = named("main", id, "the same");
    let no = || async { Err(AgentError::internal("no")) };
    assert!(requests.once(asked, no, |_| {}).await.is_err());
}

#[tokio::test]
async fn a_repeated_request_gets_the_first_answer() {
    let requests = Requests::default();
    assert_eq!(numbered(&requests, "a", 1).await, 1);
    assert_eq!(numbered(&requests, "b", 2).await, 2);
    assert_eq!(numbered(&requests, "a", 3).await, 1);
}

#[tokio::test]
async fn a_repeat_waits_for_the_first_call_that_is_under_way() {
    let requests = Requests::default();
    let (open, gate) = tokio::sync::oneshot::channel::<()>();
    let first = requests.once(
        named("main", "a", "the same"),
        || async {
            gate.await.unwrap();
            Ok(1)
        },
        |_| {},
    );
    let second = numbered(&requests, "a", 2);
    let open = async {
        tokio::task::yield_now().await;
        open.send(()).unwrap();
    };
    let (first, second, ()) = tokio::join!(first, second, open);
    assert_eq!((first, second), (Ok(1), 1));
}

#[tokio::test]
async fn a_failure_is_not_remembered() {
    let requests = Requests::default();
    refused(&requests, "a").await;
    assert_eq!(numbered(&requests, "a", 2).await, 2);
}

#[tokio::test]
async fn only_the_newest_64_are_remembered() {
    let requests = Requests::default();
    for number in 0..=64 {
        let id = number.to_string();
        assert_eq!(numbered(&requests, &id, number).await, number);
    }
    assert_eq!(numbered(&requests, "1", 1_000).await, 1);
    assert_eq!(numbered(&requests, "0", 1_000).await, 1_000);
}

// C34
#[tokio::test]
async fn neither_refusals_nor_early_cancels_push_an_answer_out() {
    let requests = Requests::default();
    assert_eq!(numbered(&requests, "running", 1).await, 1);
    for number in 0..200 {
        refused(&requests, &format!("refused {number}")).await;
        let ahead = requests.cancel(&page("main"), format!("ahead {number}"));
        assert_eq!(ahead, Ok(Cancelled::Ahead));
    }
    assert_eq!(numbered(&requests, "running", 2).await, 1);
}

// C34
#[tokio::test]
async fn a_request_that_is_under_way_is_not_pushed_out_by_later_answers() {
    let requests = Requests::default();
    let (open, gate) = tokio::sync::oneshot::channel::<()>();
    let first = requests.once(
        named("main", "slow", "the same"),
        || async {
            gate.await.unwrap();
            Ok(1)
        },
        |_| {},
    );
    let others = async {
        for number in 0..100 {
            numbered(&requests, &number.to_string(), number).await;
        }
        open.send(()).unwrap();
    };
    let (first, ()) = tokio::join!(first, others);
    assert_eq!(first, Ok(1));
    assert_eq!(numbered(&requests, "slow", 2).await, 1);
}

#[tokio::test]
async fn a_cancel_that_overtakes_its_request_takes_effect_once() {
    let requests = Requests::default();
    assert_eq!(
        requests.cancel(&page("main"), "a".into()),
        Ok(Cancelled::Ahead)
    );
    let mut cancelled = Vec::new();
    for _ in 0..2 {
        let asked = named("main", "a", "the same");
        let cancel = |turn: &u32| cancelled.push(*turn);
        assert_eq!(
            requests.once(asked, || async { Ok(7) }, cancel).await,
            Ok(7)
        );
    }
    assert_eq!(cancelled, [7]);
    let late = requests.cancel(&page("main"), "a".into());
    assert_eq!(late, Ok(Cancelled::Answered(7)));
}

// X7
#[tokio::test]
async fn an_id_belongs_to_its_page_and_to_one_content() {
    let requests = Requests::default();
    let ask = |label, content, number| {
        let asked = named(label, "1", content);
        requests.once(asked, move || async move { Ok(number) }, |_| {})
    };
    assert_eq!(ask("a", "secret", 1).await, Ok(1));
    assert_eq!(ask("b", "other words", 2).await, Ok(2));
    let reused = ask("a", "other words", 3).await.unwrap_err();
    assert_eq!(reused.code, crate::ErrorCode::InvalidInput);
    assert_eq!(ask("a", "secret", 4).await, Ok(1));
    assert_eq!(ask("b", "other words", 5).await, Ok(2));
    let strange = requests.cancel(&page("c"), "1".into());
    assert_eq!(strange, Ok(Cancelled::Ahead), "not that of another page");
}

// X7
#[test]
fn an_id_has_at_most_128_characters() {
    let page = page("main");
    let fits = "频".repeat(128);
    assert!(Named::new(&page, Some(fits.clone()), &()).is_ok());
    let refused = Named::new(&page, Some(fits + "x"), &()).unwrap_err();
    assert_eq!(refused.code, crate::ErrorCode::InvalidInput);
}

#[tokio::test]
async fn the_requests_of_a_window_that_is_gone_are_forgotten() {
    let requests = Requests::default();
    assert_eq!(numbered(&requests, "1", 1).await, 1);
    requests.forget_window("main");
    assert_eq!(numbered(&requests, "1", 2).await, 2);
}
