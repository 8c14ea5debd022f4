//! Moving about in the tree of the session, with a summary of the branch that is
//! left if one is wanted.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use super::AgentSession;
use super::compact::json_of;
use super::run::object;
use super::state::{Run, State};
use super::summary::{NoSummarizer, Summarising};
use crate::agent::AgentMessage;
use crate::agent::event::{Event, SummarySource, UiMethod, UiRequest};
use crate::ai::message::{ContentBlock, UserContent};
use crate::compaction::{BranchPart, BranchRequest, SummaryError, branch_part, summarize_branch};
use crate::extensions::api::session_api::{NavigateOptions, Navigated};
use crate::session::{Entry, SessionError, TreeNode};

/// What `session_before_tree` handlers answer.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Answer {
    summary: Option<GivenSummary>,
    custom_instructions: Option<String>,
    replace_instructions: Option<bool>,
    label: Option<String>,
}

#[derive(Deserialize)]
struct GivenSummary {
    summary: String,
    details: Option<Value>,
}

/// What is appended where the branch was left for.
struct Summary {
    text: String,
    details: Option<Value>,
    from_extension: bool,
}

/// Where the way goes.
struct Way {
    target: Arc<Entry>,
    old_leaf: Option<String>,
    part: BranchPart,
}

impl AgentSession {
    /// Goes to the entry `target`, or before it if the user said it: its text comes
    /// back then, to be changed and said again.
    pub async fn navigate(
        &self,
        target: &str,
        options: NavigateOptions,
    ) -> Result<Navigated, String> {
        let cancel = self.waiting.lock().clone();
        let summarising = tokio::select! {
            free = self.free_for_navigation() => free?,
            () = cancel.cancelled() => return Ok(Navigated::aborted()),
        };
        let work = &summarising.work;
        let stores = options.summarize == Some(true) || options.label.is_some();
        if stores {
            let held = self.hold_session(&work.cancel).await;
            held.map_err(|error| error.to_string())?;
        }
        let Some(way) = self.state.lock().way_to(target)? else {
            return Ok(Navigated::default());
        };
        let wanted = options.summarize.unwrap_or(false);
        if wanted && self.model().is_none() {
            return Err("No model available for summarization".into());
        }
        let Some(answer) = self.ask_about_tree(&way, &options, work).await else {
            return Ok(Navigated::cancelled());
        };
        let label = answer.label.or(options.label);
        let label = label.filter(|label| !label.is_empty());
        let given = answer.summary.filter(|_| wanted);
        let summary = match given {
            Some(given) => Some(Summary {
                text: given.summary,
                details: given.details,
                from_extension: true,
            }),
            None if wanted && !way.part.entries.is_empty() => {
                let request = BranchRequest {
                    instructions: answer.custom_instructions.or(options.custom_instructions),
                    replace_instructions: answer
                        .replace_instructions
                        .or(options.replace_instructions)
                        .unwrap_or(false),
                    reserve_tokens: self.settings.values().branch_summary.reserve_tokens,
                };
                match self.summary_of(&way, &request, work).await {
                    Ok(summary) => Some(summary),
                    Err(SummaryError::Cancelled) => return Ok(Navigated::aborted()),
                    Err(error) => return Err(error.to_string()),
                }
            }
            None => None,
        };
        if work.cancel.is_cancelled() {
            return Ok(Navigated::aborted());
        }
        let summary = summary.filter(|summary| !summary.text.is_empty());
        let (new_leaf, summary_entry, editor_text) = {
            let mut state = self.state.lock();
            let (leaf, editor_text) = landing(&way.target);
            let moved = state.move_to(&way.target, leaf, summary.as_ref(), label.as_deref());
            state.context = state.session.build_context().messages;
            let summary_entry = moved.map_err(|error| error.to_string())?;
            let new_leaf = state.session.leaf_id().map(str::to_string);
            (
                new_leaf,
                summary_entry.map(|entry| json_of(&entry)),
                editor_text,
            )
        };
        let mut event = object(json!({ "newLeafId": new_leaf, "oldLeafId": way.old_leaf }));
        if let (Some(entry), Some(summary)) = (&summary_entry, &summary) {
            event.insert("summaryEntry".into(), entry.clone());
            event.insert("fromExtension".into(), summary.from_extension.into());
        }
        self.extensions
            .emit("session_tree", event, &work.cancel)
            .await;
        drop(summarising);
        // Where the user has a prompt, they go on from what they said there.
        if let (Some(text), "interactive") = (&editor_text, self.config.mode) {
            self.tell(Event::ExtensionUiRequest(UiRequest {
                id: uuid::Uuid::new_v4().to_string(),
                method: UiMethod::SetEditorText { text: text.clone() },
            }))
            .await;
        }
        Ok(Navigated {
            editor_text,
            summary_entry,
            ..Navigated::default()
        })
    }

    /// Every entry with its relatives, and where the session is.
    pub fn tree(&self) -> (Vec<TreeNode>, Option<String>) {
        let state = self.state.lock();
        let leaf = state.session.leaf_id().map(str::to_string);
        (state.session.tree(), leaf)
    }

    async fn free_for_navigation(&self) -> Result<Summarising<'_>, String> {
        loop {
            drop(self.replacing.lock().await);
            self.wait_summary().await;
            if let Some(summarising) = self.begin_summary() {
                return Ok(summarising);
            }
            if self.is_busy() {
                return Err(
                    "Wait for the current response to finish before going elsewhere in the tree"
                        .into(),
                );
            }
        }
    }

    /// The `session_before_tree` event; `None` if the session stays where it is.
    async fn ask_about_tree(
        &self,
        way: &Way,
        options: &NavigateOptions,
        work: &Run,
    ) -> Option<Answer> {
        const NAME: &str = "session_before_tree";
        if !self.extensions.has_handlers(NAME) {
            return Some(Answer::default());
        }
        let entries = way.part.entries.iter();
        let mut preparation = object(json!({
            "targetId": way.target.id,
            "oldLeafId": way.old_leaf,
            "commonAncestorId": way.part.common_ancestor,
            "entriesToSummarize": entries.map(|entry| json_of(entry)).collect::<Vec<_>>(),
            "userWantsSummary": options.summarize.unwrap_or(false),
        }));
        let optional = [
            ("customInstructions", json!(options.custom_instructions)),
            ("replaceInstructions", json!(options.replace_instructions)),
            ("label", json!(options.label)),
        ];
        let given = optional.into_iter().filter(|(_, value)| !value.is_null());
        preparation.extend(given.map(|(name, value)| (name.to_string(), value)));
        // JavaScript makes an `AbortSignal` of it.
        let event = object(json!({ "preparation": preparation, "signal": work.id }));
        let emission = self.extensions.emit(NAME, event, &work.cancel).await;
        if work.cancel.is_cancelled() || emission.is_set("cancel") {
            return None;
        }
        let answer = Value::Object(emission.result.unwrap_or_default());
        match serde_json::from_value(answer) {
            Ok(answer) => Some(answer),
            Err(error) => {
                let error = format!("the answer of the handlers cannot be used: {error}");
                self.report("<runtime>", NAME, error).await;
                Some(Answer::default())
            }
        }
    }

    async fn summary_of(
        &self,
        way: &Way,
        request: &BranchRequest,
        work: &Run,
    ) -> Result<Summary, SummaryError> {
        let summarizer = self
            .summarizer(&work.cancel)
            .await
            .map_err(|error| match error {
                NoSummarizer::Cancelled => SummaryError::Cancelled,
                error => SummaryError::Failed(error.to_string()),
            })?;
        let entries = &way.part.entries;
        let (text, files) = self
            .ask_with_retries(SummarySource::BranchSummary, work, || {
                summarize_branch(entries, request, &summarizer, &work.cancel)
            })
            .await?;
        Ok(Summary {
            text,
            details: Some(json!(files)),
            from_extension: false,
        })
    }
}

impl State {
    /// `None` if it is where the session is.
    fn way_to(&self, target: &str) -> Result<Option<Way>, String> {
        let session = &self.session;
        let old_leaf = session.leaf_id().map(str::to_string);
        if old_leaf.as_deref() == Some(target) {
            return Ok(None);
        }
        let entry = session
            .entry(target)
            .ok_or_else(|| format!("Entry {target} not found"))?;
        let old = session.branch(None);
        Ok(Some(Way {
            target: Arc::clone(entry),
            part: branch_part(&old, &session.branch(Some(target))),
            old_leaf,
        }))
    }

    /// Returns the entry of the summary.
    fn move_to(
        &mut self,
        target: &Entry,
        leaf: Option<&str>,
        summary: Option<&Summary>,
        label: Option<&str>,
    ) -> Result<Option<Arc<Entry>>, SessionError> {
        // Going somewhere is not stored; what is appended there is.
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

/// Where the next entry goes, and what the user said there.
fn landing(target: &Entry) -> (Option<&str>, Option<String>) {
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
