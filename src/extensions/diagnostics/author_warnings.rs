//! What extensions do that their authors cannot mean, and that goes on all the same: they
//! are told of it, with the line.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::ignored_results::{Unheard, unheard};
use crate::agent::event::{Event, ExtensionError};
use crate::extensions::bridge::BridgeHost;
use crate::extensions::events::table;
use crate::extensions::registry::ExtensionId;

/// Of a queued handler: the members of its answer that the event has not.
#[derive(Deserialize)]
pub(in crate::extensions::bridge) struct Answered {
    extension: ExtensionId,
    event: String,
    answer: Value,
    /// Where the handler is.
    frame: String,
}

impl BridgeHost {
    pub(in crate::extensions::bridge) fn tell_unheard(&self, answered: Answered) {
        let Some((_, kind)) = table::find(&answered.event) else {
            return;
        };
        let unheard = unheard(kind, &Map::new(), &answered.answer);
        for slip in self.news_of(answered.extension, kind.name, unheard) {
            self.warn(answered.extension, kind.name, slip, &answered.frame);
        }
    }

    /// Of what means nothing in an answer: what was not told before.
    pub fn news_of(
        &self,
        extension: ExtensionId,
        event: &str,
        unheard: Vec<Unheard>,
    ) -> Vec<String> {
        match unheard.is_empty() {
            true => Vec::new(),
            false => self.told.lock().news(extension, event, unheard),
        }
    }

    /// [`Self::tell_slip`] of what does no harm.
    pub(in crate::extensions) fn warn(
        &self,
        extension: ExtensionId,
        event: &str,
        message: String,
        frame: &str,
    ) {
        let path = self.registry.lock().path(extension);
        let stack = stack_of(&message, frame);
        let warning = ExtensionError::thrown(path, event, message, stack).as_warning();
        self.tell(Event::ExtensionError(warning));
    }

    /// `frame` is empty if it is not known where it is.
    pub(in crate::extensions) fn tell_slip(
        &self,
        extension: ExtensionId,
        event: &str,
        slip: String,
        frame: &str,
    ) {
        let stack = stack_of(&slip, frame);
        self.report_thrown(extension, event, slip, stack);
    }
}

fn stack_of(sentence: &str, frame: &str) -> Option<String> {
    let frame = js_runtime::readable_stack(frame);
    (!frame.is_empty()).then(|| format!("{sentence}\n{frame}"))
}
