//! Pipes, sockets and devices in the place of files: opening one would block for ever.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use model_server::{Answer, ModelServer};
use serde_json::json;

use crate::support::{Home, command};

fn make_pipe(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let made = Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success(), "{}", path.display());
}

const HELLO: &str = "export default (pi) => {
  pi.on(\"before_agent_start\", (event) => ({ systemPrompt: `${event.systemPrompt} hello` }));
};
";

/// Puts pipes into the folders of the agent and of the project.
fn pipes(home: &Home) -> Vec<PathBuf> {
    let of_agent = [
        "extensions/.gitignore",
        "extensions/.ignore",
        "extensions/folder/package.json",
        "extensions/package.json",
        "skills/.gitignore",
        "prompts/.ignore",
        "themes/.fdignore",
        "AGENTS.md",
        "SYSTEM.md",
        "keybindings.json",
    ];
    let of_project = [
        ".pi/settings.json",
        ".pi/extensions/.gitignore",
        ".pi/skills/.gitignore",
        ".pi/APPEND_SYSTEM.md",
        "AGENTS.md",
    ];
    let of_agent = of_agent.map(|name| home.agent_dir().join(name));
    let of_project = of_project.map(|name| home.cwd().join(name));
    of_agent.into_iter().chain(of_project).collect()
}

#[tokio::test]
async fn a_pipe_in_the_place_of_a_file_is_reported() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("hello.js", HELLO);
    home.extension("folder/index.js", HELLO);
    let mut running = home.rpc(&[]);
    running.ok(command("get_state")).await;
    let pipes = pipes(&home);
    for path in &pipes {
        make_pipe(path);
    }
    let socket = home.agent_dir().join("extensions/.fdignore");
    let _listener = UnixListener::bind(&socket).unwrap();
    let device = home.agent_dir().join("prompts/.gitignore");
    symlink("/dev/zero", &device).unwrap();
    running.ok(command("reload")).await;
    let mut started = home.rpc(&[]);
    started.ok(command("get_state")).await;
    for rpc in [&mut running, &mut started] {
        server.push(Answer::text("Fine."));
        rpc.run("go").await;
        let requested = server.requests().pop().unwrap().body["system"].to_string();
        assert!(
            requested.contains("hello hello"),
            "both have loaded: {requested}"
        );
    }
    // Files for the prompt are reported in the log.
    let log = fs::read_to_string(home.agent_dir().join("logs/pi.log")).unwrap_or_default();
    let output = format!("{}{log}", started.stderr());
    let reported = |path: &&PathBuf| {
        // Key bindings are only read for a terminal.
        !path.ends_with("keybindings.json") && !output.contains(path.to_str().unwrap())
    };
    let silent: Vec<_> = pipes
        .iter()
        .chain([&socket, &device])
        .filter(reported)
        .collect();
    assert_eq!(silent, Vec::<&PathBuf>::new(), "{output}");
    assert!(output.contains("a pipe, a socket or a device"), "{output}");
}

#[tokio::test]
async fn a_pipe_as_settings_or_models_file_is_reported() {
    for name in ["settings.json", "models.json", "auth.json", "trust.json"] {
        let home = Home::bare();
        let path = home.agent_dir().join(name);
        make_pipe(&path);
        // Trust is only mentioned if there is something to trust.
        if name == "trust.json" {
            home.file(".pi/SYSTEM.md", "Hello.");
        }
        let arguments = ["--provider", "demo", "--model", "demo"];
        let mut rpc = home.rpc(&arguments);
        rpc.ok(command("get_state")).await;
        rpc.ok(command("reload")).await;
        let output = rpc.stderr();
        assert!(output.contains(path.to_str().unwrap()), "{name}: {output}");
        assert!(rpc.close().await.success());
        let doctor = home.run(&["doctor"], "").await;
        assert!(doctor.stdout.contains(name), "{name}: {}", doctor.stdout);
    }
}

/// Users hide files with `/dev/null`, which counts as an empty file.
#[tokio::test]
async fn dev_null_is_an_empty_file() {
    let home = Home::bare();
    home.extension("hello.js", HELLO);
    for name in ["settings.json", "extensions/.gitignore", "AGENTS.md"] {
        symlink("/dev/null", home.agent_dir().join(name)).unwrap();
    }
    let mut rpc = home.rpc(&["--provider", "demo", "--model", "demo"]);
    rpc.ok(command("get_state")).await;
    assert!(!rpc.stderr().contains("Could not"), "{}", rpc.stderr());
}

/// The map was read to its end to find a source position, and `/dev/zero` has no end.
#[tokio::test]
async fn a_source_map_that_is_no_file_is_not_opened() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    let pipe = home.cwd().join("pipe.map");
    make_pipe(&pipe);
    let large = home.cwd().join("large.map");
    fs::File::create(&large).unwrap().set_len(1 << 40).unwrap();
    let maps = [&pipe, &large];
    for (index, map) in maps.iter().enumerate() {
        let map = map.display();
        home.extension(
            &format!("module{index}.js"),
            &format!(
                "import {{ fail }} from \"./script{index}.cjs\";\nexport default (pi) => {{\n  \
                 pi.on(\"agent_start\", () => {{ throw new Error(\"mine\"); }});\n  \
                 pi.on(\"agent_start\", () => fail());\n}};\n//# sourceMappingURL={map}\n"
            ),
        );
        home.extension(
            &format!("script{index}.cjs"),
            &format!(
                "exports.fail = () => {{ throw new Error(\"theirs\"); }};\n//# sourceMappingURL={map}\n"
            ),
        );
    }
    let mut rpc = home.rpc(&[]);
    server.push(Answer::text("Fine."));
    let events = rpc.run("go").await;
    let mut places: Vec<_> = (events.iter())
        .filter(|line| line["type"] == "extension_error")
        .map(|line| {
            let file = line["location"]["file"].as_str().unwrap_or_default();
            let file = file.rsplit('/').next().unwrap_or_default().to_owned();
            (file, line["location"]["line"].clone())
        })
        .collect();
    places.sort_by(|(one, _), (other, _)| one.cmp(other));
    let expected = [
        ("module0.js", 3),
        ("module1.js", 3),
        ("script0.cjs", 1),
        ("script1.cjs", 1),
    ];
    assert_eq!(
        places,
        expected.map(|(file, line)| (file.to_owned(), json!(line)))
    );
}
