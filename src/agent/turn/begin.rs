//! How a turn begins: TurnStart hooks, the first write, and what every request has in front.

use std::sync::Arc;

use super::{Ending, TurnInput, TurnRun};
use crate::agent::context::SkillPrompt;
use crate::agent::error::{AgentError, ErrorOrigin};
use crate::agent::hook::{OnFault, TurnOrigin, TurnStart, TurnStartChange, registry};
use crate::agent::journal::guarded;
use crate::agent::message::{ContentBlock, UserInput};
use crate::agent::storage::{SessionEvent, SessionEventKind, SessionMetadata};
use crate::agent::text;
use crate::agent::work::NewMessage;

/// Longest title made from a user's words, in characters.
const TITLE_CHARS: usize = 40;
/// Title of a session that starts with an image alone.
const IMAGE_TITLE: &str = "Image";
/// Told where a plugin changed a message that the storage does not let this process replace.
const KEPT_AS_IT_WAS: &str = "a plugin changed the message, but the storage keeps it as another process wrote it; the change holds until the session is closed";

impl TurnRun<'_> {
    /// Hooks, then the first write.
    pub(super) async fn begin(&mut self) -> Result<(), Ending> {
        let message = match self.input.take() {
            Some(TurnInput::New(message)) => message,
            Some(TurnInput::Again) | None => match self.work.unstored.take() {
                Some(message) => message,
                None => return self.begin_again().await,
            },
        };
        self.work.unstored = Some(message.clone());
        let NewMessage { content, skill } = message;
        let changed = self.run_turn_start(&content, TurnOrigin::Send).await?;
        let content = changed.unwrap_or(content);
        let skills = &self.core().skills;
        let prompt = skill
            .as_ref()
            .and_then(|name| skills.prompt(name, &content));
        let mut kinds = self.work.pending.clone();
        let title = self.opening(&mut kinds, &content);
        kinds.push(SessionEventKind::UserMessage {
            content,
            skill,
            steering: false,
        });
        let events = self.write_first(kinds, None).await?;
        self.work.unstored = None;
        if let Some(title) = title {
            self.keep_title(title).await;
        }
        if let (Some(text), Some(last)) = (prompt, events.last()) {
            self.work.context.set_skill(Some(SkillPrompt {
                before: last.index,
                text,
            }));
        }
        for event in &events {
            self.work.push(event);
        }
        Ok(())
    }

    /// The last message once more: its skill, if it called one, counts again.
    async fn begin_again(&mut self) -> Result<(), Ending> {
        let Some(said) = self.work.context.newest_user() else {
            return Err(Ending::Failed(AgentError::invalid_input(
                "there is no message to run again; send one",
            )));
        };
        let (index, mut content) = (said.index, said.content.to_vec());
        let skill = said.skill.map(str::to_owned);
        let changed = self.run_turn_start(&content, TurnOrigin::Retry).await?;
        let mut rewritten = None;
        if let Some(changed) = changed.filter(|changed| *changed != content) {
            content = changed;
            rewritten = self.work.context.rewritten(index, content.clone());
        }
        // What cut the last turn is left behind with its answer.
        let waiting = self.work.pending.iter();
        let mut kinds: Vec<_> = waiting
            .filter(|kind| !is_interruption(kind))
            .cloned()
            .collect();
        let point = self.work.context.retry_point();
        let moves = point.filter(|point| self.work.context.goes_beyond(*point));
        if let Some(to) = moves {
            let to = Some(to);
            kinds.push(SessionEventKind::Metadata {
                metadata: SessionMetadata::HeadMoved { to },
            });
        }
        let _titled = self.opening(&mut kinds, &content);
        let events = self.write_first(kinds, rewritten.clone()).await?;
        if let Some(to) = moves {
            self.work.rewind(to);
        }
        if let Some(event) = &rewritten {
            self.work.replace(event);
        }
        for event in &events {
            self.work.push(event);
        }
        let prompt = skill.and_then(|name| self.core().skills.prompt(&name, &content));
        self.work.context.set_skill(prompt.map(|text| SkillPrompt {
            before: index,
            text,
        }));
        Ok(())
    }

    /// Writes what the turn begins with, and the stored message if a handler changed it; with
    /// them goes what waited for a message. Where that fails nothing has changed: what waited
    /// still does, and the rest is made anew.
    async fn write_first(
        &mut self,
        kinds: Vec<SessionEventKind>,
        rewritten: Option<Arc<SessionEvent>>,
    ) -> Result<Vec<Arc<SessionEvent>>, Ending> {
        let journal = Arc::clone(&self.work.journal);
        let turn_id = self.log.turn_id();
        if kinds.is_empty() && rewritten.is_none() {
            self.work.pending.clear();
            self.began = true;
            return Ok(Vec::new());
        }
        // A store that several processes share may keep what another one wrote as it is.
        let foreign = rewritten.as_ref().filter(|event| !journal.wrote(event));
        let without = foreign.map(|_| kinds.clone());
        let mut written = journal
            .write_first(turn_id, kinds, rewritten, &self.cancel)
            .await;
        if let Err(error) = &written
            && error.is_storage_conflict()
            && let Some(kinds) = without
        {
            written = journal
                .write_first(turn_id, kinds, None, &self.cancel)
                .await;
            if written.is_ok() {
                self.warn(vec![KEPT_AS_IT_WAS.to_owned()], ErrorOrigin::Storage);
            }
        }
        let events = written.map_err(Ending::Failed)?;
        self.work.pending.clear();
        self.began = true;
        self.work.stored_model = Some(Arc::clone(&self.model.id));
        Ok(events)
    }

    /// The session has its first title. One that a user gave it while that was being stored
    /// stays, in the storage too.
    async fn keep_title(&self, stored: String) {
        let title = self.session.set_first_title(&stored);
        let core = self.core();
        if title != stored
            && let Some(storage) = core.sessions.as_deref()
        {
            let id = &self.session.id;
            let renamed = guarded(core.storage_limit(), "renaming the session failed", || {
                storage.rename(id, &title)
            });
            if let Err(error) = renamed.await {
                self.warn(vec![error.message], ErrorOrigin::Storage);
            }
        }
    }

    /// What goes before the message: the session's creation, or a change of its model.
    /// Returns the title of a new session.
    fn opening(
        &self,
        kinds: &mut Vec<SessionEventKind>,
        content: &[ContentBlock],
    ) -> Option<String> {
        let model_id = Arc::clone(&self.model.id);
        if self.work.journal.is_unwritten() {
            let title = self.session.title().unwrap_or_else(|| title_of(content));
            kinds.insert(
                0,
                SessionEventKind::Metadata {
                    metadata: SessionMetadata::Created {
                        title: title.clone(),
                        model_id,
                        overrides: self.session.overrides.clone(),
                    },
                },
            );
            return Some(title);
        }
        if self.work.stored_model.as_ref() != Some(&model_id) {
            kinds.push(SessionEventKind::Metadata {
                metadata: SessionMetadata::ModelChanged { model_id },
            });
        }
        None
    }

    /// Returns the changed input, if a handler changed it.
    async fn run_turn_start(
        &mut self,
        content: &[ContentBlock],
        origin: TurnOrigin,
    ) -> Result<Option<Vec<ContentBlock>>, Ending> {
        if self.core().taps.turn_start.is_empty() {
            return Ok(None);
        }
        let mut changed = false;
        let run = registry::run(
            &self.core().taps.turn_start,
            TurnStart {
                session_id: Arc::clone(&self.session.id),
                turn_id: Arc::clone(self.log.turn_id()),
                user_input: content.into(),
                sections: Vec::new(),
                origin,
                plugin_config: Arc::default(),
                cancel: None,
            },
            self.core().hook_limit_with(&self.cancel),
            |on_fault| on_fault == OnFault::Deny,
            |payload, change: TurnStartChange| {
                if let Some(content) = change.user_input {
                    let content = UserInput { content }
                        .checked()
                        .map_err(|error| error.message)?;
                    payload.user_input = content.into();
                    changed = true;
                }
                payload.sections.extend(change.prompt_sections);
                Ok(())
            },
        )
        .await;
        self.dynamic_sections = run.payload.sections;
        self.warn(run.warnings, ErrorOrigin::Plugin);
        if let Some(stop) = run.stopped {
            self.announce_end = false;
            return Err(Ending::Failed(AgentError::hook_aborted(
                &stop.plugin_id,
                "TurnStart",
                &stop.reason,
            )));
        }
        Ok(changed.then(|| run.payload.user_input.to_vec()))
    }

    /// Memories once per session, then the system prompt of this turn.
    pub(super) async fn prepare(&mut self) {
        if self.work.memories.is_none()
            && let Some(memory) = &self.work.memory
        {
            let search = memory.search(self.core());
            let found = tokio::select! {
                biased;
                found = search => Some(found),
                () = self.cancel.cancelled() => None,
            };
            self.work.memories = found;
        }
        (self.system, self.tools) =
            self.work
                .prepare(self.session, &self.model, &self.dynamic_sections);
    }
}

fn is_interruption(kind: &SessionEventKind) -> bool {
    matches!(
        kind,
        SessionEventKind::Metadata {
            metadata: SessionMetadata::TurnInterrupted { .. }
        }
    )
}

/// A title from the user's own first words: one line, at most 40 characters.
fn title_of(content: &[ContentBlock]) -> String {
    let texts = content.iter().filter_map(|block| match block {
        ContentBlock::Text { text } => Some(text.as_str()),
        _ => None,
    });
    let names = content.iter().filter_map(|block| match block {
        ContentBlock::File { name, .. } => Some(name.as_str()),
        _ => None,
    });
    texts
        .chain(names)
        .map(|words| text::short_line(words, TITLE_CHARS))
        .find(|title| !title.is_empty())
        .unwrap_or_else(|| IMAGE_TITLE.to_owned())
}
