//! Messages of extensions on their way to the user.

pub(in crate::app) mod dialog_events;
pub(in crate::app) mod outbox;
