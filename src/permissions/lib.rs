//! Rules about tool calls, such as `bash(git push *)` or `edit(~/.ssh/**)`: which calls run, which
//! are asked about and which never run. The crate knows neither settings nor sessions.

mod decide;
mod paths;
mod pattern;
mod rule;
mod shell;

pub use decide::{Access, Answer, Call, Decision, Rules};
pub use paths::{normalize, resolve};
pub use rule::{Rule, RuleError};
pub use shell::{
    Command, FileUse, GaveUp, Line, Piece, Place, Word, Writes, parse, visible_writes,
};
