//! Delivery of events to handlers: the table of all events, the dispatch of those whose
//! results count, and the queue of the others.

pub mod dispatch;
pub mod event_body;
pub mod message_delta;
pub mod mutations;
pub mod queue;
pub mod table;
mod tool_events;
pub mod turn_end;
