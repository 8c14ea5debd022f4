//! The table "clients" of `docs/compatibility.md` has one row for each third-party client that the
//! tests run. `PI_CLIENTS=write` writes the rows of the tests that pass; otherwise a test that
//! passes insists on its row.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{cache_dir, locked};

const BEGIN: &str = "<!-- written by tests/it/rpc/client_table.rs -->\n";
const HEAD: &str = "| client | version | what was run | result |\n|---|---|---|---|\n";
/// The beginning of the section after the table.
const END: &str = "\n## ";

pub struct Client {
    pub name: &'static str,
    pub version: &'static str,
    pub what: &'static str,
}

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/compatibility.md")
}

impl Client {
    /// Called at the end of a test that has driven everything in the client.
    pub fn passes(&self) {
        let Self {
            name,
            version,
            what,
        } = self;
        let key = format!("| {name} | {version} |");
        let row = format!("{key} {what} | passes |");
        if std::env::var("PI_CLIENTS").as_deref() == Ok("write") {
            return write(&key, &row);
        }
        let text = fs::read_to_string(path()).unwrap();
        assert!(
            text.lines().any(|line| line == row),
            "docs/compatibility.md should have this row (PI_CLIENTS=write writes it):\n{row}"
        );
    }
}

/// Tests run in separate processes, which may write at the same time.
fn write(key: &str, row: &str) {
    fs::create_dir_all(cache_dir().join("pi-tests")).unwrap();
    let _lock = locked(&cache_dir().join("pi-tests/client-table.lock"));
    let text = fs::read_to_string(path()).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("the mark of the table");
    let (table, after) = rest.split_once(END).expect("a section follows the table");
    let rows = table.lines().skip(HEAD.lines().count());
    let mut rows: Vec<&str> = rows.filter(|line| !line.starts_with(key)).collect();
    rows.push(row);
    rows.sort_unstable();
    let rows = rows.join("\n");
    fs::write(path(), format!("{before}{BEGIN}{HEAD}{rows}\n{END}{after}")).unwrap();
}
