//! Errors of exports. Clients compare the text of the first three.

use std::io;
use std::path::PathBuf;

use pi_session::SessionError;

#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error("Cannot export in-memory session to HTML")]
    InMemory,
    #[error("Nothing to export yet - start a conversation first")]
    Nothing,
    #[error("File not found: {}", .0.display())]
    NoFile(PathBuf),
    #[error(
        "{} is a session, and exporting would write over it; choose another name for the page",
        .0.display()
    )]
    OverSession(PathBuf),
    #[error("could not write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("pi is ending; nothing was exported")]
    Ending,
    #[error(transparent)]
    Session(#[from] SessionError),
}
