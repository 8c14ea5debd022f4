//! `pi.lock`: the same is installed again, changes are shown before they take effect, and a
//! project installs at a start only what it names.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::install::{borrowed, contents, names, pi, project_settings, rpc, serve_git};
use crate::support::registry::{Registry, commit};
use crate::support::{Home, finish};

fn lock(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn publish(registry: &Registry, name: &str, version: &str, shown: &str, dependencies: Value) {
    let members = json!({"dependencies": dependencies});
    registry.publish_with(name, version, members, &borrowed(&contents(shown)));
}

#[tokio::test]
async fn the_same_is_installed_again() {
    let registry = Registry::start().await;
    let home = Home::bare();
    home.trust_projects();
    let root = home.cwd().join("repositories");
    serve_git(&home, &root);
    commit(&root.join("u/tool"), &borrowed(&contents("first")));
    publish(&registry, "dep", "1.0.0", "dep", json!({}));
    publish(&registry, "top", "1.0.0", "old", json!({"dep": "^1"}));
    pi(&registry, &home, &["install", "-l", "npm:top"])
        .await
        .ok();
    pi(&registry, &home, &["install", "-l", "git:git.test/u/tool"])
        .await
        .ok();
    let path = home.cwd().join(".pi/pi.lock");
    let before = lock(&path);
    let top = &before["packages"]["npm:top"];
    assert_eq!(top["source"], "npm:top");
    assert_eq!(top["version"], "1.0.0");
    assert!(top["integrity"].as_str().unwrap().starts_with("sha512-"));
    assert_eq!(top["tree"][1]["path"], "node_modules/dep");
    assert_eq!(top["tree"][1]["version"], "1.0.0");
    let tool = &before["packages"]["git:git.test/u/tool"];
    assert_eq!(tool["commit"].as_str().unwrap().len(), 40);

    publish(&registry, "dep", "1.1.0", "dep", json!({}));
    publish(&registry, "top", "2.0.0", "new", json!({"dep": "^1"}));
    commit(&root.join("u/tool"), &borrowed(&contents("second")));
    for folder in [".pi/npm", ".pi/git"] {
        fs::remove_dir_all(home.cwd().join(folder)).unwrap();
    }
    let output = pi(&registry, &home, &["install", "--locked", "-l"])
        .await
        .ok();
    assert!(output.contains("Installed npm:top\n"), "{output}");
    let mut found = names(&registry, &home).await;
    found.sort();
    let expected = [
        "first",
        "first-prompt",
        "old",
        "old-prompt",
        "skill:first",
        "skill:old",
    ];
    assert_eq!(found, expected);
    let dep = home
        .cwd()
        .join(".pi/npm/node_modules/top/node_modules/dep/package.json");
    assert!(fs::read_to_string(dep).unwrap().contains("1.0.0"));

    // A start restores what is missing, exactly as well.
    fs::remove_dir_all(home.cwd().join(".pi/npm")).unwrap();
    assert_eq!(names(&registry, &home).await.len(), 6);

    let changed = home.cwd().join(".pi/npm/node_modules/top");
    registry.change("top", "1.0.0", |it| it.archive.push(0));
    let error = pi(&registry, &home, &["install", "--locked", "-l"])
        .await
        .failed(1);
    assert!(
        error.contains("The archive of top@1.0.0 is not the one"),
        "{error}"
    );
    assert!(changed.join("package.json").exists(), "the old one stays");
    home.file(".pi/settings.json", r#"{"packages": ["npm:top@^2"]}"#);
    let error = pi(&registry, &home, &["install", "--locked", "-l"])
        .await
        .failed(1);
    assert!(
        error.contains("the project's lock file")
            && error.contains("is for npm:top, the settings have npm:top@^2")
            && error.contains("\"pi install -l npm:top@^2\""),
        "{error}"
    );
    let error = pi(&registry, &home, &["install", "--locked", "npm:dep"])
        .await
        .failed(1);
    assert!(
        error.contains("the user's lock file")
            && error.contains("pi.lock has nothing for npm:dep: \"pi install npm:dep\""),
        "{error}"
    );
    pi(&registry, &home, &["remove", "-l", "npm:top"])
        .await
        .ok();
    assert!(lock(&path)["packages"].get("npm:top").is_none());
}

#[tokio::test]
async fn a_lock_file_cannot_lead_out_of_the_package() {
    let registry = Registry::start().await;
    let home = Home::bare();
    home.trust_projects();
    publish(&registry, "top", "1.0.0", "old", json!({}));
    pi(&registry, &home, &["install", "-l", "npm:top"])
        .await
        .ok();
    let path = home.cwd().join(".pi/pi.lock");
    let good = lock(&path);
    for member in [
        json!({"path": "../../../out"}),
        json!({"path": "/tmp/pi-out"}),
        json!({"path": "node_modules/x", "link": "../../../.."}),
        json!({"path": "node_modules/x", "resolved": "file:../../../../secret"}),
        json!({"path": "node_modules/x", "resolved": "git+--upload-pack=touch out#main"}),
        json!({"path": "node_modules/x", "resolved": "file:///etc/passwd"}),
    ] {
        let mut bad = good.clone();
        let mut added = json!({"name": "x", "version": "1.0.0", "resolved": format!("{}top/-/1.0.0", registry.url())});
        for (key, value) in member.as_object().unwrap() {
            added[key] = value.clone();
        }
        let tree = bad["packages"]["npm:top"]["tree"].as_array_mut().unwrap();
        tree.push(added);
        fs::write(&path, bad.to_string()).unwrap();
        pi(&registry, &home, &["install", "--locked", "-l"])
            .await
            .failed(1);
        assert!(!home.cwd().join("out").exists(), "{member}");
    }
    fs::write(&path, "{").unwrap();
    let error = pi(&registry, &home, &["install", "--locked", "-l"])
        .await
        .failed(1);
    assert!(
        error.contains("pi.lock: ") && error.contains("remove it"),
        "{error}"
    );
}

#[tokio::test]
async fn a_start_installs_only_what_the_projects_lock_names() {
    let registry = Registry::start().await;
    let home = Home::bare();
    home.trust_projects();
    publish(&registry, "top", "1.0.0", "top", json!({}));
    home.file(".pi/settings.json", r#"{"packages": ["npm:top"]}"#);
    let mut session = rpc(&registry, &home);
    session.ok(json!({"type": "get_state"})).await;
    let output = session.stderr();
    assert!(output.contains("pi.lock does not name it"), "{output}");
    assert!(
        output.contains("\"pi install -l npm:top\" installs it"),
        "{output}"
    );
    session.close().await;
    assert_eq!(registry.requests(), Vec::<String>::new());

    pi(&registry, &home, &["install", "-l", "npm:top"])
        .await
        .ok();
    assert_eq!(project_settings(&home), json!({"packages": ["npm:top"]}));
    fs::remove_dir_all(home.cwd().join(".pi/npm")).unwrap();
    let before = registry.requests().len();
    let mut command = registry.command(&home, env!("CARGO_BIN_EXE_pi"));
    command.args(["--mode", "rpc", "--no-session", "--no-approve"]);
    let mut session = crate::support::Rpc::start(command);
    session.ok(json!({"type": "get_state"})).await;
    session.close().await;
    assert_eq!(
        registry.requests().len(),
        before,
        "an untrusted project gets nothing"
    );
    assert!(!home.cwd().join(".pi/npm").exists());
    assert_eq!(names(&registry, &home).await.len(), 3);
}

#[tokio::test]
async fn an_update_is_shown_before_it_takes_effect() {
    let registry = Registry::start().await;
    let home = Home::bare();
    publish(&registry, "dep", "1.0.0", "dep", json!({}));
    publish(&registry, "top", "1.0.0", "old", json!({}));
    pi(&registry, &home, &["install", "npm:top"]).await.ok();
    let folder = Registry::user_root(&home).join("top");
    let members =
        json!({"dependencies": {"dep": "1"}, "scripts": {"postinstall": "evil\u{1b}[2K"}});
    let mut files = contents("old");
    files[0].1 += "\n// a new line\u{1b}]0;title\u{7}\n";
    files.push((
        "extensions/more.ts".to_owned(),
        "export default () => {};\n".to_owned(),
    ));
    registry.publish_with("top", "1.1.0", members, &borrowed(&files));
    let update = |answer: &'static str| {
        let mut command = registry.command(&home, env!("CARGO_BIN_EXE_pi"));
        command.args(["update", "--diff"]);
        finish(command, answer)
    };
    for answer in ["", "n\n", "what\n"] {
        let output = update(answer).await.ok();
        for part in [
            "npm:top 1.0.0 -> 1.1.0\n",
            "  package.json: version: \"1.0.0\" -> \"1.1.0\"\n",
            "  package.json: + dependencies.dep: \"1\"\n",
            "  dependency: + dep 1.0.0\n",
            "  A extensions/more.ts\n",
            "  M extensions/old.ts\n",
            "+// a new line",
            "install script of top, which does not run: postinstall: evil",
            "Update npm:top? [y/N] ",
            "npm:top stays as it is\n",
        ] {
            assert!(output.contains(part), "{part}: {output}");
        }
        assert!(
            !output.contains('\u{1b}') && !output.contains('\u{7}'),
            "{output:?}"
        );
        assert!(!folder.join("extensions/more.ts").exists());
        assert_eq!(
            lock(&home.agent_dir().join("pi.lock"))["packages"]["npm:top"]["version"],
            "1.0.0"
        );
    }
    let output = update("y\n").await.ok();
    assert!(
        output.contains("npm:top 1.0.0 -> 1.1.0\nInstall scripts did not run:"),
        "{output}"
    );
    assert!(folder.join("extensions/more.ts").exists());
    assert!(folder.join("node_modules/dep").exists());
    assert_eq!(
        lock(&home.agent_dir().join("pi.lock"))["packages"]["npm:top"]["version"],
        "1.1.0"
    );
    let left = fs::read_dir(folder.parent().unwrap().parent().unwrap()).unwrap();
    let left = left.filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        name.to_string_lossy().starts_with(".inst")
    });
    assert_eq!(left.count(), 0);
}
