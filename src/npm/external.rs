//! Dependencies that are not versions of a registry: repositories, archives, folders of the same
//! project. <https://docs.npmjs.com/cli/v11/configuring-npm/package-json#dependencies>

use reqwest::Url;

/// Value of an entry of `dependencies`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Specifier {
    /// A version, range, tag or alias.
    Registry,
    Git {
        url: String,
        reference: Option<String>,
    },
    /// An archive on a server.
    Archive(Url),
    /// A path relative to the manifest: a folder or an archive.
    Local(String),
    /// A range that a package of the same workspace fulfils.
    Workspace(String),
    /// The reason why it cannot be installed.
    Unsupported(&'static str),
}

/// Short names of hosts.
const HOSTS: [(&str, &str); 4] = [
    ("github:", "github.com"),
    ("gitlab:", "gitlab.com"),
    ("bitbucket:", "bitbucket.org"),
    ("gist:", "gist.github.com"),
];

impl Specifier {
    pub(crate) fn parse(value: &str) -> Self {
        let value = value.trim();
        if value.starts_with("npm:") {
            return Self::Registry;
        }
        for prefix in ["file:", "link:", "portal:"] {
            if let Some(path) = value.strip_prefix(prefix) {
                return Self::Local(path.trim_start_matches("//").to_owned());
            }
        }
        if ["./", "../", "/", "~/"]
            .iter()
            .any(|it| value.starts_with(it))
            || value == "."
        {
            return Self::Local(value.to_owned());
        }
        if let Some(range) = value.strip_prefix("workspace:") {
            let range = range.trim();
            return Self::Workspace(match range {
                "" | "^" | "~" => "*".to_owned(),
                range => range.to_owned(),
            });
        }
        if let Some((_, host, rest)) = HOSTS.iter().find_map(|(prefix, host)| {
            let rest = value.strip_prefix(prefix)?;
            Some((prefix, host, rest))
        }) {
            let (path, reference) = with_reference(rest);
            return git(format!("https://{host}/{path}.git"), reference);
        }
        let (before, reference) = with_reference(value);
        if let Some(rest) = before.strip_prefix("git+") {
            return git(rest.to_owned(), reference);
        }
        if before.starts_with("git://") || before.starts_with("ssh://") || is_scp(before) {
            return git(before.to_owned(), reference);
        }
        if before.starts_with("https://") || before.starts_with("http://") {
            let Ok(url) = Url::parse(before) else {
                return Self::Unsupported("it is no URL");
            };
            let known = HOSTS.iter().any(|(_, host)| url.host_str() == Some(*host));
            let parts = url.path().trim_matches('/').split('/').count();
            return match url.path().ends_with(".git") || (known && parts == 2) {
                true => git(before.to_owned(), reference),
                false => Self::Archive(url),
            };
        }
        let is_short = before.split('/').count() == 2
            && !before.starts_with('@')
            && !before.contains([' ', ':', '<', '>', '=', '^', '*', '|']);
        match is_short {
            true => git(format!("https://github.com/{before}.git"), reference),
            false => Self::Registry,
        }
    }
}

fn with_reference(text: &str) -> (&str, Option<&str>) {
    match text.split_once('#') {
        Some((before, reference)) => (before, Some(reference).filter(|it| !it.is_empty())),
        None => (text, None),
    }
}

/// Returns whether a text is `user@host:path`.
fn is_scp(text: &str) -> bool {
    let Some((user, rest)) = text.split_once('@') else {
        return false;
    };
    !user.is_empty() && !user.contains([':', '/']) && rest.contains(':') && !rest.contains("://")
}

fn git(url: String, reference: Option<&str>) -> Specifier {
    let remote = ["https://", "http://", "ssh://", "git://"];
    if !is_scp(&url) && !remote.iter().any(|it| url.starts_with(it)) {
        return Specifier::Unsupported("only repositories at https, ssh and git URLs are fetched");
    }
    // git would take such a text for an option.
    if url.starts_with('-') || reference.is_some_and(|it| it.starts_with('-')) {
        return Specifier::Unsupported("a name must not begin with a dash");
    }
    Specifier::Git {
        url,
        reference: reference.map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_npm() {
        let git = |url: &str, reference: Option<&str>| Specifier::Git {
            url: url.to_owned(),
            reference: reference.map(str::to_owned),
        };
        for (text, expected) in [
            ("^1.2.3", Specifier::Registry),
            ("", Specifier::Registry),
            ("latest", Specifier::Registry),
            (">=1 <2 || 3.x", Specifier::Registry),
            ("npm:@s/b@^1", Specifier::Registry),
            ("file:../x", Specifier::Local("../x".into())),
            ("./x.tgz", Specifier::Local("./x.tgz".into())),
            ("workspace:^", Specifier::Workspace("*".into())),
            ("workspace:~1.0", Specifier::Workspace("~1.0".into())),
            (
                "github:u/r#v1",
                git("https://github.com/u/r.git", Some("v1")),
            ),
            ("u/r", git("https://github.com/u/r.git", None)),
            (
                "git+https://h.test/u/r.git#semver:^1",
                git("https://h.test/u/r.git", Some("semver:^1")),
            ),
            ("git@h.test:u/r.git", git("git@h.test:u/r.git", None)),
            (
                "git+ssh://git@h.test/u/r",
                git("ssh://git@h.test/u/r", None),
            ),
            (
                "https://github.com/u/r",
                git("https://github.com/u/r", None),
            ),
            (
                "https://h.test/x.tgz",
                Specifier::Archive("https://h.test/x.tgz".parse().unwrap()),
            ),
        ] {
            assert_eq!(Specifier::parse(text), expected, "{text}");
        }
        for text in [
            "git+file:///etc",
            "git+ext::sh -c id",
            "git+https://h.test/r.git#--upload-pack=x",
            "git+--upload-pack=x",
        ] {
            let parsed = Specifier::parse(text);
            assert!(
                matches!(parsed, Specifier::Unsupported(_)),
                "{text}: {parsed:?}"
            );
        }
    }
}
