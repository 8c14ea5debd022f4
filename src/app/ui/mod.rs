//! Messages of extensions on their way to the user.

pub(crate) mod dialog_events;
pub(crate) mod outbox;

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::prompt::tickets::TicketQueue;
use crate::session::EventSink;
use outbox::UiOutbox;

/// The user interface of the mode, as extensions see it.
pub(crate) struct UserInterface {
    mode: Arc<dyn EventSink>,
    /// The runtime of the program. Extensions call from threads that have another one or none.
    handle: Handle,
    outbox: UiOutbox,
    /// Orders messages that handlers cause before the event that is being handled.
    pub emit_first: TicketQueue,
    /// Number of dialogs of extensions that the user has not answered.
    pub open_dialogs: Arc<watch::Sender<usize>>,
    /// Methods of `ctx.ui` that the client supports; `None` if it did not say.
    methods: Mutex<Option<HashSet<String>>>,
}

impl UserInterface {
    pub fn new(mode: Arc<dyn EventSink>, handle: Handle) -> Arc<Self> {
        Arc::new(Self {
            mode,
            handle,
            outbox: UiOutbox::default(),
            emit_first: TicketQueue::default(),
            open_dialogs: Arc::default(),
            methods: Mutex::default(),
        })
    }

    pub fn set_methods(&self, methods: Option<HashSet<String>>) {
        *self.methods.lock() = methods;
    }

    /// Returns whether the client supports the method. A client that did not say supports all.
    pub fn supports(&self, method: &str) -> bool {
        let methods = self.methods.lock();
        methods.as_ref().is_none_or(|known| known.contains(method))
    }
}
