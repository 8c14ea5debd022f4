//! Table of all events that `pi.on` takes: whether pi waits for the handlers, how their
//! results are merged, and what an exception causes.

use pi_base::nearest;
use serde_json::{Map, Value};

use crate::diagnostics::results::{self, MemberCheck, ResultCheck};
use pi_resources::settings::SettingsValues;
use pi_tools::tool::STRUCTURED_CONTENT;

/// One row of the table.
#[derive(Debug)]
pub struct EventKind {
    pub name: &'static str,
    pub merge: Merge,
    /// Members that a result may have. Others are reported, see
    /// `diagnostics/ignored_results.rs`.
    pub result_members: &'static [&'static str],
    /// Members that a handler may change in place. The change reaches later handlers and
    /// pi.
    pub mutable: &'static [&'static str],
    /// Whether only in-place changes count, and assignments to such a member have no
    /// effect, as in the original. For results assignments count, because the old value may
    /// contain a secret.
    pub in_place_only: bool,
    /// Members for which a result of `null` has a meaning.
    pub nullable: &'static [&'static str],
    /// Checks a member that a handler leaves in the event.
    pub check_member: MemberCheck,
    /// Checks a result as a whole.
    pub check_result: ResultCheck,
    pub on_error: OnError,
    pub limit: Limit,
}

/// How the results of handlers, which run in order, are merged.
#[derive(Debug)]
pub enum Merge {
    /// pi does not wait: the event goes into a queue that is drained before any event whose
    /// results count.
    Queue,
    /// The event goes into the same queue, and pi waits until the queue is empty.
    QueueAndWait,
    /// Like [`Self::QueueAndWait`]; a result may propose entries and one more request.
    Propose,
    /// pi waits for all handlers; results are ignored.
    Ignore,
    /// The first result wins; later handlers are not called.
    First,
    /// The first result wins whose `member` has another value than `undecided`.
    Decision {
        member: &'static str,
        undecided: &'static str,
    },
    /// The last result wins; a result whose member `stop` is true ends the round.
    Last { stop: &'static str },
    /// Members of a result replace those of the event, also for later handlers. Members in
    /// `collect` are collected instead.
    Chain {
        members: &'static [&'static str],
        collect: &'static [&'static str],
        /// Member and value that a result needs for `members` to count.
        only_if: Option<(&'static str, &'static str)>,
        /// Member and value that end the round.
        stop: Option<(&'static str, &'static str)>,
    },
    /// The whole result replaces this member.
    Replace(&'static str),
}

impl Merge {
    /// Returns whether the event waits in the queue.
    pub fn is_queued(&self) -> bool {
        matches!(self, Self::Queue | Self::QueueAndWait | Self::Propose)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnError {
    /// Emit an `extension_error` and call the next handler.
    Report,
    /// Block the action that the event announces.
    Block,
}

/// The setting in `extensionTimeouts` that limits the handlers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    Handler,
    /// A multiple of the handler limit, because the handler may ask a model for a summary.
    Summary,
    Shutdown,
}

const fn row(name: &'static str, merge: Merge) -> EventKind {
    EventKind {
        name,
        merge,
        result_members: &[],
        mutable: &[],
        in_place_only: false,
        nullable: &[],
        check_member: results::ANY_MEMBER,
        check_result: results::ANY_RESULT,
        on_error: OnError::Report,
        limit: Limit::Handler,
    }
}

const fn chain(members: &'static [&'static str]) -> Merge {
    Merge::Chain {
        members,
        collect: &[],
        only_if: None,
        stop: None,
    }
}

const RESULT: &[&str] = &["content", "details", "isError", "usage", STRUCTURED_CONTENT];
const MESSAGE: &[&str] = &["message"];
const CANCEL: Merge = Merge::Last { stop: "cancel" };
const PROPOSAL: &[&str] = &["entries", "continue"];
const DISCOVERED: &[&str] = &["skillPaths", "promptPaths", "themePaths"];

pub static EVENTS: [EventKind; 39] = [
    EventKind {
        result_members: DISCOVERED,
        ..row(
            "resources_discover",
            Merge::Chain {
                members: &[],
                collect: DISCOVERED,
                only_if: None,
                stop: None,
            },
        )
    },
    row("session_start", Merge::Ignore),
    EventKind {
        result_members: &["cancel"],
        ..row("session_before_switch", CANCEL)
    },
    EventKind {
        result_members: &["cancel", "skipConversationRestore"],
        ..row("session_before_fork", CANCEL)
    },
    EventKind {
        result_members: &["cancel", "compaction"],
        limit: Limit::Summary,
        check_result: results::check_compaction,
        ..row("session_before_compact", CANCEL)
    },
    row("session_compact", Merge::Ignore),
    EventKind {
        result_members: &[
            "cancel",
            "summary",
            "customInstructions",
            "replaceInstructions",
            "label",
        ],
        limit: Limit::Summary,
        ..row("session_before_tree", CANCEL)
    },
    row("session_tree", Merge::Ignore),
    EventKind {
        limit: Limit::Shutdown,
        ..row("session_shutdown", Merge::Ignore)
    },
    EventKind {
        result_members: &["messages"],
        mutable: &["messages"],
        in_place_only: true,
        check_member: results::check_messages,
        ..row("context", chain(&["messages"]))
    },
    EventKind {
        result_members: &["messages"],
        mutable: &["messages"],
        in_place_only: true,
        // Messages of the role `system` are checked when they are read.
        check_member: results::check_messages,
        ..row("context_with_system", chain(&["messages"]))
    },
    EventKind {
        mutable: &["payload"],
        in_place_only: true,
        check_member: results::check_object,
        ..row("before_provider_request", Merge::Replace("payload"))
    },
    EventKind {
        mutable: &["headers"],
        check_member: results::check_object,
        ..row("before_provider_headers", chain(&[]))
    },
    row("after_provider_response", Merge::Ignore),
    row("provider_stream_event", Merge::Queue),
    EventKind {
        result_members: &["systemPrompt", "message"],
        mutable: &["systemPromptOptions"],
        check_member: results::check_agent_start_member,
        ..row(
            "before_agent_start",
            Merge::Chain {
                members: &["systemPrompt"],
                collect: &["message"],
                only_if: None,
                stop: None,
            },
        )
    },
    row("agent_start", Merge::QueueAndWait),
    row("agent_end", Merge::QueueAndWait),
    row("turn_start", Merge::QueueAndWait),
    EventKind {
        result_members: PROPOSAL,
        ..row("turn_end", Merge::Propose)
    },
    EventKind {
        mutable: MESSAGE,
        ..row("message_start", Merge::QueueAndWait)
    },
    row("message_update", Merge::Queue),
    EventKind {
        result_members: MESSAGE,
        mutable: MESSAGE,
        ..row("message_end", Merge::QueueAndWait)
    },
    EventKind {
        mutable: &["args"],
        ..row("tool_execution_start", Merge::QueueAndWait)
    },
    row("tool_execution_update", Merge::Queue),
    EventKind {
        mutable: &["result"],
        ..row("tool_execution_end", Merge::QueueAndWait)
    },
    row("model_select", Merge::QueueAndWait),
    row("thinking_level_select", Merge::Queue),
    row("session_info_changed", Merge::Queue),
    row("session_compact_failed", Merge::Queue),
    EventKind {
        result_members: PROPOSAL,
        ..row("agent_before_settle", Merge::Propose)
    },
    row("agent_settled", Merge::Queue),
    row("ui_prompt_start", Merge::Queue),
    row("ui_prompt_end", Merge::Queue),
    EventKind {
        result_members: &["block", "reason", "terminate"],
        mutable: &["input"],
        in_place_only: true,
        check_member: results::check_object,
        on_error: OnError::Block,
        ..row("tool_call", Merge::Last { stop: "block" })
    },
    EventKind {
        result_members: RESULT,
        mutable: RESULT,
        nullable: &["details"],
        check_member: results::check_tool_result_member,
        ..row("tool_result", chain(RESULT))
    },
    EventKind {
        result_members: &["operations", "result"],
        check_result: results::check_command_result,
        ..row("user_bash", Merge::First)
    },
    EventKind {
        result_members: &["action", "text", "images"],
        check_member: results::check_input_member,
        check_result: results::check_input,
        ..row(
            "input",
            Merge::Chain {
                members: &["text", "images"],
                collect: &[],
                only_if: Some(("action", "transform")),
                stop: Some(("action", "handled")),
            },
        )
    },
    EventKind {
        result_members: &["trusted", "remember"],
        check_result: results::check_project_trust,
        ..row(
            "project_trust",
            Merge::Decision {
                member: "trusted",
                undecided: "undecided",
            },
        )
    },
];

/// Names of removed events, and their replacements.
const REMOVED_EVENTS: [(&str, &str); 3] = [
    ("session_switch", "session_start (its `reason` says why)"),
    (
        "session_directory",
        "the setting `sessionDir`, or --session-dir",
    ),
    ("session_fork", "session_start (its `reason` is \"fork\")"),
];

/// Makes the members of `session_shutdown`: the reason and the file of the next session.
pub fn shutdown_event(reason: &str, target: Option<String>) -> Map<String, Value> {
    let mut event = Map::from_iter([("reason".to_string(), reason.into())]);
    if let Some(target) = target {
        event.insert("targetSessionFile".into(), target.into());
    }
    event
}

/// Returns whether the session waits for handlers of this event in the middle of a change.
pub fn blocks_session(name: &str) -> bool {
    matches!(
        name,
        "session_before_switch"
            | "session_before_fork"
            | "session_before_compact"
            | "session_compact"
            | "session_before_tree"
            | "session_tree"
            | "session_shutdown"
    )
}

/// Returns whether a run waits for handlers of this event.
pub fn blocks_run(name: &str) -> bool {
    matches!(
        name,
        "context"
            | "context_with_system"
            | "before_provider_request"
            | "before_provider_headers"
            | "tool_call"
            | "tool_result"
    )
}

pub fn find(name: &str) -> Option<(usize, &'static EventKind)> {
    EVENTS
        .iter()
        .enumerate()
        .find(|(_, kind)| kind.name == name)
}

/// Events of newer versions that pi does not emit.
const NEWER_EVENTS: [&str; 2] = ["mcp_servers_change", "cache_warming_decision"];

/// Returns the message about `name` if it is not an event.
pub fn unknown_event(name: &str) -> Option<String> {
    find(name).is_none().then(|| unknown_event_message(name))
}

/// Returns a message for each unknown name in the setting `extensionTimeouts.events`.
/// Limits of unknown events have no effect.
pub fn ineffective_limits(settings: &SettingsValues) -> Vec<String> {
    let names = settings.extension_timeouts.events.keys();
    let wrong = names.filter_map(|name| {
        let why = unknown_event(name)?;
        Some(format!(
            "\"extensionTimeouts.events.{name}\" has no effect: {why}"
        ))
    });
    wrong.collect()
}

/// Returns whether `name` is an event of an older or newer version.
pub fn is_in_other_version(name: &str) -> bool {
    REMOVED_EVENTS.iter().any(|(former, _)| *former == name) || NEWER_EVENTS.contains(&name)
}

/// Returns the message to an author whose handler is never called.
pub fn unknown_event_message(name: &str) -> String {
    if let Some((_, successor)) = REMOVED_EVENTS.iter().find(|(former, _)| *former == name) {
        return format!("The event \"{name}\" is no more: use {successor}");
    }
    if NEWER_EVENTS.contains(&name) {
        return format!("The event \"{name}\" does not happen in this version of pi");
    }
    let names: Vec<&str> = EVENTS.iter().map(|kind| kind.name).collect();
    // The suggestion comes first, because the list may be cut off where it is shown.
    let suggestion = nearest(name, &names);
    let suggestion = suggestion.map(|suggestion| format!(" Is \"{suggestion}\" meant?"));
    format!(
        "There is no event \"{name}\".{} The events are: {}",
        suggestion.unwrap_or_default(),
        names.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the table with the documentation, so that documented members are not
    /// reported.
    #[test]
    fn result_members_match_the_documentation() {
        let page = include_str!("../../../docs/extensions/events.md");
        let quoted = |cell: &str| -> Vec<String> {
            let parts = cell.split('`').skip(1).step_by(2);
            parts.map(str::to_owned).collect()
        };
        let rows = page.lines().filter(|line| line.starts_with("| `"));
        let mut rows: Vec<(String, Vec<String>)> = rows
            .map(|row| {
                let cells: Vec<&str> = row.split('|').collect();
                (quoted(cells[1]).swap_remove(0), quoted(cells[3]))
            })
            .filter(|(name, _)| find(name).is_some())
            .collect();
        let members = |kind: &EventKind| {
            kind.result_members
                .iter()
                .map(|name| name.to_string())
                .collect()
        };
        let mut known: Vec<(String, Vec<String>)> = EVENTS
            .iter()
            .map(|kind| (kind.name.to_owned(), members(kind)))
            .collect();
        for (_, members) in rows.iter_mut().chain(&mut known) {
            members.sort();
        }
        rows.sort();
        known.sort();
        assert_eq!(rows, known);
    }

    #[test]
    fn unknown_names_get_suggestions() {
        assert!(unknown_event_message("tool_cal").contains("tool_call,"));
        for (name, suggestion) in [
            ("tool_cal", "tool_call"),
            ("session_started", "session_start"),
            ("toolResult", "tool_result"),
            ("on_agent_end", "agent_end"),
        ] {
            let suggestion = format!("\"{name}\". Is \"{suggestion}\" meant? The events are: ");
            assert!(
                unknown_event_message(name).contains(&suggestion),
                "{}",
                unknown_event_message(name)
            );
        }
        assert!(
            unknown_event_message("boot").starts_with("There is no event \"boot\". The events")
        );
        assert!(unknown_event_message("session_switch").contains("session_start"));
        assert!(unknown_event_message("mcp_servers_change").contains("does not happen"));
    }
}
