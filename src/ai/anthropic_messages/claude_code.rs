//! Tokens of a Claude subscription are only accepted from Claude Code: with its
//! identity, and with its spelling of the tools that it has, too.

use crate::ai::stream::ToolSpec;

pub(super) const IDENTITY: &str = "You are Claude Code, Anthropic's official CLI for Claude.";
pub(super) const USER_AGENT: &str = "claude-cli/2.1.75";
pub(super) const BETAS: [&str; 2] = ["claude-code-20250219", "oauth-2025-04-20"];

const TOOLS: [&str; 17] = [
    "Read",
    "Write",
    "Edit",
    "Bash",
    "Grep",
    "Glob",
    "AskUserQuestion",
    "EnterPlanMode",
    "ExitPlanMode",
    "KillShell",
    "NotebookEdit",
    "Skill",
    "Task",
    "TaskOutput",
    "TodoWrite",
    "WebFetch",
    "WebSearch",
];

pub(super) fn is_subscription(api_key: &str) -> bool {
    api_key.contains("sk-ant-oat")
}

/// Our name of a tool, as Claude Code would write it.
pub(super) fn outgoing_tool_name(name: &str) -> &str {
    TOOLS
        .into_iter()
        .find(|tool| tool.eq_ignore_ascii_case(name))
        .unwrap_or(name)
}

/// The name that the tool is registered by.
pub(super) fn incoming_tool_name<'a>(name: &'a str, tools: &'a [ToolSpec]) -> &'a str {
    tools
        .iter()
        .map(|tool| tool.name.as_str())
        .find(|tool| tool.eq_ignore_ascii_case(name))
        .unwrap_or(name)
}
