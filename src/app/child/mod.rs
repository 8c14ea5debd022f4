//! Child sessions, which extensions start with `createAgentSession`.

mod extensions;
pub(crate) mod session;
