//! Moves the current leaf within the session tree, with a summary of the branch that is left if the
//! caller wants one.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::activity::Work;
use crate::compaction::json_of;
use crate::compaction::summary_lock::{NoSummarizer, SummaryGuard};
use crate::error::{CommandError, ErrorCode};
use crate::prompt::PromptError;
use crate::run::json_object;
use crate::state::State;
use crate::{AgentSession, Mode};
use pi_agent::AgentMessage;
use pi_agent::event::SummarySource;
use pi_ai::message::{ContentBlock, UserContent};
use pi_compaction::{BranchPart, BranchRequest, SummaryError, branch_part, summarize_branch};
use pi_extensions::api::session_api::{NavigateOptions, Navigated};
use pi_session::{Entry, SessionError, TreeNode};

/// The reason why the leaf was not moved.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NavigateError {
    #[error("Wait for the current response to finish before going elsewhere in the tree")]
    Busy,
    #[error("No model available for summarization")]
    NoModel,
    #[error("Entry {0} not found")]
    UnknownEntry(String),
    #[error(transparent)]
    Lock(#[from] PromptError),
    #[error(transparent)]
    Session(#[from] SessionError),
    #[error(transparent)]
    Summary(#[from] SummaryError),
}

impl From<NavigateError> for CommandError {
    fn from(error: NavigateError) -> Self {
        let code = match error {
            NavigateError::Busy => ErrorCode::Busy,
            NavigateError::NoModel => ErrorCode::NoModel,
            NavigateError::UnknownEntry(_) => ErrorCode::InvalidEntry,
            NavigateError::Lock(error) => return error.into(),
            NavigateError::Session(error) => return error.into(),
            NavigateError::Summary(_) => ErrorCode::SummaryFailed,
        };
        Self::new(code, error.to_string())
    }
}

/// The result of `session_before_tree` handlers.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct BeforeTreeResult {
    summary: Option<ProvidedSummary>,
    custom_instructions: Option<String>,
    replace_instructions: Option<bool>,
    label: Option<String>,
}

#[derive(Deserialize)]
struct ProvidedSummary {
    summary: String,
    details: Option<Value>,
}

/// A summary to be appended at the new leaf.
struct BranchSummary {
    text: String,
    details: Option<Value>,
    from_extension: bool,
}

/// The start and end of a move, and the branch between them.
struct Navigation {
    target: Arc<Entry>,
    old_leaf: Option<String>,
    part: BranchPart,
}

impl AgentSession {
    /// Moves to the entry `target`, or to its parent if it is a message of the user, whose text is
    /// returned to be edited and sent again.
    pub(crate) async fn navigate(
        &self,
        target: &str,
        options: NavigateOptions,
    ) -> Result<Navigated, NavigateError> {
        let cancel = self.handler_cancel.token();
        let summarizing = tokio::select! {
            free = self.acquire_for_navigation() => free?,
            () = cancel.cancelled() => return Ok(Navigated::aborted()),
        };
        let work = &summarizing.work;
        let stores = options.summarize == Some(true) || options.label.is_some();
        if stores {
            self.acquire_session_lock(&work.cancel).await?;
        }
        let Some(navigation) = self.state.lock().navigation_to(target)? else {
            return Ok(Navigated::default());
        };
        let wanted = options.summarize.unwrap_or(false);
        if wanted && self.model().is_none() {
            return Err(NavigateError::NoModel);
        }
        let Some(result) = self.emit_before_tree(&navigation, &options, work).await else {
            return Ok(Navigated::cancelled());
        };
        let label = result.label.or(options.label);
        let label = label.filter(|label| !label.is_empty());
        let provided = result.summary.filter(|_| wanted);
        let summary = match provided {
            Some(provided) => Some(BranchSummary {
                text: provided.summary,
                details: provided.details,
                from_extension: true,
            }),
            None if wanted && !navigation.part.entries.is_empty() => {
                let request = BranchRequest {
                    instructions: result.custom_instructions.or(options.custom_instructions),
                    replace_instructions: result
                        .replace_instructions
                        .or(options.replace_instructions)
                        .unwrap_or(false),
                    reserve_tokens: self.settings.values().branch_summary.reserve_tokens,
                };
                match self
                    .summarize_left_branch(&navigation, &request, work)
                    .await
                {
                    Ok(summary) => Some(summary),
                    Err(SummaryError::Cancelled) => return Ok(Navigated::aborted()),
                    Err(error) => return Err(error.into()),
                }
            }
            None => None,
        };
        if work.is_aborted() {
            return Ok(Navigated::aborted());
        }
        let summary = summary.filter(|summary| !summary.text.is_empty());
        let (new_leaf, summary_entry, editor_text) = {
            let mut state = self.state.lock();
            let (leaf, editor_text) = target_position(&navigation.target);
            let moved = state.move_to(&navigation.target, leaf, summary.as_ref(), label.as_deref());
            state.context = state.session.build_context().messages;
            let summary_entry = moved?;
            let new_leaf = state.session.leaf_id().map(str::to_string);
            (
                new_leaf,
                summary_entry.map(|entry| json_of(&entry)),
                editor_text,
            )
        };
        let mut event =
            json_object(json!({ "newLeafId": new_leaf, "oldLeafId": navigation.old_leaf }));
        if let (Some(entry), Some(summary)) = (&summary_entry, &summary) {
            event.insert("summaryEntry".into(), entry.clone());
            event.insert("fromExtension".into(), summary.from_extension.into());
        }
        self.extensions
            .deliver("session_tree", || event, &work.cancel)
            .await;
        drop(summarizing);
        // The text goes into the user's editor if the mode has one.
        if let (Some(text), Mode::Line) = (&editor_text, self.config.mode) {
            self.set_editor_text(text.clone()).await;
        }
        Ok(Navigated {
            editor_text,
            summary_entry,
            ..Navigated::default()
        })
    }

    /// Returns all entries as a tree, and the id of the leaf.
    pub fn tree(&self) -> (Vec<TreeNode>, Option<String>) {
        let state = self.state.lock();
        let leaf = state.session.leaf_id().map(str::to_string);
        (state.session.tree(), leaf)
    }

    async fn acquire_for_navigation(&self) -> Result<SummaryGuard<'_>, NavigateError> {
        loop {
            drop(self.switcher.lock.lock().await);
            self.summary_lock.wait_free().await;
            if let Some(summarizing) = self.summary_lock.begin() {
                return Ok(summarizing);
            }
            if self.is_busy() {
                return Err(NavigateError::Busy);
            }
        }
    }

    /// Emits `session_before_tree`. Returns `None` if a handler or an abort cancelled the move.
    async fn emit_before_tree(
        &self,
        navigation: &Navigation,
        options: &NavigateOptions,
        work: &Work,
    ) -> Option<BeforeTreeResult> {
        const NAME: &str = "session_before_tree";
        if !self.extensions.has_handlers(NAME) {
            return Some(BeforeTreeResult::default());
        }
        let entries = navigation.part.entries.iter();
        let mut preparation = json_object(json!({
            "targetId": navigation.target.id,
            "oldLeafId": navigation.old_leaf,
            "commonAncestorId": navigation.part.common_ancestor,
            "entriesToSummarize": entries.map(|entry| json_of(entry)).collect::<Vec<_>>(),
            "userWantsSummary": options.summarize.unwrap_or(false),
        }));
        let optional = [
            ("customInstructions", json!(options.custom_instructions)),
            ("replaceInstructions", json!(options.replace_instructions)),
            ("label", json!(options.label)),
        ];
        let provided = optional.into_iter().filter(|(_, value)| !value.is_null());
        preparation.extend(provided.map(|(name, value)| (name.to_string(), value)));
        // The JavaScript side replaces the id by an `AbortSignal`.
        let event = || json!({ "preparation": preparation, "signal": work.id });
        let emission = self.extensions.deliver(NAME, event, &work.cancel).await;
        if work.is_aborted() || emission.is_set("cancel") {
            return None;
        }
        let result = Value::Object(emission.result.unwrap_or_default());
        match serde_json::from_value(result) {
            Ok(result) => Some(result),
            Err(error) => {
                let error = format!("the answer of the handlers cannot be used: {error}");
                self.report("<runtime>", NAME, error).await;
                Some(BeforeTreeResult::default())
            }
        }
    }

    async fn summarize_left_branch(
        &self,
        navigation: &Navigation,
        request: &BranchRequest,
        work: &Work,
    ) -> Result<BranchSummary, SummaryError> {
        let summarizer = self
            .summarizer(&work.cancel)
            .await
            .map_err(|error| match error {
                NoSummarizer::Cancelled => SummaryError::Cancelled,
                error => SummaryError::Failed(error.to_string()),
            })?;
        let entries = &navigation.part.entries;
        let (text, files) = self
            .summarize_with_retries(SummarySource::BranchSummary, work, || {
                summarize_branch(entries, request, &summarizer, &work.cancel)
            })
            .await?;
        Ok(BranchSummary {
            text,
            details: Some(json!(files)),
            from_extension: false,
        })
    }
}

impl State {
    /// Returns `None` if `target` is the leaf already.
    fn navigation_to(&self, target: &str) -> Result<Option<Navigation>, NavigateError> {
        let session = &self.session;
        let old_leaf = session.leaf_id().map(str::to_string);
        if old_leaf.as_deref() == Some(target) {
            return Ok(None);
        }
        let entry = session
            .entry(target)
            .ok_or_else(|| NavigateError::UnknownEntry(target.to_owned()))?;
        let old = session.branch(None);
        Ok(Some(Navigation {
            target: Arc::clone(entry),
            part: branch_part(&old, &session.branch(Some(target))),
            old_leaf,
        }))
    }

    /// Moves the leaf. Returns the entry of the summary.
    fn move_to(
        &mut self,
        target: &Entry,
        leaf: Option<&str>,
        summary: Option<&BranchSummary>,
        label: Option<&str>,
    ) -> Result<Option<Arc<Entry>>, SessionError> {
        // A move itself is not stored, so it needs no session lock.
        let session = match (summary, label) {
            (None, None) => &mut self.session,
            _ => self.writable()?,
        };
        let entry = match summary {
            Some(summary) => Some(session.branch_with_summary(
                leaf,
                &summary.text,
                summary.details.as_ref(),
                Some(summary.from_extension),
            )?),
            None => {
                session.set_leaf(leaf)?;
                None
            }
        };
        if let Some(label) = label {
            let labelled = entry.as_ref().map_or(&target.id, |entry| &entry.id);
            session.append_label(labelled, Some(label))?;
        }
        Ok(entry)
    }
}

/// Returns the parent of the next entry, and the text of a message of the user.
fn target_position(target: &Entry) -> (Option<&str>, Option<String>) {
    let message = target.message().ok().flatten();
    let content = match message.as_deref() {
        Some(AgentMessage::User(user)) => &user.content,
        Some(AgentMessage::Custom(custom)) => &custom.content,
        _ => return (Some(&target.id), None),
    };
    let text = match content {
        UserContent::Text(text) => text.clone(),
        UserContent::Blocks(blocks) => {
            let texts = blocks.iter().filter_map(|block| match block {
                ContentBlock::Text(text) => Some(text.text.as_str()),
                ContentBlock::Image(_) | ContentBlock::Other(_) => None,
            });
            texts.collect()
        }
    };
    (target.parent_id.as_deref(), Some(text))
}
