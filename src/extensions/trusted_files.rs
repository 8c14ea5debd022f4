//! Tells the loader of JavaScript which contents of a project's files the user trusts.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use js_runtime::{ExpectedFiles, expect_files};
use pi_resources::paths::Paths;
use pi_resources::trust;

/// Restricts the loads that follow to the files of the project that were trusted. Called after
/// each decision about the project.
pub fn expect_trusted_files(paths: &Paths) {
    let expected = trust::expected_files(paths).map(|expected| ExpectedFiles {
        files: HashMap::from_iter(expected.files),
        folders: expected.folders,
    });
    expect_files(&paths.cwd, expected);
}

/// Restricts the loads that follow to these contents of files that tools have changed, as SHA-256
/// in hexadecimal digits. Other files are not restricted.
pub fn expect_allowed_files(files: Vec<(PathBuf, String)>) {
    // No project has this relative path.
    let place = Path::new("protected places");
    let expected = (!files.is_empty()).then(|| ExpectedFiles {
        files: HashMap::from_iter(files),
        folders: Vec::new(),
    });
    expect_files(place, expected);
}
