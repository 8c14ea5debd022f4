//! Every event that `pi.on` takes, as data: who waits for it, how answers are
//! merged, and what an exception does (behaviour.md §3.7).

use pi_base::nearest;
use serde_json::{Map, Value};

use crate::extensions::diagnostics::results::{self, Fits, Makes};
use crate::resources::settings::SettingsValues;
use crate::tools::tool::STRUCTURED_CONTENT;

/// One row of the table.
#[derive(Debug)]
pub struct EventKind {
    pub name: &'static str,
    pub merge: Merge,
    /// What an answer may have. What else it has is told, see `unheard.rs`.
    pub answer: &'static [&'static str],
    /// The members that a handler may change in place; the change reaches the
    /// handlers after it, and us.
    pub mutable: &'static [&'static str],
    /// Another value in the place of such a member is the handler's own affair, as in the
    /// original. Of a result it is not: what was replaced may have held a secret.
    pub in_place_only: bool,
    /// Members for which an answer of `null` says something.
    pub nullable: &'static [&'static str],
    /// Whether a member that a handler leaves can be used.
    pub fits: Fits,
    /// Whether an answer as a whole makes sense.
    pub makes: Makes,
    pub on_error: OnError,
    pub limit: Limit,
}

/// What becomes of the answers of the handlers, which run in order.
#[derive(Debug)]
pub enum Merge {
    /// Nobody waits: the event goes into a queue that is drained before any
    /// event whose answer counts.
    Queue,
    /// In the same queue, and whoever tells of it waits until the queue is empty.
    Settle,
    /// All are awaited, answers are ignored.
    Ignore,
    /// The first answer wins, the handlers after it are not asked.
    First,
    /// The last answer wins; one whose member `stop` is true ends the round.
    Last { stop: &'static str },
    /// Members of an answer take the place of the event's, for the handlers
    /// after it too; members of `collect` are gathered instead.
    Chain {
        members: &'static [&'static str],
        collect: &'static [&'static str],
        /// Member and value without which `members` are left alone.
        only_if: Option<(&'static str, &'static str)>,
        /// Member and value that end the round.
        stop: Option<(&'static str, &'static str)>,
    },
    /// The whole answer takes the place of this member.
    Replace(&'static str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnError {
    /// An `extension_error`; the next handler runs.
    Report,
    /// What was asked about must not happen.
    Block,
}

/// Which of the settings' `extensionTimeouts` holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    Handler,
    /// Many times that of a handler: it may ask a model for a summary.
    Summary,
    Shutdown,
}

const fn row(name: &'static str, merge: Merge) -> EventKind {
    EventKind {
        name,
        merge,
        answer: &[],
        mutable: &[],
        in_place_only: false,
        nullable: &[],
        fits: results::ANYTHING,
        makes: results::SENSE,
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
const BOUNDARY: &[&str] = &["entries", "continue"];
const DISCOVERED: &[&str] = &["skillPaths", "promptPaths", "themePaths"];

pub static EVENTS: [EventKind; 38] = [
    EventKind {
        answer: DISCOVERED,
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
        answer: &["cancel"],
        ..row("session_before_switch", CANCEL)
    },
    EventKind {
        answer: &["cancel", "skipConversationRestore"],
        ..row("session_before_fork", CANCEL)
    },
    EventKind {
        answer: &["cancel", "compaction"],
        limit: Limit::Summary,
        makes: results::a_compaction,
        ..row("session_before_compact", CANCEL)
    },
    row("session_compact", Merge::Ignore),
    EventKind {
        answer: &[
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
        answer: &["messages"],
        mutable: &["messages"],
        in_place_only: true,
        fits: results::of_context,
        ..row("context", chain(&["messages"]))
    },
    EventKind {
        answer: &["messages"],
        mutable: &["messages"],
        in_place_only: true,
        // Those of the role `system` are looked at when they are read.
        fits: results::of_context,
        ..row("context_with_system", chain(&["messages"]))
    },
    EventKind {
        mutable: &["payload"],
        in_place_only: true,
        fits: results::object,
        ..row("before_provider_request", Merge::Replace("payload"))
    },
    EventKind {
        mutable: &["headers"],
        fits: results::object,
        ..row("before_provider_headers", chain(&[]))
    },
    row("after_provider_response", Merge::Ignore),
    row("provider_stream_event", Merge::Queue),
    EventKind {
        answer: &["systemPrompt", "message"],
        mutable: &["systemPromptOptions"],
        fits: results::of_before_agent_start,
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
    row("agent_start", Merge::Settle),
    row("agent_end", Merge::Settle),
    row("turn_start", Merge::Settle),
    EventKind {
        answer: BOUNDARY,
        ..row("turn_end", Merge::Settle)
    },
    EventKind {
        mutable: MESSAGE,
        ..row("message_start", Merge::Settle)
    },
    row("message_update", Merge::Queue),
    EventKind {
        answer: MESSAGE,
        mutable: MESSAGE,
        ..row("message_end", Merge::Settle)
    },
    EventKind {
        mutable: &["args"],
        ..row("tool_execution_start", Merge::Settle)
    },
    row("tool_execution_update", Merge::Queue),
    EventKind {
        mutable: &["result"],
        ..row("tool_execution_end", Merge::Settle)
    },
    row("model_select", Merge::Settle),
    row("thinking_level_select", Merge::Queue),
    row("session_info_changed", Merge::Queue),
    row("session_compact_failed", Merge::Queue),
    EventKind {
        answer: BOUNDARY,
        ..row("agent_before_settle", Merge::Settle)
    },
    row("agent_settled", Merge::Queue),
    row("ui_prompt_start", Merge::Queue),
    row("ui_prompt_end", Merge::Queue),
    EventKind {
        answer: &["block", "reason", "terminate"],
        mutable: &["input"],
        in_place_only: true,
        fits: results::object,
        on_error: OnError::Block,
        ..row("tool_call", Merge::Last { stop: "block" })
    },
    EventKind {
        answer: RESULT,
        mutable: RESULT,
        nullable: &["details"],
        fits: results::of_tool_result,
        ..row("tool_result", chain(RESULT))
    },
    EventKind {
        answer: &["operations", "result"],
        makes: results::a_command_result,
        ..row("user_bash", Merge::First)
    },
    EventKind {
        answer: &["action", "text", "images"],
        fits: results::of_input,
        makes: results::an_input,
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
];

/// Names that were events once, and what took their place.
const FORMER: [(&str, &str); 3] = [
    ("session_switch", "session_start (its `reason` says why)"),
    (
        "session_directory",
        "the setting `sessionDir`, or --session-dir",
    ),
    ("session_fork", "session_start (its `reason` is \"fork\")"),
];

/// The members of `session_shutdown`: why, and which session takes the place.
pub fn shutdown(reason: &str, target: Option<String>) -> Map<String, Value> {
    let mut event = Map::from_iter([("reason".to_string(), reason.into())]);
    if let Some(target) = target {
        event.insert("targetSessionFile".into(), target.into());
    }
    event
}

/// Whether the session is in the middle of something, and waits for the handlers.
pub fn holds_session(name: &str) -> bool {
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

/// Whether a run is in the middle of something, and waits for the handlers.
pub fn holds_run(name: &str) -> bool {
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

/// Of two names, from which on one may be meant for the other.
const LIKENESS: f32 = 0.75;

/// Events of later versions that do not happen here.
const LATER: [&str; 3] = [
    "project_trust",
    "mcp_servers_change",
    "cache_warming_decision",
];

/// What to say of `name` if it is not an event.
pub fn complaint(name: &str) -> Option<String> {
    find(name).is_none().then(|| unknown(name))
}

/// What is wrong with the names in the setting `extensionTimeouts.events`, each with its
/// place. The limits themselves are kept: they hold for nothing.
pub fn limits_of_nothing(settings: &SettingsValues) -> Vec<String> {
    let names = settings.extension_timeouts.events.keys();
    let wrong = names.filter_map(|name| {
        let why = complaint(name)?;
        Some(format!(
            "\"extensionTimeouts.events.{name}\" has no effect: {why}"
        ))
    });
    wrong.collect()
}

/// Whether `name` was an event once, or is one in later versions.
pub fn is_of_another_version(name: &str) -> bool {
    FORMER.iter().any(|(former, _)| *former == name) || LATER.contains(&name)
}

/// What the author of an extension is told that listens to what never happens.
pub fn unknown(name: &str) -> String {
    if let Some((_, successor)) = FORMER.iter().find(|(former, _)| *former == name) {
        return format!("The event \"{name}\" is no more: use {successor}");
    }
    if LATER.contains(&name) {
        return format!("The event \"{name}\" does not happen in this version of pi");
    }
    let names: Vec<&str> = EVENTS.iter().map(|kind| kind.name).collect();
    // First: the list is long, and not shown to its end everywhere.
    let meant = nearest(name, &names, LIKENESS);
    let meant = meant.map(|meant| format!(" Is \"{meant}\" meant?"));
    format!(
        "There is no event \"{name}\".{} The events are: {}",
        meant.unwrap_or_default(),
        names.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Those who read the page are not told that something means nothing.
    #[test]
    fn answers_may_have_what_the_documentation_says() {
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
        let answer = |kind: &EventKind| kind.answer.iter().map(|name| name.to_string()).collect();
        let mut known: Vec<(String, Vec<String>)> = EVENTS
            .iter()
            .map(|kind| (kind.name.to_owned(), answer(kind)))
            .collect();
        for (_, answer) in rows.iter_mut().chain(&mut known) {
            answer.sort();
        }
        rows.sort();
        known.sort();
        assert_eq!(rows, known);
    }

    #[test]
    fn unknown_names_are_told_what_exists() {
        assert!(unknown("tool_cal").contains("tool_call,"));
        for (name, meant) in [
            ("tool_cal", "tool_call"),
            ("session_started", "session_start"),
            ("toolResult", "tool_result"),
            ("on_agent_end", "agent_end"),
        ] {
            let meant = format!("\"{name}\". Is \"{meant}\" meant? The events are: ");
            assert!(unknown(name).contains(&meant), "{}", unknown(name));
        }
        assert!(unknown("boot").starts_with("There is no event \"boot\". The events"));
        assert!(unknown("session_switch").contains("session_start"));
        assert!(unknown("project_trust").contains("does not happen"));
    }
}
