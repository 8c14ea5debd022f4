//! What the page is told: the header, what is known besides the file, and each entry
//! exactly as it is stored, a line each. So one line that a browser cannot read costs
//! one entry, and what this program does not know is in the page all the same.

use std::borrow::Cow;

use serde::Serialize;

use super::{Told, ToolDescription};
use crate::session::Snapshot;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct About<'a> {
    leaf_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_prompt: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    tools: &'a [ToolDescription],
}

pub(super) fn lines<'a>(snapshot: &'a Snapshot, told: &Told) -> Vec<Cow<'a, str>> {
    let about = About {
        leaf_id: snapshot.leaf.as_deref(),
        system_prompt: told.system_prompt.as_deref(),
        tools: &told.tools,
    };
    let about = serde_json::to_string(&about).expect("all keys are strings");
    let first = [
        for_script(Cow::Borrowed(&*snapshot.header.raw)),
        for_script(Cow::Owned(about)),
    ];
    let entries = snapshot.entries.iter();
    let entries = entries.map(|entry| for_script(entry.wire_json()));
    first.into_iter().chain(entries).collect()
}

/// JSON that may stand in a `<script>`: no `<` can end the element or begin a comment
/// in it. Such a character is always inside a string, where an escape means the same;
/// a carriage return, which HTML would take for a line end, is always outside.
fn for_script(json: Cow<'_, str>) -> Cow<'_, str> {
    if !json.contains(['<', '\r']) {
        return json;
    }
    Cow::Owned(json.replace('<', "\\u003c").replace('\r', " "))
}
