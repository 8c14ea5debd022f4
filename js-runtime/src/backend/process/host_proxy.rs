//! The host as an isolate in a host process sees it: forwards all calls to the program.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use js_runtime_ext::{Console, Fault, Host, HostError, ThreadEvent};

use super::ChildLink;
use super::wire::{self, Kind};

pub(crate) struct HostProxy {
    pub link: Arc<ChildLink>,
    /// Methods whose result is not awaited.
    pub one_way: Vec<String>,
}

impl Host for HostProxy {
    fn call_sync(&self, method: &str, args: &str) -> Result<String, HostError> {
        if self.one_way.iter().any(|name| name == method) {
            self.link.send(Kind::HostNotify, 0, method, args.as_bytes());
            return Ok(String::new());
        }
        self.link.call_sync(method, args)
    }

    fn call(
        self: Arc<Self>,
        method: String,
        args: String,
    ) -> BoxFuture<'static, Result<String, HostError>> {
        async move {
            let result = self.link.call(&method, &args);
            result
                .await
                .unwrap_or_else(|_| Err(HostError::new(format!("{method}: the program is gone"))))
        }
        .boxed()
    }

    fn console(&self, console: Console, line: &str) {
        let stream = wire::json(&console);
        self.link.send(Kind::Console, 0, &stream, line.as_bytes());
    }

    fn fault(&self, fault: Fault) {
        self.link.send(Kind::Fault, 0, &wire::json(&fault), b"");
    }

    fn thread_event(&self, event: ThreadEvent) {
        self.link
            .send(Kind::ThreadEvent, 0, &wire::json(&event), b"");
    }
}
