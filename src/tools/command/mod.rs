//! Shell commands: how they are started, stopped and shown.

mod interactive_wait;
pub(crate) mod noninteractive;
pub(crate) mod output;
pub mod process;
pub mod run;
pub mod shell;
