//! Where JavaScript comes in: what it asks, prints and breaks.

use std::sync::Arc;

use futures::future::BoxFuture;
use js_runtime::{Console, Fault, Held, Host, HostError, Stop};

use super::BridgeHost;
use super::envelope::{Since, parse, text};
use crate::agent::event::WaitOutcome;
use crate::ai::nesting;
use crate::extensions::lifecycle::reports::Ending;

impl Host for BridgeHost {
    fn call_sync(&self, method: &str, args: &str) -> Result<String, HostError> {
        // The thread is not ours.
        nesting::with_room(|| match method {
            "child.entriesSince" | "child.context" => {
                let text = self.second_sessions.text(method, args);
                text.unwrap_or_else(|| Ok(String::new()))
            }
            // Already JSON, and possibly long.
            _ if method.starts_with("sessions.") => match self.sessions.text(method, args) {
                Some(answer) => answer,
                None => self.answer(method, args).map(|value| text(&value)),
            },
            "session.since" => {
                let since: Since = parse(method, args)?;
                Ok(self.actions(args)?.session_since(&since.id, since.since))
            }
            "session.context" => Ok(self.actions(args)?.session_context()),
            _ => self.answer(method, args).map(|value| text(&value)),
        })
    }

    fn call(
        self: Arc<Self>,
        method: String,
        args: String,
    ) -> BoxFuture<'static, Result<String, HostError>> {
        Box::pin(async move { self.wait(&method, &args).await.map(|value| text(&value)) })
    }

    fn console(&self, console: Console, line: &str) {
        (self.console)(console, line);
    }

    fn held(&self, held: Held) {
        self.take_held(held);
    }

    fn fault(&self, fault: Fault) {
        match fault {
            Fault::Uncaught {
                plain,
                report,
                author,
            } => {
                let extension = self.culprit(author).extension;
                self.report_thrown(extension, "uncaught", plain, Some(report));
            }
            Fault::Slip {
                message,
                stack,
                author,
            } => {
                let extension = self.culprit(author).extension;
                self.warn(extension, "load", message, &stack);
            }
            Fault::Exit { code, author } => self.report(
                self.culprit(author).extension,
                "process.exit",
                format!(
                    "called process.exit({code}): extensions cannot end pi; use ctx.shutdown()"
                ),
            ),
            Fault::Refused { what, author } => {
                let culprit = self.culprit(author);
                self.report(culprit.extension, &culprit.what, what);
            }
            Fault::Stopped {
                stop: Stop::Asked, ..
            } => {
                self.end_stretch(WaitOutcome::Cancelled);
            }
            Fault::Stopped {
                stop,
                author,
                stack,
            } => {
                let reason = stop;
                self.stopped(Ending { reason, stack }, author);
            }
        }
    }
}
