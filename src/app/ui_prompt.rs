//! Tells extensions that the user is being asked something, and no more.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::watch;

use crate::agent::event::UiMethod;
use crate::extensions::Extensions;

const START: &str = "ui_prompt_start";
const END: &str = "ui_prompt_end";

/// The question stands until this is dropped.
pub(super) struct UiPrompt {
    extensions: Arc<Extensions>,
    /// How many stand.
    questions: Arc<watch::Sender<usize>>,
    about: Option<Value>,
}

impl UiPrompt {
    pub fn begin(
        extensions: Arc<Extensions>,
        questions: &Arc<watch::Sender<usize>>,
        method: &UiMethod,
    ) -> Self {
        questions.send_modify(|open| *open += 1);
        let heard = extensions.has_handlers(START) || extensions.has_handlers(END);
        let about = heard.then(|| about(method)).flatten();
        if let Some(about) = &about {
            extensions.notify_soon(START, || typed(START, about));
        }
        Self {
            extensions,
            questions: questions.clone(),
            about,
        }
    }
}

impl Drop for UiPrompt {
    fn drop(&mut self) {
        self.questions.send_modify(|open| *open -= 1);
        if let Some(about) = &self.about {
            self.extensions.notify_soon(END, || typed(END, about));
        }
    }
}

fn typed(name: &str, about: &Value) -> Value {
    let mut event = json!({ "type": name, "reason": "ui_prompt" });
    if let (Value::Object(event), Value::Object(about)) = (&mut event, about) {
        event.extend(about.clone());
    }
    event
}

/// `None` for what is no question.
fn about(method: &UiMethod) -> Option<Value> {
    let (kind, title) = match method {
        UiMethod::Select { title, .. } => ("select", title),
        UiMethod::Confirm { title, .. } => ("confirm", title),
        UiMethod::Input { title, .. } => ("input", title),
        UiMethod::Editor { title, .. } => ("editor", title),
        _ => return None,
    };
    Some(json!({ "kind": kind, "title": title }))
}
