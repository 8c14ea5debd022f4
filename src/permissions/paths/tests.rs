use super::*;

#[test]
fn patterns_match_as_in_other_agents() {
    let base_folders = BaseFolders {
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
        let answers = (
            rule.may_match(path, &base_folders),
            rule.must_match(path, &base_folders),
        );
        assert_eq!(answers, (may, must), "{pattern} {}", path.display());
    }
}
