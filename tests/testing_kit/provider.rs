//! The scripted provider does what its script says.

use futures_util::{FutureExt as _, StreamExt as _, TryStreamExt as _};
use tokio_util::sync::CancellationToken;
use youyou_agent::testing::{
    Gate, ScriptedProvider, call, done, error, gate, panic_in_chat, panic_with, reasoning_with,
    refuse, request, text, text_model, until_cancelled, user, vision_model, wait, yield_once,
};
use youyou_agent::{
    ChatEvent, ChatRequest, ChatStream, Message, ModelProvider as _, ProviderError,
    ProviderErrorKind,
};

fn asked(words: &str) -> ChatRequest {
    request("m1", [user(words)])
}

async fn chat(provider: &ScriptedProvider) -> Result<ChatStream, ProviderError> {
    provider
        .chat(asked("hello"), CancellationToken::new())
        .await
}

async fn answer(provider: &ScriptedProvider) -> Vec<ChatEvent> {
    chat(provider).await.unwrap().try_collect().await.unwrap()
}

fn scripted() -> ScriptedProvider {
    ScriptedProvider::new("scripted").model(text_model("m1"))
}

#[tokio::test]
async fn scripts_are_used_in_order_one_per_request() {
    let provider = scripted()
        .reply([
            reasoning_with("hm", "sig"),
            text("one"),
            call("c1", "t", "{}"),
            done(),
        ])
        .reply([text("two"), done()]);
    assert_eq!(answer(&provider).await.len(), 4);
    assert_eq!(
        answer(&provider).await,
        [ChatEvent::text("two"), ChatEvent::done()]
    );
    assert_eq!((provider.request_count(), provider.scripts_left()), (2, 0));
    assert_eq!((provider.dropped(), provider.streams_open()), (0, 0));
}

#[tokio::test]
async fn a_request_beyond_the_scripts_is_told_what_is_missing() {
    let provider = scripted().reply([done()]);
    answer(&provider).await;
    let refusal = chat(&provider).await.err().unwrap();
    assert_eq!(refusal.kind, ProviderErrorKind::InvalidRequest);
    assert!(
        refusal
            .message
            .contains("\"scripted\" has no script for request 2"),
        "{refusal}"
    );
    assert!(refusal.message.contains("reply(..)"), "{refusal}");
}

#[tokio::test]
async fn interceptor_then_scripts_then_fallback_answer() {
    let last_words = |request: &ChatRequest| request.messages.last().map(|message| message.text());
    let provider = scripted()
        .intercept(move |request| {
            let wanted = last_words(request).is_some_and(|words| words == "summary please");
            wanted.then(|| [text("summary"), done()])
        })
        .reply([text("scripted"), done()])
        .always(move |request| [text(last_words(request).unwrap_or_default()), done()]);
    let mut said = Vec::new();
    for words in ["summary please", "a", "b", "summary please"] {
        let stream = provider
            .chat(asked(words), CancellationToken::new())
            .await
            .unwrap();
        let events: Vec<ChatEvent> = stream.try_collect().await.unwrap();
        said.extend(events.first().cloned());
    }
    let expected = ["summary", "scripted", "b", "summary"].map(ChatEvent::text);
    assert_eq!(said, expected);
    provider.queue([done()]);
    provider.forget_scripts();
    assert!(chat(&provider).await.is_err());
}

#[tokio::test]
async fn requests_and_fired_tokens_are_remembered() {
    let provider = scripted().always(|_| [done()]);
    let token = CancellationToken::new();
    for (words, token) in [("a", token.clone()), ("b", CancellationToken::new())] {
        provider
            .chat(asked(words), token)
            .await
            .unwrap()
            .collect::<Vec<_>>()
            .await;
    }
    assert_eq!(provider.cancelled(), 0);
    token.cancel();
    assert_eq!(provider.cancelled(), 1);
    let words: Vec<String> = provider
        .requests()
        .iter()
        .flat_map(|request| request.messages.iter().map(|message| message.text()))
        .collect();
    assert_eq!(words, ["a", "b"]);
    assert_eq!(provider.last_request().unwrap().messages.len(), 1);
}

#[tokio::test]
async fn without_recording_requests_are_only_counted() {
    let provider = scripted().recording(false).always(|_| [done()]);
    answer(&provider).await;
    assert_eq!(
        (provider.request_count(), provider.requests().len()),
        (1, 0)
    );
}

#[tokio::test]
async fn waiting_ends_only_by_dropping_and_the_drop_is_seen() {
    let provider = scripted().reply([text("a"), wait(), text("never")]);
    let token = CancellationToken::new();
    let mut stream = provider.chat(asked("hello"), token.clone()).await.unwrap();
    assert_eq!(stream.next().await, Some(Ok(ChatEvent::text("a"))));
    token.cancel();
    assert_eq!(stream.next().now_or_never(), None);
    assert_eq!((provider.dropped(), provider.streams_open()), (0, 1));
    drop(stream);
    provider.lost(1).await;
    assert_eq!((provider.dropped(), provider.streams_open()), (1, 0));
}

#[tokio::test]
async fn a_stream_dropped_after_its_end_is_not_lost() {
    let provider = scripted()
        .reply([done(), wait()])
        .reply([error(ProviderErrorKind::Auth, "no key")]);
    for _ in 0..2 {
        assert!(chat(&provider).await.unwrap().next().await.is_some());
    }
    assert_eq!((provider.dropped(), provider.streams_open()), (0, 0));
}

#[tokio::test]
async fn a_silence_ends_with_its_gate_its_token_or_one_poll() {
    let door = Gate::closed();
    let provider = scripted()
        .reply([gate(&door), text("a"), done()])
        .reply([
            until_cancelled(),
            error(ProviderErrorKind::Other, "stopped"),
        ])
        .reply([yield_once(), text("a"), done()]);

    let mut gated = chat(&provider).await.unwrap();
    assert_eq!(gated.next().now_or_never(), None);
    door.arrived(1).await;
    door.open();
    assert_eq!(gated.next().await, Some(Ok(ChatEvent::text("a"))));

    let token = CancellationToken::new();
    let mut cancelled = provider.chat(asked("hello"), token.clone()).await.unwrap();
    assert_eq!(cancelled.next().now_or_never(), None);
    token.cancel();
    assert!(matches!(cancelled.next().await, Some(Err(_))));

    let mut yielding = chat(&provider).await.unwrap();
    assert_eq!(yielding.next().now_or_never(), None);
    assert_eq!(
        yielding.next().now_or_never(),
        Some(Some(Ok(ChatEvent::text("a"))))
    );
}

#[tokio::test]
async fn panics_and_refusals_come_where_the_script_says() {
    let provider = scripted()
        .reply([text("a"), panic_with("in the stream")])
        .reply([panic_in_chat("in chat")])
        .reply([refuse(ProviderError::new(
            ProviderErrorKind::Quota,
            "no credit",
        ))])
        .reply([text("half")]);

    let mut stream = chat(&provider).await.unwrap();
    assert_eq!(stream.next().await, Some(Ok(ChatEvent::text("a"))));
    let poll = std::panic::AssertUnwindSafe(stream.next())
        .catch_unwind()
        .await;
    assert_eq!(
        poll.unwrap_err().downcast_ref::<String>().unwrap(),
        "in the stream"
    );
    drop(stream);

    let call = std::panic::AssertUnwindSafe(chat(&provider))
        .catch_unwind()
        .await;
    assert_eq!(
        call.err().unwrap().downcast_ref::<String>().unwrap(),
        "in chat"
    );

    assert_eq!(
        chat(&provider).await.err().unwrap().kind,
        ProviderErrorKind::Quota
    );
    assert_eq!(answer(&provider).await, [ChatEvent::text("half")]);
    assert_eq!(
        (
            provider.request_count(),
            provider.streams_open(),
            provider.dropped()
        ),
        (4, 0, 0)
    );
}

#[tokio::test]
async fn an_invalid_transcript_is_refused_and_uses_up_no_script() {
    let provider = scripted().reply([text("ok"), done()]);
    let invalid = request("m1", [Message::System("note".into())]);
    let refusal = provider
        .chat(invalid.clone(), CancellationToken::new())
        .await
        .err()
        .unwrap();
    assert_eq!(refusal.kind, ProviderErrorKind::InvalidRequest);
    assert!(
        refusal.message.contains("first message is a system note"),
        "{refusal}"
    );
    let violations = provider.violations();
    assert_eq!(violations.len(), 1);
    assert!(
        violations
            .iter()
            .all(|violation| violation.starts_with("request 1: "))
    );
    assert_eq!(answer(&provider).await.len(), 2);

    let lenient = scripted().validating(false).reply([done()]);
    assert!(
        lenient
            .chat(invalid, CancellationToken::new())
            .await
            .is_ok()
    );
    assert_eq!(lenient.violations(), Vec::<String>::new());
}

#[tokio::test]
async fn models_come_and_go_while_it_runs() {
    let provider = scripted();
    let kept = provider.clone();
    provider.add_model(vision_model("m2"));
    let ids = |provider: &ScriptedProvider| -> Vec<String> {
        provider
            .models()
            .into_iter()
            .map(|model| model.id)
            .collect()
    };
    assert_eq!(ids(&kept), ["m1", "m2"]);
    assert!(provider.remove_model("m1"));
    assert!(!provider.remove_model("m1"));
    assert_eq!(ids(&kept), ["m2"]);
}

#[tokio::test]
async fn an_answer_by_hand_goes_on_as_the_hand_says() {
    let provider = scripted();
    let hand = provider.manual();
    hand.text("early");
    let mut stream = chat(&provider).await.unwrap();
    assert_eq!(hand.started().await.unwrap().messages.len(), 1);
    assert_eq!(stream.next().await, Some(Ok(ChatEvent::text("early"))));
    assert_eq!(stream.next().now_or_never(), None);

    hand.hold();
    hand.push(ChatEvent::reasoning("kept back"));
    assert_eq!(stream.next().now_or_never(), None);
    hand.release();
    assert_eq!(
        stream.next().await,
        Some(Ok(ChatEvent::reasoning("kept back")))
    );

    hand.done();
    assert_eq!(stream.next().await, Some(Ok(ChatEvent::done())));
    assert_eq!(stream.next().await, None);
}

#[tokio::test]
async fn an_answer_by_hand_fails_breaks_off_and_sees_that_it_was_dropped() {
    let provider = scripted();
    let (failing, ending, dropped) = (provider.manual(), provider.manual(), provider.manual());

    let mut stream = chat(&provider).await.unwrap();
    failing.fail(ProviderError::new(ProviderErrorKind::Overloaded, "busy"));
    assert!(matches!(stream.next().await, Some(Err(_))));

    let mut stream = chat(&provider).await.unwrap();
    ending.text("half");
    ending.end();
    assert_eq!(stream.next().await, Some(Ok(ChatEvent::text("half"))));
    assert_eq!(stream.next().await, None);

    let stream = chat(&provider).await.unwrap();
    assert!(!dropped.is_dropped());
    drop(stream);
    dropped.dropped().await;
    assert!(dropped.is_dropped() && !dropped.text("too late"));
    assert_eq!(provider.dropped(), 1);
}
