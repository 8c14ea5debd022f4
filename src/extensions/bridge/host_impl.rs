//! Implements [`Host`]: entry points for calls, console output and faults of JavaScript.

use std::sync::Arc;

use futures::future::BoxFuture;
use js_runtime::{Console, Fault, Host, HostError, Stop, ThreadEvent};

use super::BridgeHost;
use super::envelope::{SinceArgs, json_text, parse};
use crate::lifecycle::reports::IsolateEnd;
use pi_agent::event::WaitOutcome;
use pi_ai::json::depth;

impl Host for BridgeHost {
    fn call_sync(&self, method: &str, args: &str) -> Result<String, HostError> {
        // The JavaScript thread's stack may be small.
        depth::with_enough_stack(|| match method {
            "child.entriesSince" | "child.context" => {
                let text = self.child_sessions.serve_json(method, args);
                text.unwrap_or_else(|| Ok(String::new()))
            }
            // These results are JSON text already, and may be long.
            _ if method.starts_with("sessions.") => match self.sessions.serve_json(method, args) {
                Some(result) => result,
                None => self
                    .handle_sync(method, args)
                    .map(|value| json_text(&value)),
            },
            "session.since" => {
                let since: SinceArgs = parse(method, args)?;
                Ok(self.actions(args)?.session_since(&since.id, since.since))
            }
            "session.context" => Ok(self.actions(args)?.session_context()),
            _ => self
                .handle_sync(method, args)
                .map(|value| json_text(&value)),
        })
    }

    fn call(
        self: Arc<Self>,
        method: String,
        args: String,
    ) -> BoxFuture<'static, Result<String, HostError>> {
        Box::pin(async move {
            self.handle_async(&method, &args)
                .await
                .map(|value| json_text(&value))
        })
    }

    fn console(&self, console: Console, line: &str) {
        (self.console)(console, line);
    }

    fn thread_event(&self, held: ThreadEvent) {
        self.handle_thread_event(held);
    }

    fn fault(&self, fault: Fault) {
        match fault {
            Fault::Uncaught {
                plain,
                report,
                author,
            } => {
                let extension = self.attribute(author).extension;
                self.report_thrown(extension, "uncaught", plain, Some(report));
            }
            Fault::Diagnostic {
                message,
                stack,
                author,
            } => {
                let extension = self.attribute(author).extension;
                self.warn(extension, "load", message, &stack);
            }
            Fault::Exit { code, author } => self.report(
                self.attribute(author).extension,
                "process.exit",
                format!(
                    "called process.exit({code}): extensions cannot end pi; use ctx.shutdown()"
                ),
            ),
            Fault::Refused { what, author } => {
                let attribution = self.attribute(author);
                self.report(attribution.extension, &attribution.what, what);
            }
            Fault::Stopped {
                stop: Stop::Requested,
                ..
            } => {
                self.end_time_slice(WaitOutcome::Cancelled);
            }
            Fault::Stopped {
                stop,
                author,
                stack,
            } => {
                let reason = stop;
                self.record_stop(IsolateEnd { reason, stack }, author);
            }
        }
    }
}
