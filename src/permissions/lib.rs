//! Rules about tool calls, such as `bash(git push *)` or `edit(~/.ssh/**)`: which calls run, which
//! are asked about and which never run. The crate knows neither settings nor sessions.

mod decide;
mod paths;
mod pattern;
mod rule;
mod shell;
mod unreadable;

pub use decide::{Access, Call, Decision, Rules, Verdict};
pub use rule::{Rule, RuleError};
pub use shell::{BaseFolders, Writes, visible_writes};
pub use unreadable::Unreadable;
