//! Anthropic, Gemini and Responses over real sockets: what only a whole request and a whole
//! connection show. What a stream means is in the golden files.

use serde_json::{Value, json};
use youyou_agent::{
    ChatEvent, ChatRequest, Completion, ProviderError, ProviderErrorKind, StopReason, Usage,
};
use youyou_agent_providers::Endpoint;

use super::support::{Reply, Server, ask, bare, provider, user};
use super::{BOTH, Pace};

const ALL: [Wire; 3] = [Wire::Anthropic, Wire::Gemini, Wire::Responses];

#[derive(Debug, Clone, Copy)]
enum Wire {
    Anthropic,
    Gemini,
    Responses,
}

impl Wire {
    fn endpoint(self, address: &str) -> Endpoint {
        let endpoint = match self {
            Self::Anthropic => Endpoint::anthropic_compatible("own", address),
            Self::Gemini => Endpoint::gemini_compatible("own", address),
            Self::Responses => Endpoint::openai_responses("own", address),
        };
        endpoint.key("secret-key")
    }

    /// A whole answer that says "Hello", as a body in place of a stream.
    fn whole(self) -> Value {
        match self {
            Self::Anthropic => json!({
                "type": "message", "role": "assistant", "stop_reason": "end_turn",
                "content": [{ "type": "text", "text": "Hello" }],
                "usage": { "input_tokens": 3, "output_tokens": 4 },
            }),
            Self::Gemini => json!({
                "candidates": [{ "content": { "parts": [{ "text": "Hello" }] }, "finishReason": "STOP" }],
                "usageMetadata": { "promptTokenCount": 3, "candidatesTokenCount": 4 },
            }),
            Self::Responses => json!({
                "object": "response", "status": "completed", "error": null,
                "output": [{ "type": "message", "id": "m", "role": "assistant", "status": "completed",
                    "content": [{ "type": "output_text", "text": "Hello" }] }],
                "usage": { "input_tokens": 3, "output_tokens": 4 },
            }),
        }
    }

    /// An error as this vendor writes it.
    fn refusal(self) -> (&'static str, Value) {
        match self {
            Self::Anthropic => (
                "401 Unauthorized",
                json!({ "type": "error", "error": { "type": "authentication_error",
                    "message": "invalid x-api-key secret-key" } }),
            ),
            Self::Gemini => (
                "400 Bad Request",
                json!([{ "error": { "code": 400, "status": "INVALID_ARGUMENT",
                    "message": "API key not valid. Please pass a valid API key.",
                    "details": [{ "reason": "API_KEY_INVALID" }] } }]),
            ),
            Self::Responses => (
                "401 Unauthorized",
                json!({ "error": { "code": "invalid_api_key",
                    "message": "Incorrect API key provided: secret-key" } }),
            ),
        }
    }
}

async fn read(
    wire: Wire,
    pace: Pace,
    replies: Vec<Reply>,
) -> (Vec<ChatEvent>, Result<(), ProviderError>, Server) {
    let server = Server::start(pace, replies);
    let provider = provider(wire.endpoint(&server.address));
    let (events, ended) = ask(&provider, ChatRequest::new("m", [user("Hi")])).await;
    (bare(events), ended, server)
}

fn hello() -> Vec<ChatEvent> {
    let end = Completion::new()
        .with_usage(Usage::new(3, 4))
        .with_stop_reason(StopReason::EndTurn);
    vec![ChatEvent::text("Hello"), ChatEvent::Done(end)]
}

#[tokio::test]
async fn a_whole_answer_in_place_of_a_stream_is_the_answer() {
    for wire in ALL {
        for pace in BOTH {
            let reply = Reply::json("200 OK", &wire.whole().to_string());
            let (events, ended, _) = read(wire, pace, vec![reply]).await;
            assert_eq!((events, ended), (hello(), Ok(())), "{wire:?}");
        }
    }
}

#[tokio::test]
async fn a_refused_key_is_told_without_the_key_whatever_the_status() {
    for wire in ALL {
        let (status, body) = wire.refusal();
        for status in [status, "200 OK"] {
            for pace in BOTH {
                let reply = Reply::json(status, &body.to_string());
                let (events, ended, _) = read(wire, pace, vec![reply]).await;
                let error = ended.unwrap_err();
                assert_eq!(error.kind, ProviderErrorKind::Auth, "{wire:?} {status}");
                assert!(!format!("{error:?}").contains("secret-key"), "{wire:?}");
                assert_eq!(events, []);
            }
        }
    }
}

#[tokio::test]
async fn the_key_goes_where_each_vendor_looks_for_it_and_nowhere_else() {
    for (wire, path, header) in [
        (Wire::Anthropic, "/messages", "x-api-key: secret-key"),
        (
            Wire::Gemini,
            "/models/m:streamGenerateContent?alt=sse",
            "x-goog-api-key: secret-key",
        ),
        (
            Wire::Responses,
            "/responses",
            "authorization: bearer secret-key",
        ),
    ] {
        let reply = Reply::json("200 OK", &wire.whole().to_string());
        let (.., server) = read(wire, Pace::Whole, vec![reply]).await;
        let requests = server.requests();
        let asked = requests
            .iter()
            .find(|request| request.head.starts_with("post"))
            .unwrap();
        assert!(asked.path.ends_with(path), "{}", asked.path);
        assert!(asked.head.contains(header), "{}", asked.head);
        assert_eq!(asked.head.matches("secret-key").count(), 1);
        assert!(!asked.body.to_string().contains("secret-key"));
    }
}

fn named(frames: &[Value]) -> String {
    // Line ends of the other kind, a mark at the start and comments in between change nothing.
    let frames = frames.iter().map(|frame| {
        let name = frame["type"].as_str().unwrap_or_default();
        format!(": ping\r\nevent: {name}\r\ndata:{frame}\r\n\r\n")
    });
    format!("\u{feff}{}", frames.collect::<String>())
}

fn paused(text: &str, reason: &str) -> Reply {
    Reply::stream(named(&[
        json!({ "type": "message_start", "message": { "content": [], "usage": { "input_tokens": 10, "output_tokens": 1 } } }),
        json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } }),
        json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": text } }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": reason }, "usage": { "output_tokens": 2 } }),
        json!({ "type": "message_stop" }),
    ]))
}

#[tokio::test]
async fn a_paused_answer_goes_on_by_itself_in_one_answer() {
    for pace in BOTH {
        let replies = vec![
            paused("你好", "pause_turn"),
            paused(", wor", "pause_turn"),
            paused("ld", "end_turn"),
        ];
        let (events, ended, server) = read(Wire::Anthropic, pace, replies).await;
        let end = Completion::new()
            .with_usage(Usage::new(30, 6))
            .with_stop_reason(StopReason::EndTurn);
        assert_eq!(ended, Ok(()));
        assert_eq!(
            events,
            [ChatEvent::text("你好, world"), ChatEvent::Done(end)]
        );
        let asked: Vec<Value> = server
            .requests()
            .iter()
            .filter(|request| request.head.starts_with("post"))
            .map(|request| request.body["messages"].clone())
            .collect();
        let text = |text: &str| json!({ "type": "text", "text": text });
        let first = json!({ "role": "user", "content": [text("Hi")] });
        assert_eq!(
            asked,
            [
                json!([first]),
                json!([first, { "role": "assistant", "content": [text("你好")] }]),
                json!([first, { "role": "assistant", "content": [text("你好"), text(", wor")] }]),
            ]
        );
    }
}

#[tokio::test]
async fn a_continuation_that_fails_keeps_what_was_said() {
    for pace in BOTH {
        let busy = json!({ "type": "error", "error": { "type": "overloaded_error", "message": "Overloaded" } });
        let replies = vec![
            paused("half", "pause_turn"),
            Reply::json("529 Overloaded", &busy.to_string()),
        ];
        let (events, ended, _) = read(Wire::Anthropic, pace, replies).await;
        assert_eq!(events, [ChatEvent::text("half")]);
        assert_eq!(ended.unwrap_err().kind, ProviderErrorKind::Overloaded);
    }
}

#[tokio::test]
async fn a_connection_that_stays_open_after_the_end_delays_nothing() {
    let answers = [
        (Wire::Anthropic, paused("Hello", "end_turn")),
        (
            Wire::Responses,
            Reply::stream(named(&[
                json!({ "type": "response.completed", "response": Wire::Responses.whole() }),
            ])),
        ),
    ];
    for (wire, reply) in answers {
        let (events, ended, _) = read(wire, Pace::Whole, vec![reply.hanging()]).await;
        assert_eq!(ended, Ok(()));
        assert_eq!(events.first(), Some(&ChatEvent::text("Hello")));
        assert!(matches!(events.last(), Some(ChatEvent::Done(_))));
    }
}
