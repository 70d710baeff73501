//! A model server made of bytes: it answers each request with what the test wrote down, so
//! that every way in which real servers misbehave can be played.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// What the server does, in order, once it has read a request.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// Sends bytes in one piece.
    Send(Vec<u8>),
    /// Keeps the connection open until the client closes it.
    Hold,
    /// Breaks the connection with a reset.
    Reset,
}

/// The running server. It ends with the test's runtime.
pub(crate) struct Server {
    /// The base address, ending with a slash.
    pub(crate) url: String,
    requests: Arc<Mutex<Vec<String>>>,
    closed: Arc<Notify>,
}

impl Server {
    /// Answers the first request with the first script, and so on.
    pub(crate) async fn start(scripts: Vec<Vec<Step>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1/", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let closed = Arc::new(Notify::new());
        let (seen, gone) = (Arc::clone(&requests), Arc::clone(&closed));
        tokio::spawn(async move {
            for script in scripts {
                let (mut socket, _) = listener.accept().await.unwrap();
                let request = read_request(&mut socket).await;
                seen.lock().unwrap().push(request);
                play(socket, script, &gone).await;
            }
        });
        Self {
            url,
            requests,
            closed,
        }
    }

    /// The requests so far, head and body.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    /// The body of a request as JSON.
    pub(crate) fn body(&self, index: usize) -> serde_json::Value {
        let requests = self.requests();
        let (_, body) = requests[index].split_once("\r\n\r\n").unwrap();
        serde_json::from_str(body).unwrap()
    }

    /// Waits until the client has closed a connection that was on hold.
    pub(crate) async fn until_closed(&self) {
        tokio::time::timeout(Duration::from_secs(5), self.closed.notified())
            .await
            .expect("the client keeps the connection open");
    }
}

async fn read_request(socket: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| {
                    line.to_lowercase()
                        .strip_prefix("content-length:")?
                        .trim()
                        .parse()
                        .ok()
                })
                .unwrap_or(0);
            if body.len() >= length {
                return text;
            }
        }
        let read = socket.read(&mut buffer).await.unwrap();
        assert!(read > 0, "the request was cut");
        bytes.extend_from_slice(&buffer[..read]);
    }
}

async fn play(mut socket: TcpStream, script: Vec<Step>, closed: &Notify) {
    socket.set_nodelay(true).unwrap();
    for step in script {
        match step {
            // The client may have left already; that is for the test to judge.
            Step::Send(bytes) => drop(socket.write_all(&bytes).await),
            Step::Hold => {
                let mut rest = [0; 64];
                while socket.read(&mut rest).await.is_ok_and(|read| read > 0) {}
                closed.notify_one();
            }
            Step::Reset => {
                socket.set_zero_linger().unwrap();
                return;
            }
        }
    }
    drop(socket.shutdown().await);
}

/// A 200 answer that streams; its end is the end of the connection.
pub(crate) fn stream(body: impl AsRef<[u8]>) -> Step {
    let mut bytes =
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n".to_vec();
    bytes.extend_from_slice(body.as_ref());
    Step::Send(bytes)
}

/// One step per piece, in chunked encoding.
pub(crate) fn pieces(pieces: &[impl AsRef<[u8]>]) -> Vec<Step> {
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let chunk = |piece: &[u8]| {
        let length = format!("{:x}\r\n", piece.len());
        [length.as_bytes(), piece, b"\r\n"].concat()
    };
    std::iter::once(head.as_bytes().to_vec())
        .chain(pieces.iter().map(|piece| chunk(piece.as_ref())))
        .chain([b"0\r\n\r\n".to_vec()])
        .map(Step::Send)
        .collect()
}

/// One step per byte.
pub(crate) fn byte_by_byte(body: &str) -> Vec<Step> {
    let bytes: Vec<[u8; 1]> = body.bytes().map(|byte| [byte]).collect();
    pieces(&bytes)
}

/// An answer with a status other than 200.
pub(crate) fn refusal(status: &str, headers: &str, body: &str) -> Vec<Step> {
    let kind = if body.starts_with('<') {
        "text/html"
    } else {
        "application/json"
    };
    let length = body.len();
    vec![Step::Send(
        format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n{body}")
            .into_bytes(),
    )]
}

/// Data frames, each followed by a blank line.
pub(crate) fn frames(frames: &[&str]) -> String {
    frames
        .iter()
        .map(|frame| format!("data: {frame}\n\n"))
        .collect()
}

/// An OpenAI frame with this delta.
pub(crate) fn delta(delta: &str) -> String {
    format!(r#"data: {{"choices":[{{"index":0,"delta":{delta},"finish_reason":null}}]}}"#) + "\n\n"
}

/// An OpenAI frame with text.
pub(crate) fn text(text: &str) -> String {
    delta(&serde_json::json!({ "content": text }).to_string())
}

/// An OpenAI frame that says why the model stopped.
pub(crate) fn finish(reason: &str) -> String {
    frames(&[&format!(
        r#"{{"choices":[{{"index":0,"delta":{{}},"finish_reason":"{reason}"}}]}}"#
    )])
}

/// OpenAI's end marker.
pub(crate) const DONE: &str = "data: [DONE]\n\n";
