//! Child sessions, which extensions start with `createAgentSession`.

mod calls;
mod extensions;
pub(crate) mod session;
