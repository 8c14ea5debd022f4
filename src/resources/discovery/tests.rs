use super::*;
use std::sync::Arc;

struct Fixture {
    dir: tempfile::TempDir,
    paths: Paths,
}

impl Fixture {
    /// Makes files by path and content. The folder is also the home folder.
    fn new(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        let fixture = Self {
            dir,
            paths: Paths {
                agent_dir: root.join("agent"),
                cwd: root.join("p"),
                home: root,
                distrust: None,
            },
        };
        for (name, text) in files {
            fixture.write(name, text);
        }
        fixture
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.paths.home.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn settings(&self) -> Arc<Settings> {
        let settings = Settings::load(&self.paths);
        assert_eq!(settings.take_warnings(), []);
        settings
    }

    fn find(&self, kind: ResourceKind, cli: &[&str], discover: bool) -> FoundResources {
        let cli_extensions: Vec<_> = cli.iter().map(|path| (*path).to_owned()).collect();
        let sources = ResourceSources {
            paths: &self.paths,
            settings: &self.settings(),
            cli_extensions: &cli_extensions,
            discover,
        };
        sources.find(kind)
    }

    fn names(&self, found: &FoundResources) -> Vec<String> {
        let root = &self.paths.home;
        let paths = found
            .paths
            .iter()
            .map(|found| found.path.strip_prefix(root).unwrap());
        paths
            .map(|path| path.to_str().unwrap().to_owned())
            .collect()
    }

    /// Returns the found files; fails if there are diagnostics.
    fn clean(&self, kind: ResourceKind) -> Vec<String> {
        let found = self.find(kind, &[], true);
        assert_eq!(found.diagnostics, []);
        self.names(&found)
    }

    fn extensions(&self) -> Vec<String> {
        self.clean(ResourceKind::Extensions)
    }
}

#[test]
fn the_ranks_of_extensions_and_where_each_is_from() {
    let fixture = Fixture::new(&[
        (
            "p/.pi/settings.json",
            r#"{"extensions": ["./named.ts"], "packages": ["../pkg"]}"#,
        ),
        ("p/.pi/named.ts", ""),
        ("p/.pi/extensions/auto.ts", ""),
        (
            "agent/settings.json",
            r#"{"extensions": ["~/dir"], "packages": ["~/pkg2"]}"#,
        ),
        ("dir/b.ts", ""),
        ("dir/a.js", ""),
        ("agent/extensions/user.ts", ""),
        ("p/pkg/package.json", r#"{"pi": {"extensions": ["./src"]}}"#),
        ("p/pkg/src/x.ts", ""),
        ("pkg2/extensions/y.ts", ""),
        ("p/cli.mjs", ""),
    ]);
    let found = fixture.find(ResourceKind::Extensions, &["cli.mjs"], true);
    assert_eq!(found.diagnostics, []);
    let home = &fixture.paths.home;
    let info = |path: &str, source: &str, scope, origin, base: Option<&str>| ResourcePath {
        path: home.join(path),
        source_info: SourceInfo {
            path: home.join(path).to_str().unwrap().to_owned(),
            source: source.to_owned(),
            scope,
            origin,
            base_dir: base.map(|base| home.join(base).to_str().unwrap().to_owned()),
        },
    };
    use Origin::{Package, TopLevel};
    use SourceScope::{Project, Temporary, User};
    assert_eq!(
        found.paths,
        [
            info("p/cli.mjs", "cli", Temporary, TopLevel, None),
            info("p/.pi/named.ts", "local", Project, TopLevel, None),
            info(
                "p/.pi/extensions/auto.ts",
                "auto",
                Project,
                TopLevel,
                Some("p/.pi")
            ),
            info("dir/a.js", "local", User, TopLevel, None),
            info("dir/b.ts", "local", User, TopLevel, None),
            info(
                "agent/extensions/user.ts",
                "auto",
                User,
                TopLevel,
                Some("agent")
            ),
            info("p/pkg/src/x.ts", "../pkg", Project, Package, Some("p/pkg")),
            info(
                "pkg2/extensions/y.ts",
                "~/pkg2",
                User,
                Package,
                Some("pkg2")
            ),
        ]
    );
    let only_cli = fixture.find(ResourceKind::Extensions, &["cli.mjs"], false);
    assert_eq!(only_cli.paths, found.paths[..1]);
}

#[test]
fn the_rules_of_an_extension_folder() {
    let fixture = Fixture::new(&[
        ("agent/extensions/b.ts", ""),
        ("agent/extensions/Z.js", ""),
        ("agent/extensions/no.mjs", ""),
        ("agent/extensions/.hidden.ts", ""),
        ("agent/extensions/node_modules/index.ts", ""),
        ("agent/extensions/ignored.ts", ""),
        ("agent/extensions/later/index.ts", ""),
        (
            "agent/extensions/.gitignore",
            "ignored.ts\nlater/\nback.ts\n",
        ),
        ("agent/extensions/.ignore", "!back.ts\n"),
        ("agent/extensions/back.ts", ""),
        ("agent/extensions/both/index.ts", ""),
        ("agent/extensions/both/index.js", ""),
        ("agent/extensions/plain/helper.ts", ""),
        (
            "agent/extensions/pkg/package.json",
            r#"{"pi": {"extensions": ["./m.ts", "gone.ts"]}}"#,
        ),
        ("agent/extensions/pkg/m.ts", ""),
        ("agent/extensions/pkg/index.ts", ""),
        (
            "agent/extensions/empty/package.json",
            r#"{"pi": {"extensions": ["gone.ts"]}}"#,
        ),
        ("agent/extensions/empty/index.js", ""),
    ]);
    let names = [
        "Z.js",
        "b.ts",
        "back.ts",
        "both/index.ts",
        "empty/index.js",
        "pkg/m.ts",
    ];
    let found = fixture.find(ResourceKind::Extensions, &[], true);
    assert_eq!(
        fixture.names(&found),
        names.map(|name| format!("agent/extensions/{name}"))
    );
    let missing = found.diagnostics.iter().map(|problem| &problem.message);
    let missing: Vec<&str> = missing
        .filter_map(|message| message.split_once("/extensions/"))
        .map(|(_, rest)| rest)
        .collect();
    let named = "names \"gone.ts\" as an extension, which does not exist";
    let files = ["empty/package.json", "pkg/package.json"];
    assert_eq!(missing, files.map(|file| format!("{file} {named}")));
}

#[test]
fn a_folder_that_is_an_extension_is_the_only_one_in_it() {
    let fixture = Fixture::new(&[
        ("agent/extensions/index.ts", ""),
        ("agent/extensions/other.ts", ""),
    ]);
    assert_eq!(fixture.extensions(), ["agent/extensions/index.ts"]);
}

#[test]
fn patterns_of_settings_disable_discovered_files() {
    let fixture = Fixture::new(&[
        ("agent/extensions/a.ts", ""),
        ("agent/extensions/b.ts", ""),
        ("agent/extensions/c.ts", ""),
        ("more/d.ts", ""),
        ("more/e.ts", ""),
        (
            "agent/settings.json",
            r#"{"extensions": ["~/more", "!extensions/*", "+extensions/b.ts", "!e.ts"]}"#,
        ),
    ]);
    assert_eq!(fixture.extensions(), ["more/d.ts", "agent/extensions/b.ts"]);
}

#[test]
fn file_disabled_by_project_but_named_by_user_is_loaded() {
    let fixture = Fixture::new(&[
        ("p/.pi/extensions/a.ts", ""),
        (
            "p/.pi/settings.json",
            r#"{"extensions": ["-extensions/a.ts"]}"#,
        ),
        (
            "agent/settings.json",
            r#"{"extensions": ["../p/.pi/extensions/a.ts"]}"#,
        ),
        ("agent/extensions/b.ts", ""),
    ]);
    assert_eq!(
        fixture.extensions(),
        ["p/.pi/extensions/a.ts", "agent/extensions/b.ts"]
    );
}

#[cfg(unix)]
#[test]
fn one_file_under_two_names_is_found_once() {
    let fixture = Fixture::new(&[
        ("agent/extensions/a.ts", ""),
        ("p/.pi/extensions/keep.ts", ""),
    ]);
    let link = |name: &str| fixture.paths.home.join(name);
    use std::os::unix::fs::symlink;
    symlink(
        link("agent/extensions/a.ts"),
        link("p/.pi/extensions/link.ts"),
    )
    .unwrap();
    symlink(link("nowhere.ts"), link("p/.pi/extensions/dangling.ts")).unwrap();
    assert_eq!(
        fixture.extensions(),
        ["p/.pi/extensions/keep.ts", "p/.pi/extensions/link.ts"]
    );
}

#[test]
fn missing_resources_are_reported() {
    let fixture = Fixture::new(&[(
        "agent/settings.json",
        r#"{"extensions": ["gone.ts"], "packages": ["./nopkg", "npm:x"]}"#,
    )]);
    let found = fixture.find(
        ResourceKind::Extensions,
        &["missing.ts", "git:github.com/a/b"],
        true,
    );
    let agent = &fixture.paths.agent_dir;
    let summary: Vec<_> = found
        .diagnostics
        .iter()
        .map(|d| (d.severity, d.path.clone()))
        .collect();
    use crate::diagnostic::Severity::{Error, Warning};
    assert_eq!(
        summary,
        [
            (Warning, agent.join("nopkg")),
            (Warning, "npm:x".into()),
            (Warning, agent.join("gone.ts")),
            (Error, fixture.paths.cwd.join("missing.ts")),
            (Error, "git:github.com/a/b".into()),
        ]
    );
    let message = format!(
        "Extension path does not exist: {}/missing.ts",
        fixture.paths.cwd.display()
    );
    assert_eq!(found.diagnostics[3].message, message);
    assert_eq!(found.paths, []);
}

#[test]
fn discovered_file_on_command_line_goes_first_and_keeps_origin() {
    let fixture = Fixture::new(&[
        ("p/.pi/extensions/a.ts", ""),
        ("p/.pi/extensions/b.ts", ""),
        (
            "p/.pi/settings.json",
            r#"{"extensions": ["-extensions/b.ts"]}"#,
        ),
    ]);
    let found = fixture.find(ResourceKind::Extensions, &[".pi/extensions/b.ts"], true);
    assert_eq!(
        fixture.names(&found),
        ["p/.pi/extensions/b.ts", "p/.pi/extensions/a.ts"]
    );
    assert_eq!(found.paths[0].source_info.source, "auto");
}

#[test]
fn a_folder_on_the_command_line_is_a_package_or_a_module() {
    let fixture = Fixture::new(&[
        ("pkg/extensions/a.ts", ""),
        ("pkg/prompts/p.md", ""),
        ("module/main.ts", ""),
    ]);
    let cli = ["../pkg", "../module"];
    let found = fixture.find(ResourceKind::Extensions, &cli, true);
    assert_eq!(fixture.names(&found), ["pkg/extensions/a.ts", "module"]);
    let found = fixture.find(ResourceKind::Prompts, &cli, true);
    assert_eq!(fixture.names(&found), ["pkg/prompts/p.md"]);
}

#[test]
fn filters_and_manifests_of_packages() {
    let fixture = Fixture::new(&[
        (
            "agent/settings.json",
            r#"{"packages": [{"source": "~/all"}, {"source": "~/none", "extensions": []},
                {"source": "~/some", "extensions": ["!b.ts"]}, "~/named"]}"#,
        ),
        ("all/extensions/a.ts", ""),
        ("all/package.json", r#"{"pi": {"skills": ["s"]}}"#),
        ("none/extensions/a.ts", ""),
        ("some/extensions/a.ts", ""),
        ("some/extensions/b.ts", ""),
        ("named/extensions/unlisted.ts", ""),
        ("named/src/a.ts", ""),
        ("named/src/b.ts", ""),
        (
            "named/package.json",
            r#"{"pi": {"extensions": ["src", "!**/b.ts"]}}"#,
        ),
    ]);
    assert_eq!(
        fixture.extensions(),
        [
            "all/extensions/a.ts",
            "some/extensions/a.ts",
            "named/src/a.ts"
        ]
    );
}

#[test]
fn globs_of_a_manifest_are_expanded() {
    let fixture = Fixture::new(&[
        ("agent/settings.json", r#"{"packages": ["~/pkg"]}"#),
        (
            "pkg/package.json",
            r#"{"pi": {"extensions": ["./ext/*.ts", "more/**/*.js", "!ext/b.ts", "none/*.ts"]}}"#,
        ),
        ("pkg/ext/a.ts", ""),
        ("pkg/ext/a.test.ts", ""),
        ("pkg/ext/b.ts", ""),
        ("pkg/ext/.hidden.ts", ""),
        ("pkg/ext/deep/c.ts", ""),
        ("pkg/more/one/d.js", ""),
        ("pkg/more/node_modules/e.js", ""),
    ]);
    let found = fixture.find(ResourceKind::Extensions, &[], true);
    assert_eq!(fixture.names(&found), ["pkg/ext/a.ts", "pkg/more/one/d.js"]);
    let warned: Vec<&str> = found
        .diagnostics
        .iter()
        .map(|one| one.message.as_str())
        .collect();
    assert!(
        matches!(warned[..], [one] if one.contains("\"none/*.ts\"")),
        "{warned:?}"
    );
}

#[test]
fn package_of_project_replaces_that_of_user() {
    let fixture = Fixture::new(&[
        ("agent/settings.json", r#"{"packages": ["~/pkg"]}"#),
        (
            "p/.pi/settings.json",
            r#"{"packages": [{"source": "../../pkg", "extensions": []}]}"#,
        ),
        ("pkg/extensions/a.ts", ""),
    ]);
    assert_eq!(fixture.extensions(), Vec::<String>::new());
}

#[test]
fn invalid_manifest_is_reported_and_index_is_used() {
    let fixture = Fixture::new(&[
        ("agent/extensions/x/package.json", "{"),
        ("agent/extensions/x/index.ts", ""),
    ]);
    let found = fixture.find(ResourceKind::Extensions, &[], true);
    assert_eq!(fixture.names(&found), ["agent/extensions/x/index.ts"]);
    let manifest = fixture.paths.agent_dir.join("extensions/x/package.json");
    assert_eq!(found.diagnostics.len(), 1);
    assert_eq!(found.diagnostics[0].path, manifest);
}

#[test]
fn skills_of_all_roots() {
    let fixture = Fixture::new(&[
        (".git/HEAD", ""),
        ("agent/skills/top.md", ""),
        ("agent/skills/group/one/SKILL.md", ""),
        ("agent/skills/group/one/inner/SKILL.md", ""),
        ("agent/skills/group/loose.md", ""),
        ("agent/skills/group/.gitignore", "two/\n"),
        ("agent/skills/group/two/SKILL.md", ""),
        (".agents/skills/shared/SKILL.md", ""),
        (".agents/skills/readme.md", ""),
        ("p/.agents/skills/near/SKILL.md", ""),
        ("p/.pi/skills/own/SKILL.md", ""),
    ]);
    assert_eq!(
        fixture.clean(ResourceKind::Skills),
        [
            "p/.pi/skills/own/SKILL.md",
            "p/.agents/skills/near/SKILL.md",
            "agent/skills/group/one/SKILL.md",
            "agent/skills/top.md",
            ".agents/skills/shared/SKILL.md",
        ]
    );
}

#[cfg(unix)]
#[test]
fn link_to_prompt_is_another_prompt_but_not_for_extensions() {
    let fixture = Fixture::new(&[
        ("agent/prompts/review.md", "do it"),
        ("agent/extensions/one.ts", ""),
        ("loose/other.ts", ""),
        (
            "p/.pi/settings.json",
            r#"{"extensions": ["../../loose/other.ts", "!**/other.ts"]}"#,
        ),
    ]);
    let place = |name: &str| fixture.paths.home.join(name);
    let link = |from: &str, to: &str| std::os::unix::fs::symlink(place(to), place(from)).unwrap();
    link("agent/prompts/r.md", "agent/prompts/review.md");
    link("agent/extensions/two.ts", "agent/extensions/one.ts");
    link("agent/extensions/linked.ts", "loose/other.ts");
    let names = |kind| {
        let found = fixture.find(kind, &[], true);
        let names = found
            .paths
            .iter()
            .map(|found| found.path.file_name().unwrap());
        names
            .map(|name| name.to_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(ResourceKind::Prompts), ["r.md", "review.md"]);
    // An override of the project does not apply to links of the user.
    assert_eq!(names(ResourceKind::Extensions), ["linked.ts", "one.ts"]);
}

#[test]
fn cycle_of_links_ends() {
    let fixture = Fixture::new(&[("agent/skills/a/b/SKILL.md", "")]);
    let skills = fixture.paths.agent_dir.join("skills");
    std::os::unix::fs::symlink(&skills, skills.join("a/loop")).unwrap();
    assert_eq!(
        fixture.clean(ResourceKind::Skills),
        ["agent/skills/a/b/SKILL.md"]
    );
    assert!(fixture.dir.path().exists());
}

#[test]
fn prompts_and_themes_lie_directly_in_their_folder() {
    let fixture = Fixture::new(&[
        ("agent/prompts/a.md", ""),
        ("agent/prompts/deep/b.md", ""),
        ("p/.pi/prompts/c.md", ""),
        ("agent/themes/t.json", ""),
        ("agent/themes/t.md", ""),
    ]);
    assert_eq!(
        fixture.clean(ResourceKind::Prompts),
        ["p/.pi/prompts/c.md", "agent/prompts/a.md"]
    );
    assert_eq!(fixture.clean(ResourceKind::Themes), ["agent/themes/t.json"]);
}

#[test]
fn helpers_and_other_endings_are_no_extensions() {
    let fixture = Fixture::new(&[
        ("agent/extensions/a.ts", ""),
        ("agent/extensions/my.config.panel.ts", ""),
        ("agent/extensions/spec.js", ""),
        ("agent/extensions/types.d.ts", ""),
        ("agent/extensions/a.test.ts", ""),
        ("agent/extensions/a.spec.js", ""),
        ("agent/extensions/vite.config.ts", ""),
        ("agent/extensions/helper.mjs", "export const a = 1;"),
        ("agent/extensions/meant.mts", "export default (pi) => {};"),
        ("agent/extensions/meant.cjs", "module.exports = (pi) => {};"),
    ]);
    let found = fixture.find(ResourceKind::Extensions, &[], true);
    let expected = ["a.ts", "my.config.panel.ts", "spec.js"];
    let expected = expected.map(|name| format!("agent/extensions/{name}"));
    assert_eq!(fixture.names(&found), expected);
    let problems = found.diagnostics.iter();
    let named: Vec<_> = problems
        .map(|problem| problem.path.file_name().unwrap())
        .collect();
    assert_eq!(named, ["meant.cjs", "meant.mts"]);
    let message = &found.diagnostics[0].message;
    assert!(
        message.contains("only files that end in .ts or .js"),
        "{message}"
    );
}

/// The watch searches again when one of these has changed.
#[test]
fn search_says_what_it_depends_on() {
    let fixture = Fixture::new(&[
        ("agent/extensions/a.ts", ""),
        ("agent/extensions/sub/index.ts", ""),
        ("agent/extensions/empty/readme.md", ""),
        ("agent/extensions/.gitignore", "b.ts"),
        (
            "pkg/package.json",
            r#"{"pi": {"extensions": ["src/*.ts", "gone.ts"]}}"#,
        ),
        ("pkg/src/x.ts", ""),
        (
            "agent/settings.json",
            r#"{"extensions": ["~/later.ts"], "packages": ["~/pkg"]}"#,
        ),
    ]);
    let link = fixture.paths.home.join("agent/extensions/link.ts");
    std::os::unix::fs::symlink("nowhere.ts", link).unwrap();
    let found = fixture.find(ResourceKind::Extensions, &[], true);
    for path in [
        "agent/extensions",
        "agent/extensions/sub",
        "agent/extensions/sub/package.json",
        "agent/extensions/empty",
        "agent/extensions/.gitignore",
        "agent/extensions/link.ts",
        "later.ts",
        "p/.pi/extensions",
        "pkg",
        "pkg/package.json",
        "pkg/src",
        "pkg/gone.ts",
    ] {
        let path = fixture.paths.home.join(path);
        assert!(
            found.looked_up.contains(&path),
            "{path:?}: {:#?}",
            found.looked_up
        );
    }
}
