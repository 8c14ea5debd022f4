//! Calls of extensions that have not ended: commands, handlers, tools. A reload would make them
//! stale.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::watch;

use crate::lifecycle::Extensions;
use crate::registry::ExtensionId;

#[derive(Default)]
pub struct OpenCalls {
    /// By number, so that the oldest is the first.
    calls: watch::Sender<BTreeMap<u64, OpenCall>>,
    numbers: AtomicU64,
}

#[derive(Clone)]
struct OpenCall {
    extension: ExtensionId,
    /// The event, or `command`, `tool:<name>`.
    event: String,
}

/// Ends the call when dropped.
pub struct OpenCallGuard<'a> {
    calls: &'a OpenCalls,
    number: u64,
}

impl OpenCalls {
    pub fn begin(&self, extension: ExtensionId, event: &str) -> OpenCallGuard<'_> {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let event = event.to_owned();
        self.calls
            .send_modify(|calls| _ = calls.insert(number, OpenCall { extension, event }));
        OpenCallGuard {
            calls: self,
            number,
        }
    }
}

impl Drop for OpenCallGuard<'_> {
    fn drop(&mut self) {
        self.calls
            .calls
            .send_modify(|calls| _ = calls.remove(&self.number));
    }
}

impl Extensions {
    /// Returns the file and the event of the oldest open call.
    pub fn open_call(&self) -> Option<(String, String)> {
        let host = self.current().host.clone();
        let call = host.open_calls.calls.borrow().values().next().cloned()?;
        let path = host.registry.lock().path(call.extension);
        Some((path, call.event))
    }

    /// Returns when no call is open, or other extensions have been loaded.
    pub async fn wait_calls_ended(&self) {
        let installed = self.installed.notified();
        let mut calls = self.current().host.open_calls.calls.subscribe();
        tokio::select! {
            // An error means that the generation is gone.
            _ = calls.wait_for(BTreeMap::is_empty) => {}
            () = installed => {}
        }
    }
}
