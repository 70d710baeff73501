//! Whether a server works: the "Test" of a settings dialog.

use youyou_agent::{
    ChatRequest, ContentBlock, Message, ModelInfo, ModelProvider, ProviderError, ProviderErrorKind,
    UserMessage, UserOrigin,
};

use crate::catalog::Listing;
use crate::failure;
use crate::server::{Server, Shared};

impl Server {
    /// Asks for the list of models, and where that is no proof of a key, for what is one.
    ///
    /// # Errors
    /// Why the server does not work, in words for a person.
    pub(crate) async fn check(
        self: &std::sync::Arc<Self>,
    ) -> Result<Vec<ModelInfo>, ProviderError> {
        let has_list = self.endpoint().vendor.listing != Listing::None;
        let listed = if has_list {
            Some(self.look().await)
        } else {
            None
        };
        let models = Shared(self.clone()).models();
        match listed {
            Some(Ok(listed)) => {
                self.prove_key().await?;
                Ok(if self.endpoint().is_listed() {
                    listed
                } else {
                    models
                })
            }
            // Servers that only chat have no list, and their models were named.
            Some(Err(error))
                if error.kind != ProviderErrorKind::InvalidRequest || models.is_empty() =>
            {
                Err(error)
            }
            Some(Err(_)) | None => self.try_out(models).await,
        }
    }

    /// Asks a model for one word.
    async fn try_out(&self, models: Vec<ModelInfo>) -> Result<Vec<ModelInfo>, ProviderError> {
        let Some(model) = models.first() else {
            return Err(failure::no_models(&self.target("", false)));
        };
        let hello = Message::User(UserMessage {
            content: vec![ContentBlock::text("Hello")],
            origin: UserOrigin::Input,
        });
        let mut request = ChatRequest::new(model.id.as_str(), [hello]);
        request.max_tokens = Some(16);
        let begun = tokio::time::timeout(crate::line::PATIENCE, self.begin(&request)).await;
        match begun {
            Ok(Ok(_)) => Ok(models),
            Ok(Err((scrubber, error))) => Err(scrubber.error(error)),
            Err(_) => Err(failure::silent(&self.target(&model.id, false))),
        }
    }
}
