//! Additions to deno_runtime that make an isolate behave like Node: standard streams, workers, TLS
//! certificates and the inspector.

pub(crate) mod bootstrap;
pub(crate) mod certificates;
pub(crate) mod inspector;
pub(crate) mod plain_host;
pub(crate) mod private_pipe;
pub(crate) mod stdio;
pub(crate) mod web_worker;
