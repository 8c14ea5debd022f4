//! Sources of packages in settings and on command lines: `npm:<name>[@<version>]`,
//! `git:<host>/<path>[@<ref>]` or a URL, or a path.

use std::path::{Component, Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;
use reqwest::Url;

use crate::discovery::is_local_source;
use crate::paths::Paths;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PackageSource {
    Npm(NpmSource),
    Git(GitSource),
    /// A path as it was written.
    Local(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NpmSource {
    /// The specification for npm: name and version.
    pub spec: String,
    pub name: String,
    /// A version, a range or a tag.
    pub version: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitSource {
    /// The URL of the repository.
    pub repository: String,
    pub host: String,
    /// The path below the host, without `.git`.
    pub path: String,
    pub reference: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    #[error("An empty text names no package: remove the entry")]
    Empty,
    #[error(
        "\"{0}\" does not name a package of npm: write npm:<name> or npm:<name>@<version>; a \
         folder is named without npm:"
    )]
    Npm(String),
    #[error(
        "\"{0}\" does not name a git repository: write git:<host>/<user>/<repository>, \
         git:git@<host>:<path> or its URL, each possibly with @<branch, tag or commit>"
    )]
    Git(String),
}

impl PackageSource {
    pub fn parse(source: &str) -> Result<Self, SourceError> {
        let source = source.trim();
        if source.is_empty() {
            return Err(SourceError::Empty);
        }
        if let Some(spec) = source.strip_prefix("npm:") {
            return NpmSource::parse(spec.trim())
                .map(Self::Npm)
                .ok_or_else(|| SourceError::Npm(source.to_owned()));
        }
        if is_local_source(source) {
            return Ok(Self::Local(source.to_owned()));
        }
        GitSource::parse(source)
            .map(Self::Git)
            .ok_or_else(|| SourceError::Git(source.to_owned()))
    }

    /// Returns a text that is the same for all versions and spellings of a package. `base` is
    /// the folder to which a local path is relative.
    pub fn identity(&self, paths: &Paths, base: &Path) -> String {
        match self {
            Self::Npm(npm) => format!("npm:{}", npm.name),
            Self::Git(git) => format!("git:{}/{}", git.host, git.path),
            Self::Local(path) => format!("local:{}", paths.resolve(path, base).display()),
        }
    }

    /// Returns whether the source names a version, so that the package is not updated.
    pub fn is_pinned(&self) -> bool {
        match self {
            Self::Npm(npm) => npm.version.is_some(),
            Self::Git(git) => git.reference.is_some(),
            Self::Local(_) => false,
        }
    }
}

impl NpmSource {
    fn parse(spec: &str) -> Option<Self> {
        static SPEC: LazyLock<Regex> = LazyLock::new(|| {
            Regex::new(r"^((?:@[A-Za-z0-9~_][\w.~-]*/)?[A-Za-z0-9~_][\w.~-]*)(?:@([^/\\:@]+))?$")
                .expect("the pattern is constant and tested")
        });
        let found = SPEC.captures(spec)?;
        Some(Self {
            spec: spec.to_owned(),
            name: found[1].to_owned(),
            version: found.get(2).map(|version| version.as_str().to_owned()),
        })
    }

    /// Returns the version if it names a single release; ranges and tags name several.
    pub fn exact_version(&self) -> Option<&str> {
        static EXACT: LazyLock<Regex> = LazyLock::new(|| {
            Regex::new(r"^\d+\.\d+\.\d+(?:[-+][\w.+-]*)?$")
                .expect("the pattern is constant and tested")
        });
        self.version
            .as_deref()
            .filter(|version| EXACT.is_match(version))
    }
}

/// Short names of hosts after `git:`.
const HOSTS: [(&str, &str); 4] = [
    ("github", "github.com"),
    ("gitlab", "gitlab.com"),
    ("bitbucket", "bitbucket.org"),
    ("gist", "gist.github.com"),
];
const PROTOCOLS: [&str; 4] = ["https://", "http://", "ssh://", "git://"];

impl GitSource {
    fn parse(source: &str) -> Option<Self> {
        let is_url = |text: &str| PROTOCOLS.iter().any(|protocol| text.starts_with(protocol));
        let text = match source.strip_prefix("git:") {
            Some(rest) if !is_url(source) => rest.trim(),
            _ if is_url(source) => source,
            _ => return None,
        };
        let (text, fragment) = match text.split_once('#') {
            Some((text, reference)) => (text, Some(reference)),
            None => (text, None),
        };
        let known = HOSTS.iter().find_map(|(name, host)| {
            let path = text.strip_prefix(name)?.strip_prefix(':')?;
            Some((*host, path))
        });
        let (repository, host, path) = if is_url(text) {
            let mut url = Url::parse(text).ok()?;
            let (path, reference) = split_reference(url.path());
            let (path, reference) = (path.to_owned(), reference.map(str::to_owned));
            url.set_path(&path);
            let host = url.host_str()?.to_owned();
            let repository = url.to_string().trim_end_matches('/').to_owned();
            return Self::checked(repository, &host, &path, reference.as_deref().or(fragment));
        } else if let Some(rest) = text.strip_prefix("git@") {
            let (host, path) = rest.split_once(':')?;
            (None, host, path)
        } else if let Some((host, path)) = known {
            (Some(host), host, path)
        } else {
            let (host, path) = text.split_once('/')?;
            match host.contains('.') || host == "localhost" {
                true => (Some(host), host, path),
                // `git:user/repository`
                false => (Some("github.com"), "github.com", text),
            }
        };
        let (path, reference) = split_reference(path);
        let repository = match repository {
            Some(host) => format!("https://{host}/{path}"),
            None => format!("git@{host}:{path}"),
        };
        Self::checked(repository, host, path, reference.or(fragment))
    }

    /// Checks that the path stays below the folder of clones.
    fn checked(
        repository: String,
        host: &str,
        path: &str,
        reference: Option<&str>,
    ) -> Option<Self> {
        let path = path.trim_matches('/');
        let path = path.strip_suffix(".git").unwrap_or(path);
        let plain = |text: &str| {
            let parts = Path::new(text).components();
            let normal = |part: Component<'_>| matches!(part, Component::Normal(name) if !name.as_encoded_bytes().starts_with(b"."));
            !text.is_empty() && !text.contains(['\\', '\0']) && parts.into_iter().all(normal)
        };
        let deep = path.split('/').count() >= 2 && !path.contains("//");
        let reference = reference.filter(|reference| !reference.is_empty());
        // git would take such a text for an option.
        let option = |text: &str| text.starts_with('-');
        if !deep
            || !plain(path)
            || !plain(host)
            || host.contains('/')
            || option(host)
            || reference.is_some_and(option)
        {
            return None;
        }
        Some(Self {
            repository,
            host: host.to_owned(),
            path: path.to_owned(),
            reference: reference.map(str::to_owned),
        })
    }
}

/// Splits `user/repository@ref`.
fn split_reference(path: &str) -> (&str, Option<&str>) {
    match path.split_once('@') {
        Some((path, reference)) if !path.is_empty() && !reference.is_empty() => {
            (path, Some(reference))
        }
        _ => (path, None),
    }
}

/// Returns the form of a path in settings: relative to the folder of the settings.
pub fn relative_to(path: &Path, base: &Path) -> String {
    let shared = path
        .components()
        .zip(base.components())
        .take_while(|(a, b)| a == b)
        .count();
    let ups = base.components().skip(shared).map(|_| PathBuf::from(".."));
    let downs = path
        .components()
        .skip(shared)
        .map(|part| PathBuf::from(part.as_os_str()));
    let relative: PathBuf = ups.chain(downs).collect();
    match relative.as_os_str().is_empty() {
        true => ".".to_owned(),
        false => relative.to_string_lossy().into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn npm(source: &str) -> (String, Option<String>) {
        match PackageSource::parse(source).unwrap() {
            PackageSource::Npm(npm) => (npm.name, npm.version),
            other => panic!("{other:?}"),
        }
    }

    fn git(source: &str) -> [String; 4] {
        match PackageSource::parse(source).unwrap() {
            PackageSource::Git(git) => [
                git.repository,
                git.host,
                git.path,
                git.reference.unwrap_or_default(),
            ],
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn packages_of_npm() {
        let version = |text: &str| Some(text.to_owned());
        assert_eq!(npm("npm:a"), ("a".into(), None));
        assert_eq!(npm(" npm: @s/b@1.2.3 "), ("@s/b".into(), version("1.2.3")));
        assert_eq!(npm("npm:a@^2"), ("a".into(), version("^2")));
        for wrong in [
            "npm:",
            "npm:../x",
            "npm:foo@../x",
            "npm:foo@file:../x",
            "npm:-g",
            "npm:a b",
            "npm:./x.tgz",
            "npm:@s",
            "npm:a/b/c",
            "npm:.bin",
        ] {
            let error = PackageSource::parse(wrong).unwrap_err();
            assert_eq!(error, SourceError::Npm(wrong.to_owned()));
        }
        let exact = |source: &str| match PackageSource::parse(source).unwrap() {
            PackageSource::Npm(npm) => npm.exact_version().map(str::to_owned),
            other => panic!("{other:?}"),
        };
        assert_eq!(exact("npm:a@1.0.0-rc.1"), version("1.0.0-rc.1"));
        assert_eq!(exact("npm:a@latest"), None);
        assert_eq!(exact("npm:a@~1.0.0"), None);
    }

    #[test]
    fn repositories() {
        for (source, expected) in [
            (
                "git:github.com/u/r",
                ["https://github.com/u/r", "github.com", "u/r", ""],
            ),
            (
                "git:github.com/u/r@v1",
                ["https://github.com/u/r", "github.com", "u/r", "v1"],
            ),
            (
                "git:u/r",
                ["https://github.com/u/r", "github.com", "u/r", ""],
            ),
            (
                "git:gitlab:u/r#dev",
                ["https://gitlab.com/u/r", "gitlab.com", "u/r", "dev"],
            ),
            (
                "git:git@h.org:u/r.git@v2",
                ["git@h.org:u/r.git", "h.org", "u/r", "v2"],
            ),
            (
                "https://h.org/a/b/c.git@main",
                ["https://h.org/a/b/c.git", "h.org", "a/b/c", "main"],
            ),
            (
                "ssh://git@h.org:22/u/r",
                ["ssh://git@h.org:22/u/r", "h.org", "u/r", ""],
            ),
            ("git://h.org/u/r", ["git://h.org/u/r", "h.org", "u/r", ""]),
            (
                "git:localhost/u/r",
                ["https://localhost/u/r", "localhost", "u/r", ""],
            ),
        ] {
            assert_eq!(git(source), expected.map(str::to_owned), "{source}");
        }
    }

    #[test]
    fn a_repository_stays_in_its_folder() {
        for wrong in [
            "git:git@h.org:../../x",
            "git:git@..:u/r",
            "git:h.org/u/../../x",
            "git:h.org/u",
            "git:h.org/u/r@-x",
            "git:-h.org/u/r",
            "git:",
            "https://h.org/u",
            "github:u/r",
            "git:h.org/.u/r",
        ] {
            let error = PackageSource::parse(wrong).unwrap_err();
            assert_eq!(error, SourceError::Git(wrong.to_owned()));
        }
    }

    #[test]
    fn other_sources_are_paths_and_identities_ignore_versions() {
        let local = |text: &str| PackageSource::Local(text.to_owned());
        assert_eq!(PackageSource::parse("./x").unwrap(), local("./x"));
        assert_eq!(PackageSource::parse("x").unwrap(), local("x"));
        let paths = Paths {
            home: "/home/u".into(),
            agent_dir: "/home/u/.pi/agent".into(),
            cwd: "/p".into(),
            distrust: None,
        };
        let identity = |source: &str| {
            let source = PackageSource::parse(source).unwrap();
            source.identity(&paths, Path::new("/p/.pi"))
        };
        assert_eq!(identity("npm:a@1"), identity("npm:a"));
        assert_eq!(
            identity("git:git@github.com:u/r@v1"),
            identity("https://github.com/u/r.git")
        );
        assert_eq!(identity("../x"), "local:/p/x");
        assert_eq!(relative_to(Path::new("/p/x"), Path::new("/p/.pi")), "../x");
        assert_eq!(relative_to(Path::new("/p"), Path::new("/p")), ".");
    }
}
