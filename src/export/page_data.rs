//! The data of the page, one line each: the header, the context, and each entry exactly as it is
//! stored. So a line that a browser cannot read costs one entry, and members that this program does
//! not know are in the page, too.

use std::borrow::Cow;

use serde::Serialize;

use super::{PageContext, ToolDescription};
use pi_base::secrets;
use pi_session::ReadOnlySession;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ContextLine<'a> {
    leaf_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_prompt: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    tools: &'a [ToolDescription],
}

pub(super) fn lines<'a>(snapshot: &'a ReadOnlySession, context: &PageContext) -> Vec<Cow<'a, str>> {
    let about = ContextLine {
        leaf_id: snapshot.leaf.as_deref(),
        system_prompt: context.system_prompt.as_deref(),
        tools: &context.tools,
    };
    let about = serde_json::to_string(&about).expect("all keys are strings");
    let first = [
        escape_for_script(Cow::Borrowed(&*snapshot.header.raw)),
        escape_for_script(redacted(Cow::Owned(about))),
    ];
    let entries = snapshot.entries.iter();
    let entries = entries.map(|entry| escape_for_script(redacted(entry.wire_json())));
    first.into_iter().chain(entries).collect()
}

/// Replaces known secrets. The replacement needs no escape in JSON.
fn redacted(json: Cow<'_, str>) -> Cow<'_, str> {
    let redacted = match secrets::redact(&json) {
        Cow::Borrowed(_) => None,
        Cow::Owned(redacted) => Some(redacted),
    };
    redacted.map_or(json, Cow::Owned)
}

/// Escapes JSON for a `<script>` element: no `<` can end the element or begin a comment in it. Such
/// a character is always inside a string, where an escape means the same. A carriage return, which
/// HTML would treat as a line end, is always outside.
fn escape_for_script(json: Cow<'_, str>) -> Cow<'_, str> {
    if !json.contains(['<', '\r']) {
        return json;
    }
    Cow::Owned(json.replace('<', "\\u003c").replace('\r', " "))
}
