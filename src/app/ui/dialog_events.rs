//! Emits `ui_prompt_start` and `ui_prompt_end` around dialogs.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::watch;

use pi_agent::event::UiMethod;
use pi_extensions::Extensions;

const START: &str = "ui_prompt_start";
const END: &str = "ui_prompt_end";

/// An open dialog, until dropped.
pub(crate) struct DialogEvents {
    extensions: Arc<Extensions>,
    /// The number of open dialogs.
    open_dialogs: Arc<watch::Sender<usize>>,
    dialog: Option<Value>,
}

impl DialogEvents {
    pub fn open(
        extensions: Arc<Extensions>,
        open_dialogs: &Arc<watch::Sender<usize>>,
        method: &UiMethod,
    ) -> Self {
        open_dialogs.send_modify(|open| *open += 1);
        let has_handlers = extensions.has_handlers(START) || extensions.has_handlers(END);
        let dialog = has_handlers.then(|| describe_dialog(method)).flatten();
        if let Some(dialog) = &dialog {
            extensions.deliver_soon(START, || event_of(dialog));
        }
        Self {
            extensions,
            open_dialogs: open_dialogs.clone(),
            dialog,
        }
    }
}

impl Drop for DialogEvents {
    fn drop(&mut self) {
        self.open_dialogs.send_modify(|open| *open -= 1);
        if let Some(dialog) = &self.dialog {
            self.extensions.deliver_soon(END, || event_of(dialog));
        }
    }
}

fn event_of(dialog: &Value) -> Value {
    let mut event = json!({ "reason": "ui_prompt" });
    if let (Value::Object(event), Value::Object(dialog)) = (&mut event, dialog) {
        event.extend(dialog.clone());
    }
    event
}

/// Returns `None` for methods without an answer.
fn describe_dialog(method: &UiMethod) -> Option<Value> {
    let (kind, title) = match method {
        UiMethod::Select { title, .. } => ("select", title),
        UiMethod::Confirm { title, .. } => ("confirm", title),
        UiMethod::Input { title, .. } => ("input", title),
        UiMethod::Editor { title, .. } => ("editor", title),
        _ => return None,
    };
    Some(json!({ "kind": kind, "title": title }))
}
