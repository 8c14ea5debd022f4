//! `/tree`: lists the branches of the session, and goes to an entry.

use std::sync::Arc;

use super::commands::CommandOutput;
use super::outcome;
use super::sanitize::one_line;
use pi_agent::AgentMessage;
use pi_app::{AgentSession, CommandOutcome, SessionCommand};
use pi_extensions::api::session_api::NavigateOptions;
use pi_session::{EntryKind, TreeNode};

/// Lines that are shown unless all are requested.
const MAX_TREE_LINES: usize = 100;
/// Maximum characters of a message.
const MAX_TEXT_CHARS: usize = 70;

/// Runs the command. `args` is the text after `/tree`.
pub async fn run(session: &Arc<AgentSession>, args: &str) -> CommandOutput {
    let (target, rest) = args.split_once(' ').unwrap_or((args, ""));
    match target {
        "" => Ok(list(session, MAX_TREE_LINES)),
        "all" => Ok(list(session, usize::MAX)),
        id => go_to(session, id, rest.trim()).await,
    }
}

async fn go_to(session: &Arc<AgentSession>, id: &str, how: &str) -> CommandOutput {
    let options = match how.split_once(' ').unwrap_or((how, "")) {
        ("", _) => NavigateOptions::default(),
        ("summary", focus) => NavigateOptions {
            summarize: Some(true),
            custom_instructions: Some(focus.trim().to_string()).filter(|focus| !focus.is_empty()),
            ..NavigateOptions::default()
        },
        _ => return Err("what follows the id is \"summary\", or nothing".into()),
    };
    let target = find(session, id)?;
    let command = SessionCommand::NavigateTree {
        target: target.clone(),
        options,
    };
    Ok(match session.execute(command).await? {
        CommandOutcome::Navigated(navigated) if !navigated.cancelled => {
            match navigated.editor_text {
                Some(_) => format!("Now before {target}; its text is at the prompt."),
                None => format!("Now at {target}."),
            }
        }
        outcome => outcome::describe(session, outcome),
    })
}

/// Finds the entry whose id begins with `id`.
fn find(session: &AgentSession, id: &str) -> Result<String, String> {
    let (nodes, _) = session.tree();
    let mut found = nodes.iter().map(|node| &node.entry.id);
    let mut matching = found.by_ref().filter(|known| known.starts_with(id));
    match (matching.next(), matching.next()) {
        (Some(one), None) => Ok(one.clone()),
        (None, _) => Err(format!(
            "there is no entry {}; /tree lists them",
            one_line(id)
        )),
        (Some(_), Some(_)) => Err(format!("several entries begin with {}", one_line(id))),
    }
}

fn list(session: &AgentSession, most: usize) -> String {
    let (nodes, leaf) = session.tree();
    let mut lines = lines(&nodes, leaf.as_deref());
    if lines.is_empty() {
        return "Nothing was said yet.".to_string();
    }
    let hidden = lines.len().saturating_sub(most);
    lines.drain(..hidden);
    if hidden > 0 {
        lines.insert(0, format!("({hidden} lines before these: /tree all)"));
    }
    lines.push(
        "/tree <id> goes there, /tree <id> summary [focus] keeps a summary of what is left."
            .to_string(),
    );
    lines.join("\n")
}

/// Renders the entries depth first. The branch of the current leaf comes last, near the prompt.
/// Only the branches of a fork are indented. `*` marks the path to the current leaf.
fn lines(nodes: &[TreeNode], leaf: Option<&str>) -> Vec<String> {
    let here = nodes.iter().position(|node| Some(&*node.entry.id) == leaf);
    let mut active = vec![false; nodes.len()];
    let mut on_path = here;
    while let Some(index) = on_path.filter(|index| !active[*index]) {
        active[index] = true;
        on_path = nodes[index].parent;
    }
    let roots = (0..nodes.len()).filter(|index| nodes[*index].parent.is_none());
    let last_first = |mut siblings: Vec<usize>| {
        siblings.sort_by_key(|index| active[*index]);
        siblings.into_iter().rev()
    };
    let mut open: Vec<(usize, usize)> = last_first(roots.collect())
        .map(|index| (index, 0))
        .collect();
    let mut lines = Vec::new();
    while let Some((index, depth)) = open.pop() {
        let node = &nodes[index];
        let is_here = here == Some(index);
        if let Some(text) = describe(node, is_here) {
            let mark = if active[index] { '*' } else { ' ' };
            let indent = "  ".repeat(depth);
            let id = one_line(&node.entry.id);
            let label = match &node.label {
                Some(label) => format!(" [{}]", one_line(label)),
                None => String::new(),
            };
            let end = if is_here { "  <- here" } else { "" };
            lines.push(format!("{mark} {indent}{id}{label} {text}{end}"));
        }
        let deeper = depth + usize::from(node.children.len() > 1);
        open.extend(last_first(node.children.clone()).map(|child| (child, deeper)));
    }
    lines
}

/// Describes an entry. `None` for entries that are not listed.
fn describe(node: &TreeNode, is_here: bool) -> Option<String> {
    let message = node.entry.message().ok().flatten();
    let text = match message.as_deref() {
        Some(AgentMessage::User(user)) => format!("you: {}", short(&user.content.text())),
        Some(AgentMessage::Assistant(answer)) => {
            let text: String = answer.texts().collect();
            match text.trim().is_empty() {
                false => format!("pi: {}", short(&text)),
                true if is_here || node.label.is_some() => "pi: (no text)".to_string(),
                true => return None,
            }
        }
        Some(AgentMessage::Custom(custom)) if custom.display => {
            let text = short(&custom.content.text());
            format!("{}: {text}", one_line(&custom.custom_type))
        }
        Some(AgentMessage::BranchSummary(branch)) => {
            format!("summary of a branch: {}", short(&branch.summary))
        }
        Some(AgentMessage::CompactionSummary(compaction)) => {
            format!("compacted: {}", short(&compaction.summary))
        }
        Some(AgentMessage::BashExecution(bash)) => format!("! {}", short(&bash.command)),
        _ if is_here || node.label.is_some() => {
            let kind = match &node.entry.kind {
                EntryKind::Message { role } => role,
                _ => node.entry.type_name(),
            };
            format!("({})", one_line(kind))
        }
        _ => return None,
    };
    Some(text)
}

fn short(text: &str) -> String {
    let line = one_line(text.trim());
    match line.chars().count() > MAX_TEXT_CHARS {
        true => line.chars().take(MAX_TEXT_CHARS).chain(['…']).collect(),
        false => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pi_ai::message::UserMessage;
    use pi_session::Session;

    #[test]
    fn the_current_branch_comes_last() {
        let mut session = Session::in_memory(std::path::Path::new("/w"));
        let append = |session: &mut Session, text: &str| {
            let message = AgentMessage::User(UserMessage::new(text, vec![]));
            session.append_message(&message).unwrap().id.clone()
        };
        let root = append(&mut session, "root");
        let old = append(&mut session, "old\nway");
        session.set_leaf(Some(&root)).unwrap();
        let new = append(&mut session, "new way");
        session.append_label(&old, Some("left")).unwrap();
        session.set_leaf(Some(&old)).unwrap();
        assert_eq!(
            lines(&session.tree(), session.leaf_id()),
            [
                format!("* {root} you: root"),
                format!("    {new} you: new way"),
                format!("*   {old} [left] you: old way  <- here"),
            ]
        );
        session.set_leaf(Some(&new)).unwrap();
        let last = lines(&session.tree(), session.leaf_id()).pop();
        assert_eq!(last, Some(format!("*   {new} you: new way  <- here")));
    }
}
