//! Child sessions, which extensions start with `createAgentSession`.

mod extensions;
pub(in crate::app) mod session;
