//! Patterns that select resource files: `glob` includes, `!glob` excludes, `+path` includes in
//! spite of that, `-path` excludes in any case. Globs match the path relative to a base folder,
//! the file name or the whole path; for a `SKILL.md` they also match its folder.

use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};

/// Returns whether an entry of a list is a pattern and not a path.
pub(crate) fn is_pattern(entry: &str) -> bool {
    is_override(entry) || entry.contains(['*', '?'])
}

/// Returns whether the pattern changes the selection of files that other entries name.
pub(crate) fn is_override(entry: &str) -> bool {
    entry.starts_with(['!', '+', '-'])
}

#[derive(Debug, Default)]
pub(crate) struct Patterns {
    includes: Vec<GlobMatcher>,
    excludes: Vec<GlobMatcher>,
    force_includes: Vec<String>,
    force_excludes: Vec<String>,
}

impl Patterns {
    /// Parses patterns. Invalid globs match nothing; the second value describes them.
    pub(crate) fn parse<'a>(entries: impl IntoIterator<Item = &'a str>) -> (Self, Vec<String>) {
        let mut patterns = Self::default();
        let mut complaints = Vec::new();
        for entry in entries {
            let (list, glob) = if let Some(path) = entry.strip_prefix('+') {
                patterns.force_includes.push(exact(path));
                continue;
            } else if let Some(path) = entry.strip_prefix('-') {
                patterns.force_excludes.push(exact(path));
                continue;
            } else if let Some(glob) = entry.strip_prefix('!') {
                (&mut patterns.excludes, glob)
            } else {
                (&mut patterns.includes, entry)
            };
            match matcher(entry, glob) {
                Ok(matcher) => list.push(matcher),
                Err(complaint) => complaints.push(complaint),
            }
        }
        (patterns, complaints)
    }

    /// Parses only the entries with `!`, `+` or `-`, which apply to files that the list itself
    /// does not name.
    pub(crate) fn parse_overrides(entries: &[String]) -> (Self, Vec<String>) {
        let overrides = entries.iter().filter(|entry| is_override(entry));
        Self::parse(overrides.map(String::as_str))
    }

    pub(crate) fn allow(&self, file: &Path, base: &Path) -> bool {
        let names = Names::new(file, base);
        let included = self.includes.is_empty() || names.match_any(&self.includes);
        let chosen = included && !names.match_any(&self.excludes);
        (chosen || names.equal_any(&self.force_includes)) && !names.equal_any(&self.force_excludes)
    }
}

/// Makes the matcher of `glob`, which is a part of `entry`. The error is a message for the
/// user.
pub(crate) fn matcher(entry: &str, glob: &str) -> Result<GlobMatcher, String> {
    let built = GlobBuilder::new(glob).literal_separator(true).build();
    let matcher = built.map(|glob| glob.compile_matcher());
    matcher.map_err(|error| format!("The pattern \"{entry}\" is ignored: {error}"))
}

fn exact(path: &str) -> String {
    path.strip_prefix("./").unwrap_or(path).to_owned()
}

/// The texts that patterns are compared with for one file.
struct Names {
    globbed: Vec<String>,
    exact: Vec<String>,
}

impl Names {
    fn new(file: &Path, base: &Path) -> Self {
        let mut names = Self {
            globbed: Vec::new(),
            exact: Vec::new(),
        };
        names.add(file, base);
        if file.file_name().is_some_and(|name| name == "SKILL.md")
            && let Some(dir) = file.parent()
        {
            names.add(dir, base);
        }
        names
    }

    fn add(&mut self, path: &Path, base: &Path) {
        let both = [relative(path, base), path.to_string_lossy().into_owned()];
        self.globbed.extend(both.clone());
        self.exact.extend(both);
        if let Some(name) = path.file_name() {
            self.globbed.push(name.to_string_lossy().into_owned());
        }
    }

    fn match_any(&self, globs: &[GlobMatcher]) -> bool {
        let mut names = self.globbed.iter();
        names.any(|name| globs.iter().any(|glob| glob.is_match(name)))
    }

    fn equal_any(&self, paths: &[String]) -> bool {
        self.exact.iter().any(|name| paths.contains(name))
    }
}

/// Returns the path relative to `base`, with `..` if it is outside.
fn relative(path: &Path, base: &Path) -> String {
    let common = path.components().zip(base.components());
    let shared = common.take_while(|(a, b)| a == b).count();
    let ups = base.components().skip(shared).map(|_| "..".to_owned());
    let rest = path.components().skip(shared);
    let downs = rest.map(|part| part.as_os_str().to_string_lossy().into_owned());
    ups.chain(downs).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(patterns: &[&str], files: &[&str]) -> Vec<String> {
        let (patterns, complaints) = Patterns::parse(patterns.iter().copied());
        assert_eq!(complaints, Vec::<String>::new());
        let base = Path::new("/base");
        let files = files.iter().filter(|f| patterns.allow(&base.join(f), base));
        files.map(|f| (*f).to_owned()).collect()
    }

    #[test]
    fn the_four_kinds_of_pattern_in_their_order_of_strength() {
        let files = ["ext/a.ts", "ext/b.ts", "ext/c.js", "d.ts"];
        assert_eq!(kept(&[], &files), files);
        assert_eq!(kept(&["ext/*.ts"], &files), ["ext/a.ts", "ext/b.ts"]);
        assert_eq!(kept(&["!b.ts"], &files), ["ext/a.ts", "ext/c.js", "d.ts"]);
        assert_eq!(
            kept(&["!**/*.ts", "+ext/a.ts"], &files),
            ["ext/a.ts", "ext/c.js"]
        );
        assert_eq!(kept(&["+ext/a.ts", "-./ext/a.ts"], &files), files[1..]);
        assert_eq!(kept(&["-/base/d.ts"], &files), files[..3]);
        assert_eq!(kept(&["-b.ts"], &files), files, "exact paths are no names");
    }

    #[test]
    fn skill_is_also_matched_by_its_folder() {
        let files = [
            "skills/one/SKILL.md",
            "skills/two/SKILL.md",
            "skills/note.md",
        ];
        assert_eq!(kept(&["!one"], &files), files[1..]);
        assert_eq!(kept(&["!**", "+skills/two"], &files), [files[1]]);
    }

    #[test]
    fn a_glob_does_not_cross_folders_and_a_broken_one_is_reported() {
        assert_eq!(kept(&["ext*.ts"], &["ext/a.ts"]), Vec::<String>::new());
        let (_, complaints) = Patterns::parse(["!a[*"]);
        assert_eq!(complaints.len(), 1);
        assert!(complaints[0].contains("\"!a[*\""), "{complaints:?}");
    }

    #[test]
    fn files_outside_the_base_have_relative_names_with_dots() {
        assert_eq!(
            relative(Path::new("/a/x.ts"), Path::new("/a/b/c")),
            "../../x.ts"
        );
        assert_eq!(relative(Path::new("/a/b"), Path::new("/a/b")), "");
    }
}
