//! The frames of a server-sent event stream.
//!
//! `sse-stream` does the framing; here is what it leaves to its user: a last event without a
//! blank line behind it, events without data, a limit.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures_core::Stream;
use futures_util::{StreamExt, stream};
use sse_stream::{Error, Sse, SseByteStream};

/// So many bytes may be read for one frame.
const LIMIT: usize = 64 << 20;

type Chunks = Pin<Box<dyn Stream<Item = Result<Bytes, Cut>> + Send>>;

/// The frames of one answer.
pub(crate) struct Frames {
    inner: SseByteStream<Chunks>,
    /// Bytes since the last frame.
    pending: Arc<AtomicUsize>,
}

/// Why there are no more frames.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The connection broke.
    Broken(reqwest::Error),
    /// A frame is larger than any answer.
    Flood,
    /// A frame is not UTF-8.
    Damaged,
}

/// Why there are no more bytes.
#[derive(Debug)]
enum Cut {
    Broken(reqwest::Error),
    Flood,
}

impl std::fmt::Display for Cut {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("the stream was cut")
    }
}

impl std::error::Error for Cut {}

impl Frames {
    /// Reads frames out of bytes.
    pub(crate) fn new<S>(bytes: S) -> Self
    where
        S: Stream<Item = reqwest::Result<Bytes>> + Send + 'static,
    {
        Self::with_limit(bytes, LIMIT)
    }

    fn with_limit<S>(bytes: S, limit: usize) -> Self
    where
        S: Stream<Item = reqwest::Result<Bytes>> + Send + 'static,
    {
        let pending = Arc::new(AtomicUsize::new(0));
        let counted = {
            let pending = pending.clone();
            bytes.map(move |chunk| {
                let chunk = chunk.map_err(Cut::Broken)?;
                let before = pending.fetch_add(chunk.len(), Ordering::Relaxed);
                if before > limit {
                    Err(Cut::Flood)
                } else {
                    Ok(chunk)
                }
            })
        };
        // Some servers end their last event with the end of the data.
        let end = stream::iter([Ok(Bytes::from_static(b"\n\n"))]);
        let chunks: Chunks = Box::pin(counted.chain(end));
        Self {
            inner: SseByteStream::new(chunks),
            pending,
        }
    }

    /// The next frame that has data, or the end.
    pub(crate) async fn next(&mut self) -> Option<Result<(Option<String>, String), Fault>> {
        loop {
            let found = self.inner.next().await?;
            self.pending.store(0, Ordering::Relaxed);
            match found {
                // Comments, ids and names alone keep a connection alive.
                Ok(Sse { data: None, .. }) => {}
                Ok(Sse {
                    data: Some(data), ..
                }) if data.trim().is_empty() => {}
                Ok(Sse {
                    event,
                    data: Some(data),
                    ..
                }) => return Some(Ok((event, data))),
                Err(error) => return Some(Err(fault(error))),
            }
        }
    }
}

fn fault(error: Error) -> Fault {
    match error {
        Error::Body(cut) => match cut.downcast::<Cut>() {
            Ok(cut) => match *cut {
                Cut::Broken(error) => Fault::Broken(error),
                Cut::Flood => Fault::Flood,
            },
            Err(_) => Fault::Damaged,
        },
        _ => Fault::Damaged,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block_on<F: Future>(future: F) -> F::Output {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime.block_on(future)
    }

    fn frames(text: &[u8], size: usize) -> Vec<(Option<String>, String)> {
        let chunks: Vec<_> = text
            .chunks(size)
            .map(|chunk| Ok(Bytes::copy_from_slice(chunk)))
            .collect();
        let mut frames = Frames::new(stream::iter(chunks));
        block_on(async {
            let mut all = Vec::new();
            while let Some(frame) = frames.next().await {
                all.push(frame.unwrap());
            }
            all
        })
    }

    #[test]
    fn keep_alives_line_ends_and_a_missing_last_line_do_no_harm_at_any_cut() {
        let text = "\u{feff}: ping\r\n\r\n:\n\nevent: ping\n\nid: 7\n\ndata:{\"a\":\r\ndata: \"你好🦀\"}\r\n\r\n\
                    event: x\rdata: 2\r\rdata\n\ndata: \n\nevent: end\ndata: last";
        let expected = vec![
            (None, "{\"a\":\n\"你好🦀\"}".to_owned()),
            (Some("x".to_owned()), "2".to_owned()),
            (Some("end".to_owned()), "last".to_owned()),
        ];
        for size in [1, 2, 3, 7, text.len()] {
            assert_eq!(frames(text.as_bytes(), size), expected, "{size}");
        }
    }

    #[test]
    fn a_stream_of_nothing_has_no_frames() {
        for nothing in ["", "\n\n\n", ": only a comment", "\u{feff}"] {
            assert_eq!(frames(nothing.as_bytes(), 1), []);
        }
    }

    #[test]
    fn a_frame_without_end_is_given_up() {
        let chunk = Bytes::from(vec![b'x'; 1 << 10]);
        let endless = stream::iter((0..80).map(move |_| Ok(chunk.clone())));
        let mut frames = Frames::with_limit(endless, 64 << 10);
        let first = block_on(frames.next());
        assert!(matches!(first, Some(Err(Fault::Flood))), "{first:?}");
    }
}
