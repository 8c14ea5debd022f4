//! Installation of packages, the resources that they bring, and that a failed installation leaves
//! the working version.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::conformance::program::Program;
use crate::support::registry::{Registry, commit, git};
use crate::support::{Finished, Home, Reference, Rpc, TIMEOUT, finish, pause};

const EXTENSION: &str = r#"export default (pi) => pi.registerCommand("NAME", {
    description: "from NAME", handler: async (_args, ctx) => ctx.ui.notify("NAME runs") });"#;
const SKILL: &str = "---\nname: NAME\ndescription: about NAME\n---\nText\n";

/// The files of a package: an extension, a skill, a prompt template and a theme.
pub(super) fn contents(name: &str) -> Vec<(String, String)> {
    let of = |text: &str| text.replace("NAME", name);
    vec![
        (format!("extensions/{name}.ts"), of(EXTENSION)),
        (format!("skills/{name}/SKILL.md"), of(SKILL)),
        (format!("prompts/{name}-prompt.md"), of("NAME says $1")),
    ]
}

pub(super) fn borrowed(files: &[(String, String)]) -> Vec<(&str, &str)> {
    let pairs = files.iter();
    pairs
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect()
}

pub(super) fn settings(home: &Home) -> Value {
    let text = fs::read_to_string(home.agent_dir().join("settings.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

pub(super) fn project_settings(home: &Home) -> Value {
    let text = fs::read_to_string(home.cwd().join(".pi/settings.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

pub(super) async fn pi(registry: &Registry, home: &Home, arguments: &[&str]) -> Finished {
    let mut command = registry.command(home, env!("CARGO_BIN_EXE_pi"));
    command.args(arguments);
    finish(command, "").await
}

pub(super) fn rpc(registry: &Registry, home: &Home) -> Rpc {
    let mut command = registry.command(home, env!("CARGO_BIN_EXE_pi"));
    command.args(["--mode", "rpc", "--no-session"]);
    Rpc::start(command)
}

/// Name and source of all slash commands.
async fn commands(rpc: &mut Rpc) -> Vec<(String, Value)> {
    let answer = rpc.ok(json!({"type": "get_commands"})).await;
    let commands = answer["commands"].as_array().unwrap().iter();
    commands
        .map(|command| {
            let name = command["name"].as_str().unwrap().to_owned();
            (name, command["sourceInfo"].clone())
        })
        .collect()
}

pub(super) async fn names(registry: &Registry, home: &Home) -> Vec<String> {
    let mut rpc = rpc(registry, home);
    let names = commands(&mut rpc).await.into_iter().map(|(name, _)| name);
    let names = names.collect();
    rpc.close().await;
    names
}

fn all_of(name: &str) -> Vec<String> {
    vec![
        name.to_owned(),
        format!("{name}-prompt"),
        format!("skill:{name}"),
    ]
}

#[tokio::test]
async fn a_folder_is_used_in_place() {
    let home = Home::bare();
    for (path, text) in contents("local") {
        home.file(&format!("pkg/{path}"), &text);
    }
    let installed = home.run(&["install", "./pkg", "-l"], "").await.ok();
    for line in [
        "Installed ./pkg\n",
        "  extension  extensions/local.ts  (runs when pi starts)\n",
        "  skill      skills/local/SKILL.md\n",
        "  prompt     prompts/local-prompt.md\n",
    ] {
        assert!(installed.contains(line), "{installed}");
    }
    assert_eq!(project_settings(&home), json!({"packages": ["../pkg"]}));
    let list = home.run(&["list"], "").await.ok();
    let folder = home.cwd().join("pkg");
    assert_eq!(
        list,
        format!("Project packages:\n  ../pkg\n    {}\n", folder.display())
    );
    let mut rpc = home.rpc(&["--no-session"]);
    let found = commands(&mut rpc).await;
    let info = json!({"path": folder.join("skills/local/SKILL.md"), "source": "../pkg",
        "scope": "project", "origin": "package", "baseDir": folder});
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found.contains(&("skill:local".into(), info)), "{found:?}");
    rpc.close().await;
    assert_eq!(
        home.run(&["remove", "pkg"], "").await.failed(1),
        "No matching package found for pkg. Did you mean pi remove -l ../pkg?\n"
    );
    let removed = home.run(&["uninstall", "pkg", "--local"], "").await.ok();
    assert!(removed.ends_with("Removed pkg\n"), "{removed}");
    assert_eq!(project_settings(&home), json!({"packages": []}));
    assert!(folder.exists(), "it is the user's");
    assert_eq!(
        home.run(&["list"], "").await.ok(),
        "No packages installed.\n"
    );
}

#[tokio::test]
async fn a_package_of_npm_is_installed_updated_and_removed() {
    let registry = Registry::start().await;
    let home = Home::bare();
    registry.publish("@t/one", "1.0.0", &borrowed(&contents("old")));
    let output = pi(&registry, &home, &["install", "npm:@t/one"]).await.ok();
    assert!(output.contains("Installed npm:@t/one\n"), "{output}");
    assert_eq!(settings(&home), json!({"packages": ["npm:@t/one"]}));
    let folder = Registry::user_root(&home).join("@t/one");
    let mut session = rpc(&registry, &home);
    let found = commands(&mut session).await;
    let info = json!({"path": folder.join("extensions/old.ts"), "source": "npm:@t/one",
        "scope": "user", "origin": "package", "baseDir": folder});
    assert_eq!(found[0], ("old".to_owned(), info));
    session.ok(crate::support::prompt("/old")).await;
    session.notified("old runs").await;
    session.close().await;

    registry.publish("@t/one", "2.0.0", &borrowed(&contents("new")));
    let output = pi(&registry, &home, &["update"]).await.ok();
    assert!(
        output.ends_with("npm:@t/one 1.0.0 -> 2.0.0\nUpdated packages\n"),
        "{output}"
    );
    assert_eq!(names(&registry, &home).await, all_of("new"));
    let output = pi(&registry, &home, &["update", "npm:@t/one"]).await.ok();
    assert!(
        output.contains("npm:@t/one is the newest already\n"),
        "{output}"
    );

    let error = pi(&registry, &home, &["update", "@t/one"]).await.failed(1);
    assert_eq!(
        error,
        "Error: No matching package found for @t/one. Did you mean npm:@t/one?\n"
    );
    let output = pi(&registry, &home, &["remove", "npm:@t/one"]).await.ok();
    assert!(output.contains("Removed npm:@t/one\n"), "{output}");
    assert_eq!(settings(&home), json!({"packages": []}));
    assert!(!folder.exists());
    let error = pi(&registry, &home, &["remove", "npm:@t/one"])
        .await
        .failed(1);
    assert_eq!(error, "No matching package found for npm:@t/one\n");
}

#[tokio::test]
async fn a_download_that_breaks_leaves_the_old_version() {
    let registry = Registry::start().await;
    let home = Home::bare();
    registry.publish("solid", "1.0.0", &borrowed(&contents("solid")));
    for place in [&[][..], &["-l"]] {
        let install = [&["install", "npm:solid"], place].concat();
        pi(&registry, &home, &install).await.ok();
    }
    registry.publish_archive("solid", "2.0.0", b"this is no archive".to_vec());
    let error = pi(&registry, &home, &["update"]).await.failed(1);
    let damaged = "Error: The archive of solid@2.0.0 cannot be unpacked: it is damaged";
    assert!(error.contains(damaged), "{error}");
    let update_project = ["install", "npm:solid@2.0.0", "-l"];
    let error = pi(&registry, &home, &update_project).await.failed(1);
    assert!(error.contains(damaged), "{error}");
    assert_eq!(project_settings(&home), json!({"packages": ["npm:solid"]}));
    let project = home.cwd().join(".pi/npm");
    for folder in [Registry::user_root(&home), project.join("node_modules")] {
        let manifest = fs::read_to_string(folder.join("solid/package.json")).unwrap();
        assert!(manifest.contains("1.0.0"), "{manifest}");
    }
    assert_eq!(names(&registry, &home).await, all_of("solid"));
    let left = fs::read_dir(&project)
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = left
        .filter(|name| name.to_string_lossy().starts_with(".inst"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
async fn an_installation_that_is_killed_leaves_the_old_version() {
    let registry = Registry::start().await;
    let home = Home::bare();
    home.trust_projects();
    registry.publish("solid", "1.0.0", &borrowed(&contents("solid")));
    let install = ["install", "npm:solid@1.0.0", "-l"];
    pi(&registry, &home, &install).await.ok();
    registry.publish("solid", "2.0.0", &borrowed(&contents("never")));
    registry.stall("solid", "2.0.0");
    let mut command = registry.command(&home, env!("CARGO_BIN_EXE_pi"));
    let mut child = command
        .args(["install", "npm:solid@2.0.0", "-l"])
        .spawn()
        .unwrap();
    let requested = || registry.requests().contains(&"/solid/-/2.0.0".to_owned());
    tokio::time::timeout(TIMEOUT, async {
        while !requested() {
            pause(10).await;
        }
    })
    .await
    .expect("npm asks for the archive");
    child.kill().await.unwrap();
    assert_eq!(
        project_settings(&home),
        json!({"packages": ["npm:solid@1.0.0"]})
    );
    assert_eq!(names(&registry, &home).await, all_of("solid"));
    // The next installation is not hindered by leftovers.
    registry.publish("solid", "3.0.0", &borrowed(&contents("third")));
    let install = ["install", "npm:solid@3.0.0", "-l"];
    pi(&registry, &home, &install).await.ok();
    assert_eq!(names(&registry, &home).await, all_of("third"));
}

#[tokio::test]
async fn packages_of_a_project_are_installed_together() {
    let registry = Registry::start().await;
    let home = Home::bare();
    home.trust_projects();
    registry.publish("a", "1.0.0", &borrowed(&contents("a")));
    registry.publish("b", "1.0.0", &borrowed(&contents("b")));
    registry.publish("b", "2.0.0", &borrowed(&contents("b-two")));
    // Two installations at the same time keep both entries.
    let first = pi(&registry, &home, &["install", "-l", "npm:a"]);
    let second = pi(&registry, &home, &["install", "-l", "npm:b@1.0.0"]);
    let (first, second) = tokio::join!(first, second);
    first.ok();
    second.ok();
    let packages = project_settings(&home)["packages"].clone();
    let mut packages: Vec<_> = packages
        .as_array()
        .unwrap()
        .iter()
        .map(Value::to_string)
        .collect();
    packages.sort();
    assert_eq!(packages, ["\"npm:a\"", "\"npm:b@1.0.0\""]);
    let mut found = names(&registry, &home).await;
    found.sort();
    assert_eq!(
        found,
        ["a", "a-prompt", "b", "b-prompt", "skill:a", "skill:b"]
    );
    let update = pi(&registry, &home, &["update"]).await.ok();
    assert!(
        update.contains("npm:b@1.0.0 stays: its source names a version\n"),
        "{update}"
    );
    // Another version replaces the entry and keeps its choices.
    let text = json!({"packages": [{"source": "npm:b@1.0.0", "skills": [], "note": 1}, "npm:a"]});
    home.file(".pi/settings.json", &text.to_string());
    pi(&registry, &home, &["install", "-l", "npm:b@2.0.0"])
        .await
        .ok();
    assert_eq!(
        project_settings(&home)["packages"],
        json!([{"source": "npm:b@2.0.0", "skills": [], "note": 1}, "npm:a"])
    );
    let mut found = names(&registry, &home).await;
    found.sort();
    assert_eq!(found, ["a", "a-prompt", "b-two", "b-two-prompt", "skill:a"]);
    let list = pi(&registry, &home, &["list"]).await.ok();
    assert!(list.contains("  npm:b@2.0.0 (filtered)\n"), "{list}");
    let ignored = fs::read_to_string(home.cwd().join(".pi/npm/.gitignore")).unwrap();
    assert_eq!(ignored, "*\n!.gitignore\n");
}

/// Makes git fetch `https://git.test/…` from folders below `root`.
pub(super) fn serve_git(home: &Home, root: &Path) {
    let config = format!(
        "[url \"file://{}/\"]\n\tinsteadOf = https://git.test/\n",
        root.display()
    );
    let user_home = home.agent_dir().ancestors().nth(2).unwrap().to_owned();
    fs::write(user_home.join(".gitconfig"), config).unwrap();
}

#[tokio::test]
async fn a_repository_is_cloned_updated_and_removed() {
    let registry = Registry::start().await;
    let home = Home::bare();
    let root = home.cwd().join("repositories");
    let repository = root.join("u/tool");
    serve_git(&home, &root);
    commit(&repository, &borrowed(&contents("first")));
    git(&repository, &["tag", "v1"]);
    let source = "git:git.test/u/tool";
    pi(&registry, &home, &["install", source]).await.ok();
    assert_eq!(settings(&home), json!({"packages": [source]}));
    let folder = home.agent_dir().join("git/git.test/u/tool");
    let mut session = rpc(&registry, &home);
    let found = commands(&mut session).await;
    assert_eq!(found[0].1["source"], source);
    assert_eq!(found[0].1["baseDir"], json!(folder));
    session.close().await;

    fs::remove_dir_all(repository.join("extensions")).unwrap();
    commit(&repository, &borrowed(&contents("second")));
    // A user's changes in the clone do not prevent an update.
    fs::write(folder.join("prompts/first-prompt.md"), "changed").unwrap();
    pi(&registry, &home, &["update"]).await.ok();
    let mut found = names(&registry, &home).await;
    found.sort();
    let expected = [
        "first-prompt",
        "second",
        "second-prompt",
        "skill:first",
        "skill:second",
    ];
    assert_eq!(found, expected);
    let output = pi(&registry, &home, &["update", "https://git.test/u/tool.git"])
        .await
        .ok();
    assert!(
        output.contains(&format!("{source} is the newest already\n")),
        "{output}"
    );

    commit(&repository, &[("more", "")]);
    let hidden = root.join("u/hidden");
    fs::rename(&repository, &hidden).unwrap();
    pi(&registry, &home, &["update"]).await.failed(1);
    let mut found = names(&registry, &home).await;
    found.sort();
    assert_eq!(found, expected, "the old clone stays");
    fs::rename(&hidden, &repository).unwrap();

    let pinned = "git:git.test/u/tool@v1";
    pi(&registry, &home, &["install", pinned]).await.ok();
    assert_eq!(settings(&home), json!({"packages": [pinned]}));
    assert_eq!(names(&registry, &home).await, all_of("first"));

    // Another installation moves the clone to where its source is now.
    let marker = |name: &str| folder.join(name).exists();
    pi(&registry, &home, &["install", source]).await.ok();
    assert!(marker("more"), "unpinned after pinned");
    let branch = "git:git.test/u/tool@topic";
    git(&repository, &["checkout", "-q", "-b", "topic"]);
    for name in ["one", "two"] {
        commit(&repository, &[(name, "")]);
        pi(&registry, &home, &["install", branch]).await.ok();
        assert!(marker(name), "a branch that has moved");
    }
    fs::rename(&repository, &hidden).unwrap();
    let output = pi(&registry, &home, &["install", branch]).await.ok();
    assert!(
        output.contains("cannot be asked, the clone stays"),
        "{output}"
    );
    fs::rename(&hidden, &repository).unwrap();

    pi(&registry, &home, &["remove", source]).await.ok();
    assert!(!home.agent_dir().join("git/git.test").exists());
}

#[tokio::test]
async fn missing_packages_are_installed_when_a_session_starts() {
    let registry = Registry::start().await;
    let home = Home::bare();
    registry.publish("auto", "1.0.0", &borrowed(&contents("auto")));
    registry.publish("auto", "1.1.0", &borrowed(&contents("newer")));
    registry.publish("once", "1.0.0", &borrowed(&contents("once")));
    let wanted = json!({"packages": ["npm:auto@1.0.0", "npm:not-there", "npm:../x"]});
    fs::write(home.agent_dir().join("settings.json"), wanted.to_string()).unwrap();

    let mut offline = home.rpc(&["--no-session"]);
    assert!(commands(&mut offline).await.is_empty());
    assert!(
        offline.stderr().contains("not installed"),
        "{}",
        offline.stderr()
    );
    offline.close().await;

    let mut command = registry.command(&home, env!("CARGO_BIN_EXE_pi"));
    command.args(["--mode", "rpc", "--no-session", "-e", "npm:once"]);
    let mut session = Rpc::start(command);
    let found = commands(&mut session).await;
    let all: Vec<_> = found.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        all,
        [
            "once",
            "auto",
            "once-prompt",
            "auto-prompt",
            "skill:once",
            "skill:auto"
        ]
    );
    assert_eq!(found[0].1["source"], "cli");
    assert_eq!(found[0].1["scope"], "temporary");
    let output = session.stderr();
    let brings =
        "Installed npm:auto@1.0.0. It brings:\n  extension  extensions/auto.ts  (runs when";
    for part in [
        brings,
        "The package npm:not-there could not be installed",
        "npm:../x",
    ] {
        assert!(output.contains(part), "{part}: {output}");
    }
    session.close().await;

    // The settings now ask for another version.
    let wanted = json!({"packages": ["npm:auto@1.1.0"]});
    fs::write(home.agent_dir().join("settings.json"), wanted.to_string()).unwrap();
    assert_eq!(names(&registry, &home).await, all_of("newer"));
    // Installed packages need no network.
    let before = registry.requests().len();
    assert_eq!(names(&registry, &home).await, all_of("newer"));
    assert_eq!(registry.requests().len(), before);
}

/// 0.67 keeps the user's packages of npm in npm's global folder, where we find them, too.
#[tokio::test]
async fn each_original_finds_what_we_installed() {
    let registry = Registry::start().await;
    let home = Home::bare();
    let root = home.cwd().join("repositories");
    serve_git(&home, &root);
    commit(&root.join("u/tool"), &borrowed(&contents("tool")));
    registry.publish("one", "1.0.0", &borrowed(&contents("one")));
    registry.publish("two", "1.0.0", &borrowed(&contents("two")));
    for (path, text) in contents("local") {
        home.file(&format!("pkg/{path}"), &text);
    }
    let mut original = registry.command(&home, "node");
    let program = Reference::install().program();
    original.arg(program).args(["install", "npm:one"]);
    finish(original, "").await.ok();
    for words in [
        &["install", "npm:two@1.0.0", "-l"][..],
        &["install", "https://git.test/u/tool"],
        &["install", "-l", "git:git.test/u/tool"],
        &["install", "./pkg"],
    ] {
        pi(&registry, &home, words).await.ok();
    }
    let ours = pi(&registry, &home, &["list"]).await.ok();
    let mut original = registry.command(&home, "node");
    original.arg(Reference::install().program()).arg("list");
    assert_eq!(finish(original, "").await.ok(), ours);

    let mut session = rpc(&registry, &home);
    let ours = commands(&mut session).await;
    session.close().await;
    let mut original = registry.command(&home, "node");
    original.arg(Reference::install().program());
    // Online, the original would fetch what it does not find.
    original.env("PI_OFFLINE", "1");
    original.args(["--mode", "rpc", "--no-session", "--provider", "anthropic"]);
    original.args(["--model", "claude-sonnet-4-5", "--api-key", "x"]);
    let mut session = Rpc::start(original);
    let theirs = commands(&mut session).await;
    session.close().await;
    assert_eq!(ours, theirs);
    assert_eq!(ours.len(), 12, "{ours:?}");

    pi(&registry, &home, &["install", "npm:one"]).await.ok();
    let ours = pi(&registry, &home, &["list"]).await.ok();
    let Program::Original { node, script } = Program::newest() else {
        unreachable!("the newest one is an original");
    };
    let mut newest = registry.command(&home, node.to_str().unwrap());
    newest.arg(script).args(["list", "--approve"]);
    let theirs = finish(newest, "").await.ok();
    assert!(ours.contains(".pi/agent/npm/node_modules/one"), "{ours}");
    assert_eq!(theirs, ours);
}

#[tokio::test]
async fn the_setting_npm_command_replaces_npm() {
    let registry = Registry::start().await;
    let home = Home::bare();
    registry.publish("one", "1.0.0", &borrowed(&contents("one")));
    let script = home.file(
        "npm.sh",
        "echo \"$@\" >> \"$LOG\"\nshift\nexec npm \"$@\"\n",
    );
    let wanted = json!({"npmCommand": ["sh", script, "--"]});
    fs::write(home.agent_dir().join("settings.json"), wanted.to_string()).unwrap();
    let log = home.cwd().join("log");
    let mut command = registry.command(&home, env!("CARGO_BIN_EXE_pi"));
    command.env("LOG", &log).args(["install", "npm:one"]);
    finish(command, "").await.ok();
    let log = fs::read_to_string(log).unwrap();
    let install = log
        .lines()
        .find(|line| line.starts_with("-- install one --prefix"));
    assert!(
        install.is_some_and(|line| line.ends_with("--ignore-scripts")),
        "{log}"
    );
    // Scripts are named and run on request here, too.
    let members = json!({"scripts": {"postinstall": "touch ran"}});
    registry.publish_with("two", "1.0.0", members, &borrowed(&contents("two")));
    let output = pi(&registry, &home, &["install", "npm:two"]).await.ok();
    assert!(
        output.contains("pi install --allow-scripts two"),
        "{output}"
    );
    let ran = Registry::user_root(&home).join("two/ran");
    assert!(!ran.exists());
    let allow = ["install", "--allow-scripts", "two"];
    pi(&registry, &home, &allow).await.ok();
    assert!(ran.exists());
    let broken = json!({"npmCommand": ["no-such-npm"], "packages": ["npm:one"]});
    fs::write(home.agent_dir().join("settings.json"), broken.to_string()).unwrap();
    let error = pi(&registry, &home, &["install", "npm:one"])
        .await
        .failed(1);
    assert!(error.contains("no-such-npm cannot be run"), "{error}");
    // The session still starts, with what is installed.
    assert_eq!(names(&registry, &home).await, all_of("one"));
}

#[tokio::test]
async fn wrong_arguments_are_refused() {
    let home = Home::bare();
    for (words, expected) in [
        (
            &["install"][..],
            "Missing install source.\nUsage: pi install [source]... [-l] [--locked] [--allow-scripts <name>]\n",
        ),
        (
            &["remove", "-l"],
            "Missing remove source.\nUsage: pi remove <source>... [-l]\n",
        ),
        (
            &["list", "-l"],
            "Unknown option -l for \"list\".\nUse \"pi --help\" or \"pi list\".\n",
        ),
        (&["update", "npm:x"], ""),
        (&["install", "./gone"], "Error: Path does not exist: "),
        (
            &["install", "npm:../../x"],
            "Error: \"npm:../../x\" does not name a package of npm",
        ),
        (
            &["install", "git:git@h.org:../../../x"],
            "Error: \"git:git@h.org:../../../x\" does not",
        ),
        (
            &["install", "github:u/r"],
            "Error: \"github:u/r\" does not name a git repository",
        ),
    ] {
        let finished = home.run(words, "").await;
        if expected.is_empty() {
            assert!(finished.ok().contains("offline"), "{words:?}");
            continue;
        }
        let error = finished.failed(1);
        assert!(error.starts_with(expected), "{words:?}: {error}");
    }
    assert!(!home.agent_dir().join("settings.json").exists());
    let help = home.run(&["install", "--help"], "").await.ok();
    assert!(
        help.starts_with("Usage: pi install [source]... [-l] "),
        "{help}"
    );
    fs::write(home.agent_dir().join("settings.json"), "{broken").unwrap();
    home.file("pkg/extensions/a.ts", "");
    let error = home.run(&["install", "./pkg"], "").await.failed(1);
    assert!(error.contains("neither read nor written"), "{error}");
    let text = fs::read_to_string(home.agent_dir().join("settings.json")).unwrap();
    assert_eq!(text, "{broken");
}
