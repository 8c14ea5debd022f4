//! The HTML page around the data. Its script and style are made at build time (`page/build.rs`),
//! and the browser runs nothing that does not have their hashes.

use std::borrow::Cow;
use std::io::{self, Read, Write};

use askama::Template;
use flate2::read::ZlibDecoder;

use super::colors::PageColors;

include!(concat!(env!("OUT_DIR"), "/page/hashes.rs"));
static SCRIPT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/page/script.zlib"));
static STYLE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/page/style.zlib"));
/// Folder with a copy of the page's sources and their installed npm packages, for tests of the types.
pub const SOURCES: &str = concat!(env!("OUT_DIR"), "/page-sources");

#[derive(Template)]
#[template(path = "page.html")]
pub(super) struct Page<'a> {
    version: &'static str,
    script: String,
    script_hash: &'static str,
    style: String,
    style_hash: &'static str,
    colors: Option<&'a PageColors>,
    lines: &'a [Cow<'a, str>],
}

impl<'a> Page<'a> {
    pub(super) fn new(
        lines: &'a [Cow<'a, str>],
        colors: Option<&'a PageColors>,
    ) -> io::Result<Self> {
        Ok(Self {
            version: pi_base::VERSION,
            script: inflate(SCRIPT)?,
            script_hash: SCRIPT_HASH,
            style: inflate(STYLE)?,
            style_hash: STYLE_HASH,
            colors,
            lines,
        })
    }

    pub(super) fn write(&self, target: &mut impl Write) -> io::Result<()> {
        self.write_into(target)
    }
}

fn inflate(packed: &[u8]) -> io::Result<String> {
    let mut text = String::new();
    ZlibDecoder::new(packed).read_to_string(&mut text)?;
    Ok(text)
}
