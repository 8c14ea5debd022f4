//! Warnings to authors about likely mistakes that do not stop the extension. Each is
//! reported once, with its source position.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::ignored_results::{IgnoredMember, ignored_members};
use crate::bridge::BridgeHost;
use crate::events::table;
use crate::registry::ExtensionId;
use pi_agent::event::{Event, ExtensionError};

/// Members of a queued handler's result that the event does not have.
#[derive(Deserialize)]
pub(crate) struct QueuedResult {
    extension: ExtensionId,
    event: String,
    #[serde(rename = "answer")]
    members: Value,
    /// Stack frame of the handler.
    frame: String,
}

impl BridgeHost {
    pub(crate) fn warn_of_ignored_result(&self, result: QueuedResult) {
        let Some((_, kind)) = table::find(&result.event) else {
            return;
        };
        let ignored = ignored_members(kind, &Map::new(), &result.members);
        for message in self.unreported(result.extension, kind.name, ignored) {
            self.warn(result.extension, kind.name, message, &result.frame);
        }
    }

    /// Returns the messages of those ignored members that were not reported before.
    pub fn unreported(
        &self,
        extension: ExtensionId,
        event: &str,
        ignored: Vec<IgnoredMember>,
    ) -> Vec<String> {
        match ignored.is_empty() {
            true => Vec::new(),
            false => self
                .reported_warnings
                .lock()
                .filter_new(extension, event, ignored),
        }
    }

    /// Like [`Self::report_at`], for a mistake after which the extension still works.
    pub(crate) fn warn(&self, extension: ExtensionId, event: &str, message: String, frame: &str) {
        let path = self.registry.lock().path(extension);
        let stack = stack_of(&message, frame);
        let warning = ExtensionError::from_thrown(path, event, message, stack).as_warning();
        self.emit(Event::ExtensionError(warning));
    }

    /// Reports an error at a stack frame. `frame` is empty if the position is unknown.
    pub(crate) fn report_at(
        &self,
        extension: ExtensionId,
        event: &str,
        message: String,
        frame: &str,
    ) {
        let stack = stack_of(&message, frame);
        self.report_thrown(extension, event, message, stack);
    }
}

fn stack_of(message: &str, frame: &str) -> Option<String> {
    let frame = js_runtime::readable_stack(frame);
    (!frame.is_empty()).then(|| format!("{message}\n{frame}"))
}
