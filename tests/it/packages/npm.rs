//! Packages of npm are installed without npm: dependencies, peers, platforms, repositories and
//! folders, and the configuration of registries.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::install::{borrowed, contents, names, pi, serve_git};
use crate::support::registry::{Registry, commit, git};
use crate::support::{Home, Rpc, finish, prompt};

/// An extension whose command `/show` shows the value of an expression.
fn showing(imports: &str, expression: &str) -> String {
    format!(
        "{imports}\nexport default (pi) => pi.registerCommand(\"show\", {{\n    \
         handler: async (_args, ctx) => ctx.ui.notify(JSON.stringify({expression})) }});\n"
    )
}

/// A module that exports its name and version.
fn module(registry: &Registry, name: &str, version: &str, members: serde_json::Value) {
    let text = format!("module.exports = {{ is: \"{name}@{version}\" }};");
    registry.publish_with(name, version, members, &[("index.js", &text)]);
}

async fn shows(rpc: &mut Rpc, expected: &serde_json::Value) {
    rpc.ok(prompt("/show")).await;
    rpc.notified(&expected.to_string()).await;
}

fn session(registry: &Registry, home: &Home) -> Rpc {
    let mut command = registry.command(home, env!("CARGO_BIN_EXE_pi"));
    command.args(["--mode", "rpc", "--no-session", "--provider", "demo"]);
    command.args(["--model", "demo"]);
    Rpc::start(command)
}

/// A folder for `PATH` with a few programs and without npm and node.
fn path_without_npm(home: &Home) -> PathBuf {
    let folder = home.cwd().join("programs");
    fs::create_dir_all(&folder).unwrap();
    for program in ["git", "sh", "cat", "env"] {
        let all = std::env::var_os("PATH").unwrap();
        let found = std::env::split_paths(&all).map(|it| it.join(program));
        let found = { found }.find(|it| it.exists()).expect("it is installed");
        symlink(found, folder.join(program)).unwrap();
    }
    folder
}

#[tokio::test]
async fn packages_are_installed_without_node_and_npm() {
    let registry = Registry::start().await;
    let home = Home::bare();
    module(&registry, "dep", "1.2.0", json!({}));
    module(&registry, "dep", "2.0.0", json!({}));
    module(&registry, "peer", "1.0.0", json!({}));
    module(
        &registry,
        "here",
        "1.0.0",
        json!({"os": [std::env::consts::OS.replace("macos", "darwin")]}),
    );
    module(&registry, "elsewhere", "1.0.0", json!({"os": ["aix"]}));
    module(
        &registry,
        "musl",
        "1.0.0",
        json!({"os": ["linux"], "libc": ["musl"]}),
    );
    let members = json!({
        "dependencies": {"dep": "^1.0.0"},
        "peerDependencies": {"peer": "*", "@earendil-works/pi-coding-agent": "^999", "typebox": "^999",
            "@mariozechner/pi-ai": "^999"},
        "optionalDependencies": {"here": "1", "elsewhere": "1", "musl": "1", "never-published": "1"},
        "pi": {"extensions": ["./main.ts"]},
    });
    let imports = "import { VERSION } from \"@earendil-works/pi-coding-agent\";\n\
                   import dep from \"dep\";\nimport peer from \"peer\";\nimport here from \"here\";";
    let source = showing(imports, "[dep.is, peer.is, here.is, typeof VERSION]");
    registry.publish_with("@t/top", "1.0.0", members, &[("main.ts", &source)]);
    let programs = path_without_npm(&home);
    for place in [&[][..], &["-l"]] {
        let mut command = registry.command(&home, env!("CARGO_BIN_EXE_pi"));
        command.env("PATH", &programs).arg("install").args(place);
        command.arg("npm:@t/top");
        let output = finish(command, "").await.ok();
        assert!(output.contains("extension  main.ts"), "{output}");
    }
    for root in [
        Registry::user_root(&home),
        home.cwd().join(".pi/npm/node_modules"),
    ] {
        let modules = root.join("@t/top/node_modules");
        let mut found: Vec<_> = fs::read_dir(&modules)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        found.sort();
        assert_eq!(found, ["dep", "here", "peer"]);
    }
    let mut command = registry.command(&home, env!("CARGO_BIN_EXE_pi"));
    command
        .env("PATH", &programs)
        .args(["--mode", "rpc", "--no-session"]);
    command.args(["--provider", "demo", "--model", "demo"]);
    let mut rpc = Rpc::start(command);
    let expected = json!(["dep@1.2.0", "peer@1.0.0", "here@1.0.0", "string"]);
    shows(&mut rpc, &expected).await;
    rpc.close().await;
    let mut command = registry.command(&home, env!("CARGO_BIN_EXE_pi"));
    command
        .env("PATH", &programs)
        .args(["remove", "npm:@t/top"]);
    finish(command, "").await.ok();
    assert!(!Registry::user_root(&home).join("@t").exists());
}

#[tokio::test]
async fn cycles_aliases_and_several_versions_work() {
    let registry = Registry::start().await;
    let home = Home::bare();
    for (version, other) in [("1.0.0", "2.0.0"), ("2.0.0", "1.0.0")] {
        let text = format!("exports.is = \"a@{version}\"; exports.b = () => require(\"b\").is;");
        let members = json!({"dependencies": {"b": other}});
        registry.publish_with("a", version, members, &[("index.js", &text)]);
        let text = format!("exports.is = \"b@{version}\"; exports.a = () => require(\"a\").is;");
        let members = json!({"dependencies": {"a": version}});
        registry.publish_with("b", version, members, &[("index.js", &text)]);
    }
    let members = json!({
        "dependencies": {"a": "1.0.0", "b": "1.0.0", "renamed": "npm:a@2.0.0"},
        "bin": {"top": "./run.js"},
        "pi": {"extensions": ["./main.ts"]},
    });
    let imports = "import a from \"a\";\nimport b from \"b\";\nimport renamed from \"renamed\";";
    let source = showing(
        imports,
        "[a.is, a.b(), b.is, b.a(), renamed.is, renamed.b()]",
    );
    let files = [("main.ts", source.as_str()), ("run.js", "")];
    registry.publish_with("top", "1.0.0", members, &files);
    pi(&registry, &home, &["install", "npm:top"]).await.ok();
    let mut rpc = session(&registry, &home);
    let expected = json!([
        "a@1.0.0", "b@2.0.0", "b@1.0.0", "a@1.0.0", "a@2.0.0", "b@1.0.0"
    ]);
    shows(&mut rpc, &expected).await;
    rpc.close().await;
}

#[tokio::test]
async fn workspaces_folders_and_repositories_are_installed() {
    let registry = Registry::start().await;
    let home = Home::bare();
    let root = home.cwd().join("repositories");
    serve_git(&home, &root);
    module(&registry, "dep", "1.0.0", json!({}));
    module(&registry, "dep", "2.0.0", json!({}));
    let ran = home.cwd().join("ran");
    let touch = format!("touch {}", ran.display());
    let prepare = json!({"name": "from-git", "version": "0.1.0", "main": "i.js",
        "scripts": {"prepare": touch, "postinstall": touch}, "dependencies": {"dep": "^1"}});
    let from_git = "exports.is = \"from-git with \" + require(\"dep\").is;";
    let repository = root.join("u/from-git");
    let files = [("i.js", from_git), ("package.json", &prepare.to_string())];
    commit(&repository, &files);
    git(&repository, &["tag", "v0.1.0"]);
    commit(&repository, &[("i.js", "exports.is = \"too new\";")]);
    let inner = r#"{"name": "@w/b", "version": "1.0.0", "main": "i.js", "dependencies": {"dep": "^1", "@w/c": "workspace:*"}}"#;
    let other = r#"{"name": "@w/c", "version": "1.0.0", "main": "i.js"}"#;
    let vendored = r#"{"name": "vendored", "version": "3.0.0", "main": "i.js"}"#;
    let manifest = json!({
        "name": "tool", "workspaces": ["packages/*"],
        "scripts": {"preinstall": touch, "prepare": touch},
        "dependencies": {
            "dep": "^2", "vendored": "file:./vendor/it",
            "from-git": "git+https://git.test/u/from-git#semver:^0.1",
            "archive": format!("{}dep/-/1.0.0", registry.url()),
        },
        "pi": {"extensions": ["./main.ts"]},
    });
    let imports = "import b from \"@w/b\";\nimport dep from \"dep\";\nimport vendored from \"vendored\";\n\
                   import fromGit from \"from-git\";\nimport archive from \"archive\";";
    let source = showing(
        imports,
        "[b.is, dep.is, vendored.is, fromGit.is, archive.is]",
    );
    let files = [
        ("package.json", manifest.to_string()),
        ("main.ts", source),
        ("packages/b/package.json", inner.to_owned()),
        (
            "packages/b/i.js",
            "exports.is = `b with ${require(\"dep\").is} and ${require(\"@w/c\").is}`;".to_owned(),
        ),
        ("packages/c/package.json", other.to_owned()),
        ("packages/c/i.js", "exports.is = \"c\";".to_owned()),
        ("vendor/it/package.json", vendored.to_owned()),
        ("vendor/it/i.js", "exports.is = \"vendored\";".to_owned()),
    ];
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(path, text)| (*path, text.as_str()))
        .collect();
    commit(&root.join("u/tool"), &files);
    let output = pi(&registry, &home, &["install", "git:git.test/u/tool"])
        .await
        .ok();
    assert!(output.contains("Install scripts did not run:"), "{output}");
    assert!(output.contains("from-git 0.1.0 prepare: touch"), "{output}");
    // The archive was fetched for its manifest, and once more to be unpacked.
    let requests = registry.requests();
    let fetched = requests.iter().filter(|path| *path == "/dep/-/1.0.0");
    assert_eq!(fetched.count(), 1, "{requests:?}");
    assert!(!ran.exists(), "no script runs");
    let mut rpc = session(&registry, &home);
    let expected = json!([
        "b with dep@1.0.0 and c",
        "dep@2.0.0",
        "vendored",
        "from-git with dep@1.0.0",
        "dep@1.0.0"
    ]);
    shows(&mut rpc, &expected).await;
    rpc.close().await;
    assert!(!ran.exists());
}

#[tokio::test]
async fn registries_of_scopes_and_tokens_are_used() {
    let (open, closed, home) = (
        Registry::start().await,
        Registry::start().await,
        Home::bare(),
    );
    module(&open, "dep", "1.0.0", json!({}));
    let members = json!({"dependencies": {"dep": "1"}});
    closed.publish_with("@me/tool", "1.0.0", members, &borrowed(&contents("mine")));
    closed.require("Bearer s3cret");
    let user_home = home.agent_dir().ancestors().nth(2).unwrap().to_owned();
    let text = format!(
        "registry={}\n@me:registry={}\n//{}/:_authToken=${{TOKEN}}\n",
        open.url(),
        closed.url(),
        closed.address()
    );
    fs::write(user_home.join(".npmrc"), text).unwrap();
    let run = |token: Option<&str>| {
        let mut command = home.command(env!("CARGO_BIN_EXE_pi"));
        command
            .env_remove("PI_OFFLINE")
            .args(["install", "npm:@me/tool"]);
        command.envs(token.map(|token| ("TOKEN", token)));
        finish(command, "")
    };
    let error = run(Some("wrong")).await.failed(1);
    assert!(error.contains("401") && error.contains(".npmrc"), "{error}");
    assert!(!error.contains("wrong"), "{error}");
    run(Some("s3cret")).await.ok();
    assert_eq!(names(&open, &home).await.len(), 3);
    assert!(open.credentials().iter().all(Option::is_none));
}

#[tokio::test]
async fn a_proxy_of_npmrc_is_used() {
    let (registry, home) = (Registry::start().await, Home::bare());
    registry.publish("tool", "1.0.0", &borrowed(&contents("tool")));
    registry.change("tool", "1.0.0", |it| {
        it.manifest["dist"]["tarball"] = json!("http://registry.test/tool/-/1.0.0");
    });
    let user_home = home.agent_dir().ancestors().nth(2).unwrap().to_owned();
    let text = format!("registry=http://registry.test/\nproxy={}\n", registry.url());
    fs::write(user_home.join(".npmrc"), text).unwrap();
    let install = |place: &'static [&'static str]| {
        let mut command = home.command(env!("CARGO_BIN_EXE_pi"));
        command.env_remove("PI_OFFLINE").arg("install").args(place);
        command.arg("npm:tool");
        finish(command, "")
    };
    install(&[]).await.ok();
    assert_eq!(registry.requests(), ["/tool", "/tool/-/1.0.0"]);
    // A project's own file does not count: it could send the user's variables to its author.
    home.file(".npmrc", "registry=http://elsewhere.test/${HOME}\n");
    home.file(".pi/npm/.npmrc", "proxy=\n");
    install(&["-l"]).await.ok();
    assert_eq!(registry.requests().len(), 4);
}

#[tokio::test]
async fn a_version_of_the_last_hours_waits() {
    let registry = Registry::start().await;
    let home = Home::bare();
    home.trust_projects();
    let now = chrono::Utc::now();
    let publish = |name: &str, version: &str, hours: i64| {
        registry.publish(
            name,
            version,
            &borrowed(&contents(&format!("v{}", &version[..1]))),
        );
        registry.change(name, version, |it| {
            it.published = Some((now - chrono::TimeDelta::hours(hours)).to_rfc3339());
        });
    };
    publish("tool", "1.0.0", 30);
    publish("tool", "2.0.0", 2);
    publish("young", "1.0.0", 1);
    let version = |name: &str| {
        let path = Registry::user_root(&home).join(name).join("package.json");
        let text = fs::read_to_string(path).unwrap();
        let manifest: serde_json::Value = serde_json::from_str(&text).unwrap();
        manifest["version"].as_str().unwrap().to_owned()
    };
    pi(&registry, &home, &["install", "npm:tool"]).await.ok();
    assert_eq!(version("tool"), "1.0.0");
    let output = pi(&registry, &home, &["update"]).await.ok();
    assert!(
        output.contains("npm:tool is the newest already"),
        "{output}"
    );
    let error = pi(&registry, &home, &["install", "npm:young"])
        .await
        .failed(1);
    assert!(
        error.contains("young 1.0.0 was published only at"),
        "{error}"
    );
    let skip = "To install it now: pi install --ignore-release-age npm:young";
    assert!(
        error.contains("waits 24 hours") && error.contains(skip),
        "{error}"
    );
    pi(
        &registry,
        &home,
        &["install", "--ignore-release-age", "npm:young"],
    )
    .await
    .ok();
    assert_eq!(version("young"), "1.0.0");
    pi(&registry, &home, &["install", "npm:tool@2.0.0"])
        .await
        .ok();
    assert_eq!(version("tool"), "2.0.0", "the user has chosen it");
    // A project can ask for more, not for less.
    home.file(".pi/settings.json", r#"{"minimumReleaseAge": 1}"#);
    pi(&registry, &home, &["install", "npm:tool"]).await.ok();
    assert_eq!(version("tool"), "1.0.0");
    home.file(".pi/settings.json", r#"{"minimumReleaseAge": 48}"#);
    let error = pi(&registry, &home, &["install", "npm:tool"])
        .await
        .failed(1);
    assert!(error.contains("waits 48 hours"), "{error}");
    fs::write(
        home.agent_dir().join("settings.json"),
        r#"{"minimumReleaseAge": 1}"#,
    )
    .unwrap();
    home.file(".pi/settings.json", "{}");
    pi(&registry, &home, &["install", "npm:tool"]).await.ok();
    assert_eq!(version("tool"), "2.0.0");
}

/// npm must not remove or change what pi has installed beside it.
#[tokio::test]
async fn npm_keeps_what_we_installed() {
    let registry = Registry::start().await;
    let home = Home::bare();
    module(&registry, "dep", "1.0.0", json!({}));
    let members = json!({"dependencies": {"dep": "1"}});
    registry.publish_with("ours", "1.0.0", members, &borrowed(&contents("ours")));
    registry.publish("theirs", "1.0.0", &borrowed(&contents("theirs")));
    pi(&registry, &home, &["install", "npm:ours", "-l"])
        .await
        .ok();
    let folder = home.cwd().join(".pi/npm");
    let mut npm = registry.command(&home, "npm");
    npm.args(["install", "theirs", "--ignore-scripts", "--prefix"])
        .arg(&folder);
    finish(npm, "").await.ok();
    let has = |path: &str| Path::new(&folder).join("node_modules").join(path).exists();
    assert!(has("ours/package.json") && has("theirs/package.json"));
    assert!(has("ours/node_modules/dep/index.js") || has("dep/index.js"));
}

/// Returns the words of each call of git that clones, by a program in its place.
fn count_clones(home: &Home, command: &mut tokio::process::Command) -> PathBuf {
    let (folder, log) = (home.cwd().join("counting"), home.cwd().join("clones"));
    fs::create_dir_all(&folder).unwrap();
    let path = std::env::var("PATH").unwrap();
    let script = format!(
        "#!/bin/sh\nfor word; do [ \"$word\" = clone ] && echo \"$@\" >> {}; done\n\
         PATH='{path}' exec git \"$@\"\n",
        log.display()
    );
    let program = folder.join("git");
    fs::write(&program, script).unwrap();
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&program, executable).unwrap();
    command.env("PATH", format!("{}:{path}", folder.display()));
    log
}

#[tokio::test]
async fn a_repository_among_dependencies_is_cloned_once() {
    let registry = Registry::start().await;
    let home = Home::bare();
    let root = home.cwd().join("repositories");
    serve_git(&home, &root);
    let files = [
        (
            "package.json",
            r#"{"name": "dep", "version": "1.0.0", "main": "i.js"}"#,
        ),
        ("i.js", "exports.is = \"cloned\";"),
    ];
    commit(&root.join("u/dep"), &files);
    let source = showing("import dep from \"dep\";", "[dep.is]");
    let members = json!({
        "dependencies": {"dep": "git+https://git.test/u/dep"}, "pi": {"extensions": ["./main.ts"]},
        "optionalDependencies": {"absent": "1"},
    });
    registry.publish_with("tool", "1.0.0", members, &[("main.ts", &source)]);
    let mut command = registry.command(&home, env!("CARGO_BIN_EXE_pi"));
    let log = count_clones(&home, &mut command);
    command.args(["install", "npm:tool"]);
    finish(command, "").await.ok();
    let mut rpc = session(&registry, &home);
    shows(&mut rpc, &json!(["cloned"])).await;
    rpc.close().await;
    let clones = fs::read_to_string(log).unwrap();
    assert_eq!(clones.lines().count(), 1, "{clones}");
}

#[tokio::test]
async fn overrides_of_the_project_and_of_a_repository_hold() {
    let registry = Registry::start().await;
    let home = Home::bare();
    for version in ["1.0.0", "1.1.0", "2.0.0"] {
        module(&registry, "dep", version, json!({}));
    }
    module(&registry, "other", "1.0.0", json!({}));
    let members = json!({
        "main": "i.js", "dependencies": {"dep": "^1"}, "overrides": {"dep": "2.0.0"},
    });
    let file = ("i.js", "exports.is = require(\"dep\").is;");
    registry.publish_with("between", "1.0.0", members, &[file]);
    let imports = "import between from \"between\";\nimport dep from \"dep\";";
    let source = showing(imports, "[between.is, dep.is]");
    let manifest = |overrides: serde_json::Value| {
        json!({
            "name": "tool", "pi": {"extensions": ["./main.ts"]}, "overrides": overrides,
            "dependencies": {"between": "1", "dep": "^1.0.0"},
        })
    };
    // The overrides of a package in the registry do not count, those of the npm project do.
    let of_package = manifest(json!({"dep": "2.0.0"}));
    registry.publish_with("tool", "1.0.0", of_package, &[("main.ts", &source)]);
    pi(&registry, &home, &["install", "npm:tool"]).await.ok();
    let mut rpc = session(&registry, &home);
    shows(&mut rpc, &json!(["dep@1.1.0", "dep@1.1.0"])).await;
    rpc.close().await;
    let project = home.agent_dir().join("npm/package.json");
    let write = |overrides: serde_json::Value| {
        let text = fs::read_to_string(&project).unwrap();
        let mut manifest: serde_json::Value = serde_json::from_str(&text).unwrap();
        manifest["overrides"] = overrides;
        fs::write(&project, manifest.to_string()).unwrap();
    };
    write(json!({"between": {"dep": "1.0.0"}, "tool": "9.9.9"}));
    pi(&registry, &home, &["install", "npm:tool"]).await.ok();
    let mut rpc = session(&registry, &home);
    shows(&mut rpc, &json!(["dep@1.0.0", "dep@1.1.0"])).await;
    rpc.close().await;
    write(json!({"dep": ["1.0.0"]}));
    let output = pi(&registry, &home, &["install", "npm:tool"]).await;
    assert!(!output.status.success());
    assert!(
        output.stderr.contains("\"overrides\" cannot be used"),
        "{}",
        output.stderr
    );
    pi(&registry, &home, &["remove", "npm:tool"]).await;
    write(json!({}));

    // A clone is the root of its tree.
    let root = home.cwd().join("repositories");
    serve_git(&home, &root);
    let of_clone = manifest(json!({
        "dep": "npm:other@1", "between": {"dep": format!("{}dep/-/2.0.0", registry.url())},
    }));
    let files = [("package.json", of_clone.to_string()), ("main.ts", source)];
    let files = files.each_ref().map(|(path, text)| (*path, text.as_str()));
    commit(&root.join("u/tool"), &files);
    pi(&registry, &home, &["install", "git:git.test/u/tool"])
        .await
        .ok();
    let mut rpc = session(&registry, &home);
    shows(&mut rpc, &json!(["dep@2.0.0", "other@1.0.0"])).await;
    rpc.close().await;
}

/// A server that needs a client certificate, with files that have the headers of their answers.
/// Returns its port.
fn serve_with_certificates(folder: &Path) -> (std::process::Child, u16) {
    let mut server = std::process::Command::new("openssl")
        .args("s_server -accept 127.0.0.1:0 -cert leaf.pem -key leaf.key -CAfile ca.pem".split(' '))
        .args("-Verify 1 -verify_return_error -HTTP".split(' '))
        .current_dir(folder)
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("scripts/setup installs openssl");
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let output = lines.find_map(|line| line.unwrap().strip_prefix("ACCEPT ").map(str::to_owned));
    let output = output.expect("the server tells its port");
    let port = output.trim().rsplit(':').next().unwrap().parse().unwrap();
    // The server must not stop because its output is full.
    std::thread::spawn(move || lines.for_each(drop));
    (server, port)
}

#[tokio::test]
async fn a_client_certificate_of_npmrc_is_shown() {
    let registry = Registry::start().await;
    let home = Home::bare();
    let folder = home.cwd().join("server");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("names"), "subjectAltName=IP:127.0.0.1").unwrap();
    for words in [
        "req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=ca",
        "req -newkey rsa:2048 -nodes -keyout leaf.key -out leaf.csr -subj /CN=leaf",
        "x509 -req -in leaf.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out leaf.pem -days 2 -extfile names",
    ] {
        let mut openssl = std::process::Command::new("openssl");
        openssl.args(words.split(' ')).current_dir(&folder);
        let made = openssl.output().expect("scripts/setup installs openssl");
        assert!(made.status.success(), "{made:?}");
    }
    let (mut server, port) = serve_with_certificates(&folder);
    registry.publish_with(
        "closed",
        "1.0.0",
        json!({"pi": {"extensions": ["./main.ts"]}}),
        &[("main.ts", &showing("", "[\"closed\"]"))],
    );
    registry.change("closed", "1.0.0", |version| {
        let url = format!("https://127.0.0.1:{port}/closed.tgz");
        version.manifest["dist"]["tarball"] = json!(url);
        let metadata = json!({
            "name": "closed", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version.manifest},
            "time": {"1.0.0": "2020-01-01T00:00:00.000Z"}, "modified": "2020-01-01T00:00:00.000Z",
        });
        let answer = |kind: &str, body: &[u8]| {
            let head = format!("HTTP/1.0 200 OK\r\nContent-Type: {kind}\r\n\r\n");
            [head.as_bytes(), body].concat()
        };
        let metadata = answer("application/json", metadata.to_string().as_bytes());
        fs::write(folder.join("closed"), metadata).unwrap();
        let archive = answer("application/octet-stream", &version.archive);
        fs::write(folder.join("closed.tgz"), archive).unwrap();
    });
    let host = format!("//127.0.0.1:{port}/");
    let path = |name: &str| folder.join(name).display().to_string();
    let (certificate, key) = (path("leaf.pem"), path("leaf.key"));
    let pem = |name: &str| {
        let text = fs::read_to_string(folder.join(name)).unwrap();
        text.trim_end().replace('\n', "\\n")
    };
    let base = format!("registry=https:{host}\ncafile={}\n", path("ca.pem"));
    let npmrc = home.agent_dir().ancestors().nth(2).unwrap().join(".npmrc");
    for (lines, is_shown) in [
        (String::new(), false),
        (
            format!("{host}:certfile={certificate}\n{host}:keyfile={key}\n"),
            true,
        ),
        (
            format!(
                "cert=\"{}\"\nkey=\"{}\"\n",
                pem("leaf.pem"),
                pem("leaf.key")
            ),
            true,
        ),
    ] {
        fs::write(&npmrc, format!("{base}{lines}")).unwrap();
        let mut command = registry.command(&home, env!("CARGO_BIN_EXE_pi"));
        command.env_remove("npm_config_registry");
        command.args(["install", "npm:closed"]);
        let done = finish(command, "").await;
        assert_eq!(done.status.success(), is_shown, "{lines}: {}", done.stderr);
        pi(&registry, &home, &["remove", "npm:closed"]).await;
    }
    server.kill().unwrap();
    server.wait().unwrap();
}
