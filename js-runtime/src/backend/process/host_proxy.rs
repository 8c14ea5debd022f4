//! The host as the isolate of a process of its own sees it.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use js_runtime_ext::{Console, Fault, Held, Host, HostError};

use super::Link;
use super::wire::{self, Kind};

pub(crate) struct Proxy {
    pub link: Arc<Link>,
    /// Methods that are not waited for.
    pub one_way: Vec<String>,
}

impl Host for Proxy {
    fn call_sync(&self, method: &str, args: &str) -> Result<String, HostError> {
        if self.one_way.iter().any(|name| name == method) {
            self.link.say(Kind::HostTell, 0, method, args.as_bytes());
            return Ok(String::new());
        }
        self.link.ask_and_wait(method, args)
    }

    fn call(
        self: Arc<Self>,
        method: String,
        args: String,
    ) -> BoxFuture<'static, Result<String, HostError>> {
        async move {
            let answer = self.link.ask(&method, &args);
            answer
                .await
                .unwrap_or_else(|_| Err(HostError::new(format!("{method}: the program is gone"))))
        }
        .boxed()
    }

    fn console(&self, console: Console, line: &str) {
        let stream = wire::json(&console);
        self.link.say(Kind::Console, 0, &stream, line.as_bytes());
    }

    fn fault(&self, fault: Fault) {
        self.link.say(Kind::Fault, 0, &wire::json(&fault), b"");
    }

    fn held(&self, held: Held) {
        self.link.say(Kind::Held, 0, &wire::json(&held), b"");
    }
}
