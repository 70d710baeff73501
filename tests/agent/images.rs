//! Chapter 5.2: images that a model cannot see, or refused.

use youyou_agent::testing::{done, error, text, text_model};
use youyou_agent::{ContentBlock, ProviderErrorKind, SendOptions};

use crate::compaction_limits::picture;
use crate::rig::{MODEL, Rig, provider};
use crate::said::{said, stored_lines};

#[tokio::test(start_paused = true)]
async fn an_error_that_images_may_have_caused_marks_them_refused() {
    for (kind, refuses) in [
        (ProviderErrorKind::InvalidRequest, true),
        (ProviderErrorKind::UnsupportedContent, true),
        (ProviderErrorKind::Other, true),
        (ProviderErrorKind::Auth, false),
        (ProviderErrorKind::Quota, false),
    ] {
        let provider = provider()
            .reply([error(kind.clone(), "no")])
            .always(|_| [text("ok"), done()]);
        let mut rig = Rig::new(provider).await;
        rig.send(vec![ContentBlock::text("look"), picture()]).await;
        let marks = stored_lines(&rig.stored());
        let marked = marks.iter().any(|line| line == "images refused: [1]");
        assert_eq!(marked, refuses, "{kind:?}: {marks:?}");
        let shown = if refuses {
            "user: look [An image is left out here: the model refused it.]"
        } else {
            "user: look <image/png>"
        };
        rig.send("without").await;
        assert_eq!(said(&rig.request(2))[0], shown, "{kind:?}");
        rig.reopen().await;
        rig.send("resumed").await;
        assert_eq!(said(&rig.request(3))[0], shown, "{kind:?}");
        rig.epilogue().await;
    }
}

#[tokio::test(start_paused = true)]
async fn images_of_older_messages_are_not_blamed() {
    let provider = provider()
        .reply([text("a cat"), done()])
        .reply([error(ProviderErrorKind::InvalidRequest, "no")]);
    let rig = Rig::new(provider).await;
    rig.send(vec![picture()]).await;
    rig.send("and now?").await;
    let stored = stored_lines(&rig.stored());
    assert!(
        !stored.iter().any(|line| line.starts_with("images refused")),
        "{stored:?}"
    );
    rig.epilogue().await;
}

#[tokio::test(start_paused = true)]
async fn a_model_without_vision_is_shown_placeholders_and_the_history_keeps_the_images() {
    // H8
    let provider = provider()
        .model(text_model("blind"))
        .always(|_| [text("ok"), done()]);
    let rig = Rig::new(provider).await;
    let with = |model: &str| SendOptions {
        model_id: Some(model.to_owned()),
        ..SendOptions::default()
    };
    rig.send(vec![ContentBlock::text("look"), picture()]).await;
    rig.session
        .send_with("blind", with("blind"))
        .unwrap()
        .outcome()
        .await;
    rig.session
        .send_with("seeing", with(MODEL))
        .unwrap()
        .outcome()
        .await;
    let first_lines: Vec<String> = (1..=3).map(|n| said(&rig.request(n))[0].clone()).collect();
    assert_eq!(
        first_lines,
        [
            "user: look <image/png>",
            "user: look [An image is left out here: this model cannot see images.]",
            "user: look <image/png>",
        ]
    );
    assert!(stored_lines(&rig.stored()).contains(&"user: look <image/png>".to_owned()));
    rig.epilogue().await;
}
