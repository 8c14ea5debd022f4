//! Imitates Claude Code, because tokens of a Claude subscription are accepted only with its
//! identity and its spelling of tool names.

use crate::stream::ToolSpec;

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

/// Returns Claude Code's spelling of a tool's name.
pub(super) fn outgoing_tool_name(name: &str) -> &str {
    TOOLS
        .into_iter()
        .find(|tool| tool.eq_ignore_ascii_case(name))
        .unwrap_or(name)
}

/// Returns the name under which the tool is registered.
pub(super) fn incoming_tool_name<'a>(name: &'a str, tools: &'a [ToolSpec]) -> &'a str {
    tools
        .iter()
        .map(|tool| tool.name.as_str())
        .find(|tool| tool.eq_ignore_ascii_case(name))
        .unwrap_or(name)
}
