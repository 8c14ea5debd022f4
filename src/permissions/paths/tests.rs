use std::os::unix::fs::symlink;

use super::*;

#[test]
fn links_of_missing_files_are_followed() {
    let dir = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(dir.path()).unwrap();
    fs::create_dir_all(root.join("a/b")).unwrap();
    symlink("a/b", root.join("link")).unwrap();
    symlink(root.join("link/new"), root.join("dangling")).unwrap();
    symlink("loop", root.join("loop")).unwrap();
    let found = |path: &str| resolve(&root.join(path));
    assert_eq!(found("link/x/y"), Some(root.join("a/b/x/y")));
    assert_eq!(found("link/../x"), Some(root.join("a/x")));
    assert_eq!(found("dangling"), Some(root.join("a/b/new")));
    assert_eq!(found("missing/../a"), Some(root.join("a")));
    assert_eq!(found("loop/x"), None);
    assert_eq!(resolve(Path::new("/../..")), Some("/".into()));
}

#[test]
fn patterns_match_as_in_other_agents() {
    let place = Place {
        cwd: "/w".into(),
        home: Some("/h".into()),
    };
    for (pattern, path, may, must) in [
        (".env", "/w/.env", true, true),
        (".env", "/w/a/.env", true, true),
        (".env", "/x/.env", true, false),
        (".env", "/w/.envx", false, false),
        ("./.env", "/w/a/.env", false, false),
        ("*.pem", "/w/a/b.pem", true, true),
        ("src/*", "/w/src/a", true, true),
        // For rules to deny, a folder means what is in it.
        ("src/*", "/w/src/a/b", true, false),
        ("src/**", "/w/src/a/b", true, true),
        ("src", "/w/src/a", true, false),
        ("./src", "/w/src/a", true, true),
        ("src/", "/w/a/src/b", true, false),
        ("~/.ssh/**", "/h/.ssh/id", true, true),
        ("~/.ssh/**", "/w/.ssh/id", false, false),
        ("//etc/**", "/etc/passwd", true, true),
        ("/etc/**", "/etc/passwd", true, true),
        ("/etc/passwd", "/etc/passwd", true, true),
        ("**", "/w/x", true, true),
        ("**", "/x", true, false),
    ] {
        let rule = PathPattern::parse(pattern).unwrap();
        let path = Path::new(path);
        let answers = (rule.may_match(path, &place), rule.must_match(path, &place));
        assert_eq!(answers, (may, must), "{pattern} {}", path.display());
    }
}
