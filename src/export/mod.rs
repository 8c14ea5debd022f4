//! Exports a session as one HTML page that contains all of it and needs no other file. The page's
//! own code is in `page/`.

mod colors;

mod error;
mod page;
mod page_data;

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use serde_json::Value;

pub use colors::PageColors;
pub use error::ExportError;
#[doc(hidden)]
pub use page::SOURCES as PAGE_SOURCES;

use page::Page;
use pi_session::{ReadOnlySession, Warning, is_session_file};

/// Facts about a session that its file does not contain. They are known only while it is open.
#[derive(Clone, Debug, Default)]
pub struct PageContext {
    pub system_prompt: Option<String>,
    pub tools: Vec<ToolDescription>,
    /// Colours of the user's theme, unless it is one of the two that every page has.
    pub colors: Option<PageColors>,
}

#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct ToolDescription {
    pub name: String,
    pub description: String,
    pub parameters: Value,
}

/// Exports the session in a file, without changing the file. Returns the path of the page as it was
/// passed, or relative to the current folder if none was passed.
pub fn export_file(
    input: &Path,
    output: Option<&Path>,
    colors: Option<PageColors>,
) -> Result<(PathBuf, Vec<Warning>), ExportError> {
    if !input.exists() {
        return Err(ExportError::NoFile(input.to_owned()));
    }
    let (snapshot, warnings) = ReadOnlySession::read(input)?;
    let snapshot = snapshot.ok_or(ExportError::Nothing)?;
    let context = PageContext {
        colors,
        ..PageContext::default()
    };
    let page = export(&snapshot, input, &context, output)?;
    Ok((page, warnings))
}

/// Exports an open session, whose file is `stored`. Returns the path of the page.
pub fn export(
    snapshot: &ReadOnlySession,
    stored: &Path,
    context: &PageContext,
    output: Option<&Path>,
) -> Result<PathBuf, ExportError> {
    let output = output.map_or_else(|| default_name(stored), Path::to_path_buf);
    if is_session_file(&output) {
        return Err(ExportError::OverSession(output));
    }
    let failed = |source| ExportError::Write {
        path: output.clone(),
        source,
    };
    let lines = page_data::lines(snapshot, context);
    let page = Page::new(&lines, context.colors.as_ref()).map_err(failed)?;
    let mut file = BufWriter::new(File::create(&output).map_err(failed)?);
    page.write(&mut file).map_err(failed)?;
    file.flush().map_err(failed)?;
    Ok(output)
}

/// Returns `pi-session-<name of the file>.html`, in the current folder.
fn default_name(stored: &Path) -> PathBuf {
    let name = stored.file_name().map(OsStr::to_string_lossy);
    let name = name.unwrap_or_default();
    let base = name.strip_suffix(".jsonl").unwrap_or(&name);
    PathBuf::from(format!("pi-session-{base}.html"))
}

#[cfg(test)]
mod tests;
