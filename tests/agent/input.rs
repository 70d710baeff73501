//! Area H: text, images and files from the user (chapter 8).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use youyou_agent::testing::{done, text, text_model};
use youyou_agent::{
    AgentConfig, ContentBlock, ErrorCode, ErrorOrigin, Message, ResumeOptions, SendOptions,
    SessionEventKind,
};

use crate::look::{assert_completed, everything};
use crate::rig::{Rig, config, provider, provider_with_window};

/// A whole PNG of one pixel.
pub(crate) const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

const MIB_20: usize = 20 * 1024 * 1024;

fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

fn png_of(size: usize) -> Vec<u8> {
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".to_vec();
    bytes.resize(size, 0);
    bytes
}

fn jpeg() -> Vec<u8> {
    let mut bytes = b"\xff\xd8\xff\xe0\0\x10JFIF\0".to_vec();
    bytes.resize(200, 7);
    bytes
}

fn gif() -> Vec<u8> {
    b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff!\xf9\x04".to_vec()
}

fn webp() -> Vec<u8> {
    let mut bytes = b"RIFF\x24\0\0\0WEBPVP8 ".to_vec();
    bytes.resize(60, 3);
    bytes
}

async fn seeing() -> Rig {
    Rig::new(provider().always(|_| [text("I see"), done()])).await
}

/// The images of the newest user message of the first request: type and data.
fn images(rig: &Rig) -> Vec<(String, String)> {
    let request = rig.request(1);
    let Some(Message::User(user)) = request.messages.last().map(AsRef::as_ref) else {
        panic!("a user message is last")
    };
    let image = |block: &ContentBlock| match block {
        ContentBlock::Image { media_type, data } => Some((media_type.clone(), data.to_string())),
        _ => None,
    };
    user.content.iter().filter_map(image).collect()
}

async fn assert_sent(declared: &str, data: &str, media_type: &str, pure: &str) {
    let rig = seeing().await;
    let input = vec![
        ContentBlock::text("what is it?"),
        ContentBlock::image(declared, data),
    ];
    assert_completed(&rig.send(input).await, "I see");
    assert_eq!(images(&rig), [(media_type.to_owned(), pure.to_owned())]);
    let stored = rig.stored().into_iter().find_map(|event| match event.kind {
        SessionEventKind::UserMessage { content, .. } => Some(content),
        _ => None,
    });
    assert_eq!(
        stored.unwrap(),
        [
            ContentBlock::text("what is it?"),
            ContentBlock::image(media_type, pure)
        ]
    );
    rig.epilogue().await;
}

async fn assert_refused(input: Vec<ContentBlock>) -> String {
    let rig = seeing().await;
    let error = rig.session.send(input).unwrap_err();
    assert_eq!(
        (error.code, error.origin),
        (ErrorCode::InvalidInput, ErrorOrigin::Agent)
    );
    assert!(!error.retryable);
    assert_eq!((rig.stored().len(), rig.provider.request_count()), (0, 0));
    rig.epilogue().await;
    error.message
}

async fn assert_no_image(declared: &str, data: &str) {
    let image = ContentBlock::image(declared, data);
    let message = assert_refused(vec![ContentBlock::text("look"), image]).await;
    for format in ["PNG", "JPEG", "GIF", "WebP"] {
        assert!(message.contains(format), "{message}");
    }
    assert!(message.len() < 400, "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_data_url_prefix_is_removed_once() {
    // H1
    for prefix in [
        "data:image/png;base64,",
        "data:image/png;name=x;base64,",
        "data:image/jpeg;base64,",
        "DATA:IMAGE/PNG;BASE64,",
        "data:;base64,",
        "data:application/octet-stream;charset=utf-8;base64, ",
    ] {
        assert_sent("image/png", &format!("{prefix}{PNG}"), "image/png", PNG).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_data_url_that_is_none_is_refused() {
    // H1
    for data in [
        "data:,abc".to_owned(),
        "data:".to_owned(),
        format!("data:image/png;base64{PNG}"),
        format!("data:image/png,{PNG}"),
        format!("data:base64,{PNG}"),
        format!("data:image/png;base64,data:image/png;base64,{PNG}"),
    ] {
        assert_no_image("image/png", &data).await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_bytes_decide_the_type() {
    // H2
    for declared in [
        "image/png",
        "IMAGE/PNG; q=1",
        "",
        "image/svg+xml",
        "text/plain",
        "图片",
    ] {
        for (bytes, media_type) in [
            (STANDARD.decode(PNG).unwrap(), "image/png"),
            (jpeg(), "image/jpeg"),
            (gif(), "image/gif"),
            (webp(), "image/webp"),
        ] {
            let data = base64(&bytes);
            assert_sent(declared, &data, media_type, &data).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_none_of_the_four_formats_is_refused() {
    // H3
    let heic = b"\0\0\0\x18ftypheic\0\0\0\0mif1heic".to_vec();
    let avif = b"\0\0\0\x1cftypavif\0\0\0\0avifmif1".to_vec();
    let mut wave = b"RIFF\x24\0\0\0WAVEfmt ".to_vec();
    wave.resize(60, 0);
    let mut late = b"RIFF\x24\0\0\0\0WEBPVP8 ".to_vec();
    late.resize(60, 0);
    for bytes in [
        b"<svg xmlns=\"http://www.w3.org/2000/svg\"/>".to_vec(),
        b"<?xml version=\"1.0\"?><svg/>".to_vec(),
        heic,
        avif,
        b"BM\x46\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0".to_vec(),
        b"%PDF-1.7 and more of it, much more".to_vec(),
        b"II*\0\x08\0\0\0 a tiff".to_vec(),
        wave,
        late,
        b"GIF88a\x01\0\x01\0\x80\0\0\0\0\0\xff".to_vec(),
        b"just some text, no picture at all".to_vec(),
        vec![0; 100],
    ] {
        assert_no_image("image/png", &base64(&bytes)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_empty_or_cut_picture_is_refused() {
    // H5
    for data in [
        String::new(),
        "   ".to_owned(),
        "\n\t".to_owned(),
        "=".to_owned(),
        "====".to_owned(),
        "data:image/png;base64,".to_owned(),
        "data:image/png;base64,  ".to_owned(),
        base64(b"abc"),
        base64(b"\x89PNG\r\n\x1a\n"),
        base64(b"\xff\xd8\xff"),
        base64(b"GIF89a"),
        base64(b"RIFF\x24\0\0\0WEBP"),
    ] {
        assert_no_image("image/png", &data).await;
    }
}

#[tokio::test(start_paused = true)]
async fn white_space_is_removed_and_missing_padding_completed() {
    let wrapped: String = PNG
        .as_bytes()
        .chunks(20)
        .map(|line| format!("{}\r\n", std::str::from_utf8(line).unwrap()))
        .collect();
    let unpadded = PNG.trim_end_matches('=');
    for data in [
        wrapped.as_str(),
        unpadded,
        &format!("{unpadded}="),
        &format!(" {PNG}\n"),
        &format!("data:image/png;base64,{wrapped}"),
    ] {
        assert_sent("image/png", data, "image/png", PNG).await;
    }
}

#[tokio::test(start_paused = true)]
async fn other_alphabets_and_broken_base64_are_refused() {
    let unpadded = PNG.trim_end_matches('=');
    // Of length 1 modulo 4.
    let cut = &unpadded[..unpadded.len() - unpadded.len() % 4 + 1];
    let url_safe = base64(&[0xff; 60]).replace('/', "_");
    let jpeg = base64(&jpeg());
    for data in [
        cut.to_owned(),
        url_safe,
        format!("-_{}", &jpeg[2..]),
        format!("{}*{}", &PNG[..20], &PNG[21..]),
        format!("{}={}", &PNG[..20], &PNG[21..]),
        format!("{}频{}", &PNG[..20], &PNG[20..]),
        // Trailing bits that are not zero: "Zh==" for "Zg==".
        format!("{}Zh==", &jpeg[..jpeg.len() - jpeg.len() % 4 - 4]),
        format!("{}%3D%3D", unpadded),
    ] {
        assert_no_image("image/png", &data).await;
    }
}

#[tokio::test(start_paused = true)]
async fn twenty_mebibytes_are_allowed_and_not_a_byte_more() {
    let rig = seeing().await;
    let over = ContentBlock::image("", base64(&png_of(MIB_20 + 1)));
    let refused = rig.session.send(vec![over]).unwrap_err();
    assert_eq!(refused.code, ErrorCode::InvalidInput);
    assert!(refused.message.contains("20 MiB"), "{}", refused.message);
    assert_eq!((rig.stored().len(), rig.provider.request_count()), (0, 0));
    let data = base64(&png_of(MIB_20));
    let input = vec![ContentBlock::image("", data.as_str())];
    assert_completed(&rig.send(input).await, "I see");
    assert!(images(&rig)[0].1 == data);
    // Each, not together.
    let small = ContentBlock::image("", PNG);
    let both = vec![ContentBlock::image("", data), small];
    assert_completed(&rig.send(both).await, "I see");
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn blank_text_beside_other_content_is_dropped() {
    // H7
    let image = || ContentBlock::image("image/png", PNG);
    for input in [
        vec![image()],
        vec![ContentBlock::text(""), image()],
        vec![image(), ContentBlock::text("  ")],
        vec![
            ContentBlock::text("\n"),
            image(),
            ContentBlock::text("\u{3000}"),
        ],
    ] {
        let rig = seeing().await;
        assert_completed(&rig.send(input).await, "I see");
        let request = rig.request(1);
        let Some(Message::User(user)) = request.messages.last().map(AsRef::as_ref) else {
            panic!("a user message is last")
        };
        assert_eq!(user.content, [image()]);
        assert_eq!(rig.session.info().title.as_deref(), Some("Image"));
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_with_nothing_in_it_is_refused() {
    // H7
    for input in [
        vec![],
        vec![ContentBlock::text("")],
        vec![ContentBlock::text(" \t"), ContentBlock::text("\n")],
        vec![ContentBlock::file("", "")],
        vec![ContentBlock::file(" ", "\n"), ContentBlock::text("")],
    ] {
        let message = assert_refused(input).await;
        assert!(message.contains("empty"), "{message}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_bad_block_refuses_the_message_and_nothing_is_lost() {
    // H3
    let input = vec![
        ContentBlock::text("compare"),
        ContentBlock::image("image/png", PNG),
        ContentBlock::image("image/png", base64(b"not an image, really not one")),
    ];
    assert_refused(input).await;
}

#[tokio::test(start_paused = true)]
async fn a_message_holds_several_blocks_in_order() {
    let blocks = vec![
        ContentBlock::text("first"),
        ContentBlock::image("image/png", PNG),
        ContentBlock::file("a.txt", "alpha"),
        ContentBlock::file("empty.txt", ""),
        ContentBlock::text("last"),
    ];
    let rig = seeing().await;
    assert_completed(&rig.send(blocks.clone()).await, "I see");
    let request = rig.request(1);
    let Some(Message::User(user)) = request.messages.last().map(AsRef::as_ref) else {
        panic!("a user message is last")
    };
    assert_eq!(user.content, blocks);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_model_without_vision_refuses_a_new_picture_and_says_so() {
    // H8
    let provider = provider()
        .model(text_model("blind"))
        .always(|_| [text("ok"), done()]);
    let rig = Rig::new(provider).await;
    let options = SendOptions {
        model_id: Some("blind".into()),
        ..SendOptions::default()
    };
    let input = vec![
        ContentBlock::text("see"),
        ContentBlock::image("image/png", PNG),
    ];
    let error = rig.session.send_with(input.clone(), options).unwrap_err();
    assert_eq!(error.code, ErrorCode::ContentNotSupported);
    assert!(error.message.contains("\"blind\"") && error.message.contains("images"));
    assert_eq!((rig.stored().len(), rig.provider.request_count()), (0, 0));
    // The refusal did not change the session's model.
    assert_completed(&rig.send(input).await, "ok");
    assert_eq!(&*rig.request(1).model_id, "m1");
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn stored_pictures_are_placeholders_for_a_blind_model_and_come_back_for_a_seeing_one() {
    // H8
    let provider = provider()
        .model(text_model("blind"))
        .always(|_| [text("ok"), done()]);
    let mut rig = Rig::new(provider).await;
    let input = vec![
        ContentBlock::text("see"),
        ContentBlock::image("image/png", PNG),
    ];
    rig.send(input.clone()).await;
    let stored = rig.stored();
    for (model, seen) in [("blind", false), ("m1", true)] {
        let id = rig.session.id().to_owned();
        rig.session.close().await.unwrap();
        let options = ResumeOptions {
            model_id: Some(model.into()),
            ..ResumeOptions::default()
        };
        rig.session = rig.agent.resume_session(&id, options).await.unwrap();
        rig.send("and?").await;
        let request = rig.provider.last_request().unwrap();
        let Message::User(user) = &**request.messages.iter().next().unwrap() else {
            panic!("a user message is first")
        };
        if seen {
            assert_eq!(user.content, input);
        } else {
            let [
                ContentBlock::Text { text },
                ContentBlock::Text { text: placeholder },
            ] = &user.content[..]
            else {
                panic!("{user:?}")
            };
            assert_eq!(text, "see");
            assert!(
                placeholder.contains("image") && placeholder.len() < 120,
                "{placeholder}"
            );
        }
    }
    assert_eq!(rig.stored()[..stored.len()], stored[..]);
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_summary_is_asked_for_without_pictures() {
    // H10
    let provider = provider_with_window(20_000)
        .model(text_model("summary"))
        .always(|_| [text("ok"), done()]);
    let config = AgentConfig {
        compact_model: Some("summary".into()),
        compact_keep_recent: 3,
        ..config()
    };
    let rig = Rig::with(provider, config, |builder| builder).await;
    for n in 0..5 {
        let image = ContentBlock::image("image/png", PNG);
        rig.send(vec![ContentBlock::text(format!("picture {n}")), image])
            .await;
    }
    let asked = rig.provider.request_count();
    rig.session.compact().await.unwrap();
    let summary = rig.request(asked + 1);
    assert_eq!(&*summary.model_id, "summary");
    assert!(!everything(&summary).contains(PNG));
    rig.send("and the last one?").await;
    let request = rig.provider.last_request().unwrap();
    assert_eq!(&*request.model_id, "m1");
    assert!(
        everything(&request).contains(PNG),
        "the kept tail still has its pictures"
    );
    rig.epilogue().await;
}
