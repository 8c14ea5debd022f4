//! Resolves paths as models write them: with a leading `@`, with `~`, with Unicode spaces, and
//! for reading with the names of macOS screenshots.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use pi_base::normalize;
use regex::Regex;
use unicode_normalization::UnicodeNormalization;

/// Returns the absolute path that `path` names.
pub fn resolve(path: &str, cwd: &Path) -> PathBuf {
    resolve_with_home(path, cwd, std::env::home_dir().as_deref())
}

/// Like [`resolve`]. If the path does not exist, returns the first existing variant of the name:
/// a narrow no-break space before AM/PM, decomposed characters, curly apostrophes. Blocks,
/// because it accesses the file system.
pub fn resolve_for_reading(path: &str, cwd: &Path) -> PathBuf {
    static AM_PM: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"(?i) (AM|PM)\.").expect("a constant pattern"));
    let resolved = resolve(path, cwd);
    if resolved.exists() {
        return resolved;
    }
    let Some(text) = resolved.to_str() else {
        return resolved;
    };
    let decomposed: String = text.nfd().collect();
    let variants = [
        AM_PM.replace_all(text, "\u{202f}$1.").into_owned(),
        text.replace('\'', "\u{2019}"),
        decomposed.replace('\'', "\u{2019}"),
        decomposed,
    ];
    variants
        .into_iter()
        .filter(|variant| variant != text)
        .map(PathBuf::from)
        .find(|variant| variant.exists())
        .unwrap_or(resolved)
}

fn resolve_with_home(path: &str, cwd: &Path, home: Option<&Path>) -> PathBuf {
    let path = path.strip_prefix('@').unwrap_or(path);
    let path: String = path.chars().map(plain_space).collect();
    if let Some(home) = home {
        if path == "~" {
            return home.to_owned();
        }
        if let Some(rest) = path.strip_prefix("~/") {
            return home.join(rest.trim_start_matches('/'));
        }
    }
    if Path::new(&path).is_absolute() {
        return path.into();
    }
    normalize(&cwd.join(path))
}

fn plain_space(sign: char) -> char {
    match sign {
        '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments() {
        let resolve =
            |path| resolve_with_home(path, Path::new("/work/here"), Some(Path::new("/home/me")));
        let cases = [
            ("a.txt", "/work/here/a.txt"),
            ("@a.txt", "/work/here/a.txt"),
            ("@@a.txt", "/work/here/@a.txt"),
            ("./x/../a.txt", "/work/here/a.txt"),
            ("../../../../a", "/a"),
            ("/x/../a", "/x/../a"),
            ("@/x/a", "/x/a"),
            ("~", "/home/me"),
            ("@~/a", "/home/me/a"),
            ("~other/a", "/work/here/~other/a"),
            ("a\u{a0}b\u{202f}c\u{3000}d", "/work/here/a b c d"),
            ("", "/work/here"),
        ];
        for (path, expected) in cases {
            assert_eq!(resolve(path), Path::new(expected), "{path}");
        }
    }

    #[test]
    fn macos_names_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let cases = [
            ("Shot at 1.02.03 PM.png", "Shot at 1.02.03\u{202f}PM.png"),
            ("caf\u{e9}.txt", "cafe\u{301}.txt"),
            ("d'accord.txt", "d\u{2019}accord.txt"),
            ("d'\u{e9}cran.txt", "d\u{2019}e\u{301}cran.txt"),
            ("plain.txt", "plain.txt"),
        ];
        for (requested, on_disk) in cases {
            let file = folder.path().join(on_disk);
            std::fs::write(&file, "x").unwrap();
            assert_eq!(resolve_for_reading(requested, folder.path()), file);
        }
        let missing = folder.path().join("it's not there.txt");
        assert_eq!(
            resolve_for_reading("it's not there.txt", folder.path()),
            missing
        );
    }
}
