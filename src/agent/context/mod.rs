//! The context of a session: what the model is sent, kept ready at all times (chapter 5.2).
//!
//! Events go in as they are stored. The messages of the next request, their estimated size
//! and the way back to the events for a compaction are there without any walk.

mod ends;
pub(crate) mod estimate;
pub(crate) mod normalize;
pub(crate) mod transcript;

use std::collections::HashSet;
use std::sync::Arc;

use super::message::{AssistantPart, ContentBlock, Messages};
use super::notes::Notes;
use super::provider::{PromptBlock, ToolSpec, Usage};
use super::storage::path::Path;
use super::storage::{CompactionRecord, SessionEvent, SessionEventKind, SessionMetadata};
use estimate::{QUARTERS, Quarters};
use normalize::Normalizer;
pub(crate) use normalize::{Images, ModelProfile, SkillPrompt};

/// What the model is sent, and what it was made of.
#[derive(Debug)]
pub(crate) struct Context {
    notes: Arc<Notes>,
    /// Everything that is part of the context, in order of index.
    events: Vec<Arc<SessionEvent>>,
    /// The newest compaction; everything before its boundary but the pinned message is gone.
    compaction: Option<CompactionRecord>,
    refused_images: HashSet<u64>,
    /// Ids of all calls of the session, also of those that are gone.
    call_ids: HashSet<Arc<str>>,
    skill: Option<SkillPrompt>,
    folded: Normalizer,
    /// Cost of system prompt and tool schemas.
    fixed: Quarters,
    calibration: Option<Calibration>,
}

/// A message of the user, as it is stored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UserMessageRef<'a> {
    pub(crate) index: u64,
    pub(crate) content: &'a [ContentBlock],
    /// Name of the skill it calls.
    pub(crate) skill: Option<&'a str>,
}

/// A provider's own count, in place of the estimate of what it covered.
#[derive(Debug, Clone, Copy)]
struct Calibration {
    reported: Quarters,
    /// What the estimate was for the same.
    covered: Quarters,
}

impl Context {
    pub(crate) fn new(notes: &Arc<Notes>, profile: ModelProfile) -> Self {
        Self {
            notes: Arc::clone(notes),
            events: Vec::new(),
            compaction: None,
            refused_images: HashSet::new(),
            call_ids: HashSet::new(),
            skill: None,
            folded: Normalizer::new(notes, profile, None, HashSet::new(), None),
            fixed: 0,
            calibration: None,
        }
    }

    /// The context of a stored session: everything on its visible path after the newest
    /// compaction there. Refused images and ids of calls count on every branch.
    pub(crate) fn restore(
        notes: &Arc<Notes>,
        profile: ModelProfile,
        mut events: Vec<SessionEvent>,
        path: &Path,
    ) -> Self {
        let mut this = Self::new(notes, profile);
        for event in &events {
            this.note_calls(event);
            match &event.kind {
                SessionEventKind::Metadata {
                    metadata: SessionMetadata::Compacted(record),
                } if path.contains(event.index) => {
                    // Whatever a record says, it cannot have removed what came after it.
                    this.compaction = Some(CompactionRecord {
                        boundary: record.boundary.min(event.index),
                        ..record.clone()
                    });
                }
                SessionEventKind::Metadata {
                    metadata: SessionMetadata::ImagesRefused { indices },
                } => this.refused_images.extend(indices),
                _ => {}
            }
        }
        events.retain(|event| path.contains(event.index));
        this.events = events.into_iter().map(Arc::new).collect();
        this.drop_compacted();
        this.refold();
        this
    }

    /// Takes an event that was stored.
    pub(crate) fn push(&mut self, event: &Arc<SessionEvent>) {
        self.note_calls(event);
        self.folded.push(event);
        self.events.push(Arc::clone(event));
    }

    fn note_calls(&mut self, event: &SessionEvent) {
        if let SessionEventKind::AssistantMessage { parts, .. } = &event.kind {
            self.call_ids
                .extend(parts.iter().filter_map(|part| match part {
                    AssistantPart::ToolCall { call_id, .. } => Some(Arc::clone(call_id)),
                    AssistantPart::Text { .. } | AssistantPart::Reasoning { .. } => None,
                }));
        }
    }

    /// The messages of the next request.
    pub(crate) fn messages(&mut self) -> Messages {
        self.folded.close_round();
        self.folded.messages().clone()
    }

    /// How many messages of the conversation the next request has; what stands for those
    /// that are gone does not count.
    pub(crate) fn message_count(&self) -> usize {
        self.folded.message_count()
    }

    /// Estimated size of the next request, in tokens.
    pub(crate) fn tokens(&self) -> u64 {
        let estimated = self.estimated();
        let quarters = match self.calibration {
            // What came, went or changed since then counts by the estimate.
            Some(known) => known
                .reported
                .saturating_add(estimated)
                .saturating_sub(known.covered),
            None => estimated,
        };
        quarters / QUARTERS
    }

    /// Size of the part that compaction cannot change, in tokens.
    pub(crate) fn fixed_tokens(&self) -> u64 {
        self.fixed / QUARTERS
    }

    /// The same by the estimate alone, in tokens: what compactions are compared by.
    pub(crate) fn estimated_tokens(&self) -> u64 {
        self.estimated() / QUARTERS
    }

    fn estimated(&self) -> Quarters {
        self.fixed + self.folded.cost()
    }

    /// Says what else is part of every request.
    pub(crate) fn set_fixed(&mut self, system: &[PromptBlock], tools: &[ToolSpec]) {
        self.fixed = estimate::fixed(system, tools);
    }

    /// The estimate of a request that is about to be sent, to be compared with the
    /// provider's count later.
    pub(crate) fn request_cost(&self) -> Quarters {
        self.estimated()
    }

    /// Takes the provider's count of a request. A count below half of the estimate is not
    /// believed: some servers count only what they did not have in their cache.
    pub(crate) fn calibrate(&mut self, request_cost: Quarters, usage: &Usage) {
        let Some(input) = usage.input_tokens else {
            return;
        };
        let reported = input.saturating_mul(QUARTERS);
        if reported >= request_cost / 2 {
            self.calibration = Some(Calibration {
                reported,
                covered: request_cost,
            });
        }
    }

    /// Whether a call id is taken.
    pub(crate) fn knows_call(&self, id: &str) -> bool {
        self.call_ids.contains(id)
    }

    pub(crate) fn profile(&self) -> &ModelProfile {
        self.folded.profile()
    }

    /// Goes on with another model.
    pub(crate) fn set_profile(&mut self, profile: ModelProfile) {
        if *self.folded.profile() != profile {
            self.refold_with(profile);
        }
    }

    /// Puts a skill's prompt before a user message, or takes it out again.
    pub(crate) fn set_skill(&mut self, skill: Option<SkillPrompt>) {
        if self.skill == skill {
            return;
        }
        // A message that is still to come needs no new fold of what is there.
        let ahead = skill.as_ref().is_some_and(|skill| {
            self.events
                .last()
                .is_none_or(|last| last.index < skill.before)
        });
        self.skill.clone_from(&skill);
        if ahead {
            self.folded.expect_skill(skill);
        } else {
            self.refold();
        }
    }

    /// The newest user message.
    pub(crate) fn newest_user(&self) -> Option<UserMessageRef<'_>> {
        self.events
            .iter()
            .rev()
            .find_map(|event| match &event.kind {
                SessionEventKind::UserMessage { content, skill, .. } => Some(UserMessageRef {
                    index: event.index,
                    content,
                    skill: skill.as_deref(),
                }),
                _ => None,
            })
    }

    /// Whether the newest user message holds images that the model is shown.
    pub(crate) fn newest_user_shows_images(&self) -> Option<u64> {
        let UserMessageRef { index, content, .. } = self.newest_user()?;
        let has_images = content.iter().any(is_image);
        (has_images
            && self.profile().images == Images::Shown
            && !self.refused_images.contains(&index))
        .then_some(index)
    }

    /// Whether the model is shown the image of any message.
    pub(crate) fn shows_images(&self) -> bool {
        self.profile().images == Images::Shown
            && self.events.iter().any(|event| match &event.kind {
                SessionEventKind::UserMessage { content, .. } => {
                    !self.refused_images.contains(&event.index) && content.iter().any(is_image)
                }
                _ => false,
            })
    }

    /// Makes the images of a message placeholders from now on.
    pub(crate) fn refuse_images(&mut self, index: u64) {
        if self.refused_images.insert(index) {
            self.refold();
        }
    }

    /// What the messages were made of, in order of index.
    pub(crate) fn events(&self) -> &[Arc<SessionEvent>] {
        &self.events
    }

    pub(crate) fn notes(&self) -> &Arc<Notes> {
        &self.notes
    }

    pub(crate) fn refused_images(&self) -> &HashSet<u64> {
        &self.refused_images
    }

    pub(crate) fn skill(&self) -> Option<&SkillPrompt> {
        self.skill.as_ref()
    }

    pub(crate) fn compaction(&self) -> Option<&CompactionRecord> {
        self.compaction.as_ref()
    }

    /// Replaces what a compaction removes.
    pub(crate) fn compact(&mut self, record: CompactionRecord) {
        self.compaction = Some(record);
        self.calibration = None;
        self.drop_compacted();
        self.refold();
    }

    /// What the context would cost with this compaction, in tokens.
    pub(crate) fn tokens_with(&self, record: &CompactionRecord) -> u64 {
        let mut folded = Normalizer::new(
            &self.notes,
            self.profile().clone(),
            Some(record),
            self.refused_images.clone(),
            self.skill.clone(),
        );
        let mut keeps = record.keeper();
        for event in self.events.iter().filter(|event| keeps(event)) {
            folded.push(event);
        }
        folded.close_round();
        (self.fixed + folded.cost()) / QUARTERS
    }

    fn drop_compacted(&mut self) {
        if let Some(record) = &self.compaction {
            let mut keeps = record.keeper();
            self.events.retain(|event| keeps(event));
        }
    }

    fn refold(&mut self) {
        let profile = self.profile().clone();
        self.refold_with(profile);
    }

    fn refold_with(&mut self, profile: ModelProfile) {
        let mut folded = Normalizer::new(
            &self.notes,
            profile,
            self.compaction.as_ref(),
            self.refused_images.clone(),
            self.skill.clone(),
        );
        for event in &self.events {
            folded.push(event);
        }
        self.folded = folded;
        self.calibration = None;
    }
}

fn is_image(block: &ContentBlock) -> bool {
    matches!(block, ContentBlock::Image { .. })
}

impl CompactionRecord {
    /// Tells of one event after another whether it is still part of the context: what is
    /// after the boundary, and the pinned message with its note.
    fn keeper(&self) -> impl FnMut(&SessionEvent) -> bool {
        let mut in_pinned = false;
        move |event| {
            let with_pinned = match &event.kind {
                SessionEventKind::Metadata {
                    metadata:
                        SessionMetadata::TurnInterrupted { .. }
                        | SessionMetadata::TurnEndedSilently { .. },
                } => in_pinned,
                SessionEventKind::Metadata { .. } => false,
                _ => {
                    in_pinned = self.pinned == Some(event.index);
                    in_pinned
                }
            };
            with_pinned || event.index >= self.boundary
        }
    }
}
