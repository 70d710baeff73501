//! The rules for images (chapter 8): four formats, told by their bytes, at most 20 MiB.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::ContentBlock;
use crate::agent::error::AgentError;

/// Largest image in decoded bytes.
const MAX_BYTES: usize = 20 * 1024 * 1024;

/// Checks an image and returns it with pure base64 and the media type its bytes tell.
pub(super) fn checked(declared: &str, data: Arc<str>) -> Result<ContentBlock, AgentError> {
    let payload = without_data_url(&data)?;
    let base64 = canonical(payload, &data)?;
    let bytes_len = decoded_len(&base64);
    if bytes_len > MAX_BYTES {
        return Err(refused(&format!(
            "it has {bytes_len} bytes, the limit is {MAX_BYTES} bytes (20 MiB)"
        )));
    }
    let bytes = STANDARD
        .decode(base64.as_bytes())
        .map_err(|error| refused(&format!("its data is not valid base64 ({error})")))?;
    let Some(media_type) = sniffed(&bytes) else {
        let declared = if declared.trim().is_empty() {
            String::new()
        } else {
            format!(", although declared as \"{}\"", shortened(declared))
        };
        return Err(refused(&format!("its bytes are no such image{declared}")));
    };
    Ok(ContentBlock::Image {
        media_type: media_type.to_owned(),
        data: base64,
    })
}

fn refused(reason: &str) -> AgentError {
    AgentError::invalid_input(format!(
        "the image cannot be used: {reason}; allowed are PNG, JPEG, GIF and WebP, at most 20 MiB each"
    ))
}

fn shortened(text: &str) -> String {
    text.chars().take(60).collect()
}

/// Removes a data-URL prefix once.
fn without_data_url(data: &str) -> Result<&str, AgentError> {
    let trimmed = data.trim();
    let is_data_url = trimmed
        .get(..5)
        .is_some_and(|prefix| prefix.eq_ignore_ascii_case("data:"));
    if !is_data_url {
        return Ok(trimmed);
    }
    let Some((head, payload)) = trimmed.split_once(',') else {
        return Err(refused("its data URL has no comma"));
    };
    let is_base64 = head
        .rsplit(';')
        .next()
        .is_some_and(|mark| mark.trim().eq_ignore_ascii_case("base64"));
    if is_base64 && head.contains(';') {
        Ok(payload)
    } else {
        Err(refused("its data URL is not marked as base64"))
    }
}

/// Removes white space and completes the padding; shares the input where nothing changes.
fn canonical(payload: &str, whole: &Arc<str>) -> Result<Arc<str>, AgentError> {
    let has_blanks = payload.bytes().any(|byte| byte.is_ascii_whitespace());
    let length = if has_blanks {
        payload
            .bytes()
            .filter(|byte| !byte.is_ascii_whitespace())
            .count()
    } else {
        payload.len()
    };
    let unpadded = length - trailing_padding(payload);
    if unpadded == 0 {
        return Err(refused("it is empty"));
    }
    if unpadded % 4 == 1 {
        return Err(refused("its base64 data is cut"));
    }
    // Measured before any copy is made: a page could send far more than the limit.
    if unpadded / 4 * 3 > MAX_BYTES + 2 {
        return Err(refused(&format!(
            "it has about {} bytes, the limit is {MAX_BYTES} bytes (20 MiB)",
            unpadded / 4 * 3
        )));
    }
    let padding = (4 - unpadded % 4) % 4;
    if !has_blanks && length == unpadded + padding {
        return Ok(if payload.len() == whole.len() {
            Arc::clone(whole)
        } else {
            payload.into()
        });
    }
    let mut clean = String::with_capacity(unpadded + padding);
    clean.extend(
        payload
            .chars()
            .filter(|c| !c.is_ascii_whitespace())
            .take(unpadded),
    );
    clean.extend(std::iter::repeat_n('=', padding));
    Ok(clean.into())
}

fn trailing_padding(payload: &str) -> usize {
    payload
        .bytes()
        .rev()
        .filter(|byte| !byte.is_ascii_whitespace())
        .take_while(|byte| *byte == b'=')
        .count()
}

fn decoded_len(base64: &str) -> usize {
    base64.len() / 4 * 3 - trailing_padding(base64).min(2)
}

/// The media type by magic bytes; a signature without the header behind it is no image.
fn sniffed(bytes: &[u8]) -> Option<&'static str> {
    const PNG_HEADER: usize = 8 + 25; // signature and IHDR chunk
    const JPEG_HEADER: usize = 4;
    const GIF_HEADER: usize = 13;
    const WEBP_HEADER: usize = 20;
    if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        return (bytes.len() >= PNG_HEADER).then_some("image/png");
    }
    if bytes.starts_with(b"\xff\xd8\xff") {
        return (bytes.len() >= JPEG_HEADER).then_some("image/jpeg");
    }
    if bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a") {
        return (bytes.len() >= GIF_HEADER).then_some("image/gif");
    }
    if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        return (bytes.len() >= WEBP_HEADER).then_some("image/webp");
    }
    None
}
