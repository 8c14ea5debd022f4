//! Install scripts run only when the user names their package.

use std::fs;

use serde_json::{Value, json};

use super::install::{borrowed, contents, pi, settings};
use crate::support::Home;
use crate::support::registry::Registry;

/// Scripts that leave a file with the name of the script.
fn scripts(home: &Home, name: &str) -> Value {
    let leave = |script: &str| {
        format!(
            "echo $npm_package_version > {}/{name}-{script}",
            home.cwd().display()
        )
    };
    json!({"preinstall": leave("pre"), "install": leave("in"), "postinstall": leave("post"),
        "prepare": leave("prepare")})
}

fn left(home: &Home) -> Vec<String> {
    let entries = fs::read_dir(home.cwd()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.contains('-')).collect();
    names.sort();
    names
}

#[tokio::test]
async fn scripts_run_only_for_the_named_package_and_archive() {
    let registry = Registry::start().await;
    let home = Home::bare();
    registry.publish_with(
        "dep",
        "1.0.0",
        json!({"scripts": scripts(&home, "dep")}),
        &[],
    );
    let gyp = json!({"gypfile": true});
    registry.publish_with("addon", "1.0.0", gyp, &[("binding.gyp", "{}")]);
    let members = |version: &str| {
        json!({"scripts": scripts(&home, "top"), "dependencies": {"dep": "1", "addon": "1"},
            "description": version})
    };
    registry.publish_with("top", "1.0.0", members("1"), &borrowed(&contents("top")));
    let output = pi(&registry, &home, &["install", "npm:top"]).await.ok();
    assert_eq!(left(&home), Vec::<String>::new(), "nothing ran");
    for part in [
        "Install scripts did not run:\n",
        "  dep 1.0.0 postinstall: echo",
        "  addon 1.0.0 install: node-gyp rebuild\n",
        "    If it does not work without: pi install --allow-scripts dep\n",
        "    If it does not work without: pi install --allow-scripts top\n",
    ] {
        assert!(output.contains(part), "{part}: {output}");
    }
    let error = pi(&registry, &home, &["install", "--allow-scripts", "gone"])
        .await
        .failed(1);
    assert!(
        error.contains("No installed package gone has install scripts"),
        "{error}"
    );

    let output = pi(&registry, &home, &["install", "--allow-scripts", "dep"])
        .await
        .ok();
    assert!(
        output.ends_with("Ran preinstall, install, postinstall of dep 1.0.0\n"),
        "{output}"
    );
    assert_eq!(left(&home), ["dep-in", "dep-post", "dep-pre"]);
    assert_eq!(settings(&home), json!({"packages": ["npm:top"]}));

    // The permission is for the archive.
    for name in left(&home) {
        fs::remove_file(home.cwd().join(name)).unwrap();
    }
    pi(&registry, &home, &["install", "npm:top"]).await.ok();
    assert_eq!(left(&home), ["dep-in", "dep-post", "dep-pre"]);
    registry.publish_with(
        "dep",
        "1.1.0",
        json!({"scripts": scripts(&home, "new")}),
        &[],
    );
    let output = pi(&registry, &home, &["install", "npm:top"]).await.ok();
    assert!(output.contains("  dep 1.1.0 postinstall: echo"), "{output}");
    assert_eq!(left(&home), ["dep-in", "dep-post", "dep-pre"]);
}

#[tokio::test]
async fn a_project_cannot_allow_scripts() {
    let registry = Registry::start().await;
    let home = Home::bare();
    registry.publish_with(
        "top",
        "1.0.0",
        json!({"scripts": scripts(&home, "top")}),
        &borrowed(&contents("top")),
    );
    pi(&registry, &home, &["install", "-l", "npm:top"])
        .await
        .ok();
    let lock = home.cwd().join(".pi/pi.lock");
    let mut text: Value = serde_json::from_str(&fs::read_to_string(&lock).unwrap()).unwrap();
    let hash = text["packages"]["npm:top"]["integrity"].clone();
    text["allowedScripts"] = json!({"top": [hash]});
    fs::write(&lock, text.to_string()).unwrap();
    pi(&registry, &home, &["install", "-l", "--locked"])
        .await
        .ok();
    assert_eq!(left(&home), Vec::<String>::new());
    let output = pi(
        &registry,
        &home,
        &["install", "-l", "npm:top", "--allow-scripts", "top"],
    )
    .await
    .ok();
    assert!(!output.contains("did not run"), "{output}");
    assert_eq!(left(&home), ["top-in", "top-post", "top-pre"]);
}
