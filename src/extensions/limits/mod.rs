//! Limits on the time that extensions take: deadlines, slow notices, abandoned handlers,
//! use of the shared JavaScript thread, and counters of all of it.

pub mod abandoned;
pub mod counters;
pub mod handler_clock;
pub mod open_calls;
pub mod reentrancy;
pub mod slow_notice;
pub mod thread_usage;
