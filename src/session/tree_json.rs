//! The tree as nested JSON, for clients and extensions. Written as text: a conversation is as
//! deep as it is long, and values of that depth cannot be built or dropped by recursion.

use serde_json::{Value, json};

use crate::tree::TreeNode;

enum Step<'a> {
    Text(&'static str),
    Node(&'a TreeNode),
}

/// Returns `[{"entry":…,"children":[…],"label"?,"labelTimestamp"?}]`.
pub(crate) fn write(nodes: &[TreeNode]) -> String {
    let roots: Vec<&TreeNode> = nodes.iter().filter(|node| node.parent.is_none()).collect();
    let mut out = String::from("[");
    let mut steps = Vec::new();
    push_nodes(&mut steps, roots.into_iter());
    while let Some(step) = steps.pop() {
        let node = match step {
            Step::Text(text) => {
                out += text;
                continue;
            }
            Step::Node(node) => node,
        };
        out += "{\"entry\":";
        out += &node.entry.wire_json();
        let label = node.label.as_ref().map(|text| ("label", text));
        let time = node.label_timestamp.as_ref();
        for (name, text) in label
            .into_iter()
            .chain(time.map(|time| ("labelTimestamp", time)))
        {
            out += &format!(",\"{name}\":{}", Value::from(text.as_str()));
        }
        out += ",\"children\":[";
        steps.push(Step::Text("]}"));
        push_nodes(&mut steps, node.children.iter().map(|child| &nodes[*child]));
    }
    out.push(']');
    out
}

/// Pushes the nodes in order, with commas between them.
fn push_nodes<'a>(
    steps: &mut Vec<Step<'a>>,
    nodes: impl DoubleEndedIterator<Item = &'a TreeNode> + ExactSizeIterator,
) {
    for (index, node) in nodes.enumerate().rev() {
        steps.push(Step::Node(node));
        if index > 0 {
            steps.push(Step::Text(","));
        }
    }
}

/// Returns the data of the responses to `get_entries` and `get_tree`.
pub(crate) fn with_leaf_id(member: &str, list: &str, leaf: Option<&str>) -> String {
    format!("{{\"{member}\":{list},\"leafId\":{}}}", json!(leaf))
}
