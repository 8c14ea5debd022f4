//! Resources of users in `~/.pi/agent` and `.pi`: context files, prompts, skills, templates. Where
//! one run is enough, the result is compared with the original's.

use std::fs;
use std::path::Path;

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use crate::support::{Home, Rpc, text_of};

/// A home with every kind of resource in every place, including odd ones.
fn furnished(server: &ModelServer) -> Home {
    let home = Home::new(server);
    let skill = |name: &str, more: &str| {
        format!(
            "---\nname: {name}\ndescription: about {name} <&> \"it's\"\n{more}---\n\n# {name}\nDo it.\n"
        )
    };
    let agent = |path: &str, text: &str| {
        let path = home.agent_dir().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    agent("AGENTS.md", "The user's rules.\n");
    agent("APPEND_SYSTEM.md", "Appended by the user.");
    agent("SYSTEM.md", "Not read: the project has one.");
    home.file("../AGENTS.md", "Rules of the folder above.");
    home.file("CLAUDE.md", "Rules of the project.\n\n");
    home.file(".pi/SYSTEM.md", "You are a test.\n");

    agent("skills/both/SKILL.md", &skill("both", ""));
    home.file(".pi/skills/both/SKILL.md", &skill("both", "license: MIT\n"));
    agent("skills/deep/er/nested/SKILL.md", &skill("nested", ""));
    agent(
        "skills/deep/er/nested/more/SKILL.md",
        &skill("not-searched", ""),
    );
    agent("skills/alone.md", &skill("alone", ""));
    agent(
        "skills/hidden/SKILL.md",
        &skill("hidden", "disable-model-invocation: true\n"),
    );
    agent("skills/Odd_Name/SKILL.md", "---\ndescription: odd\n---\nx");
    agent(
        "skills/silent/SKILL.md",
        "---\nname: silent\n---\nno description",
    );
    agent("skills/broken/SKILL.md", "---\nname: [\n---\nbroken");
    agent("skills/.dot/SKILL.md", &skill("dot", ""));
    agent("skills/node_modules/m/SKILL.md", &skill("m", ""));
    agent("skills/.gitignore", "ignored\n");
    agent("skills/ignored/SKILL.md", &skill("ignored", ""));
    home.file(
        "../home/.agents/skills/shared/SKILL.md",
        &skill("shared", ""),
    );
    home.file("../home/.agents/skills/loose.md", &skill("loose", ""));
    home.file(".agents/skills/ours/SKILL.md", &skill("ours", ""));
    home.file("extra/set/SKILL.md", &skill("set", ""));
    home.file("extra/off/SKILL.md", &skill("off", ""));
    home.file("named/SKILL.md", &skill("named", ""));
    home.file("found/SKILL.md", &skill("found", ""));

    agent(
        "prompts/fix.md",
        "---\ndescription: Fix it\nargument-hint: <what>\n---\nNot this one.",
    );
    home.file(
        ".pi/prompts/fix.md",
        "Fix $1 in $2. All: $@. Rest: ${@:2}. One: ${@:2:1}. $ARGUMENTS $9.",
    );
    agent("prompts/sub/not-read.md", "x");
    agent(
        "prompts/long.md",
        "\n\n  A first line that is longer than the sixty characters that are shown of it.\n",
    );
    home.file("named.md", "---\ndescription: Named\n---\n\nNamed $1\n");
    home.file("found.md", "Found.");
    home.file(
        "pkg/package.json",
        r#"{"name": "pkg", "pi": {"skills": ["./s"], "prompts": ["./p", "!p/no.md"]}}"#,
    );
    home.file("pkg/s/packed/SKILL.md", &skill("packed", ""));
    home.file("pkg/p/packed.md", "From the package");
    home.file("pkg/p/no.md", "Not let through");
    home.file(
        "pkg/skills/conventional/SKILL.md",
        &skill("conventional", ""),
    );
    home.extension(
        "finder.ts",
        r#"export default (pi) => { pi.on("resources_discover", () => ({
            skillPaths: ["found"], promptPaths: ["found.md"], themePaths: [] }));
            pi.registerCommand("finder", { description: "finds", handler: async () => {} }); }"#,
    );
    home.file(
        ".pi/settings.json",
        &json!({"skills": ["../extra", "!**/off"], "packages": ["../pkg"]}).to_string(),
    );
    home
}

const FLAGS: [&str; 4] = ["--skill", "named", "--prompt-template", "named.md"];

fn original(home: &Home, arguments: &[&str]) -> Rpc {
    home.original_rpc(&[&["--no-session"], arguments].concat())
}

fn ours(home: &Home, arguments: &[&str]) -> Rpc {
    home.rpc(&[&["--no-session"], arguments].concat())
}

async fn commands(rpc: &mut Rpc) -> Vec<Value> {
    let answer = rpc.ok(json!({"type": "get_commands"})).await;
    let mut commands = answer["commands"].as_array().unwrap().clone();
    for command in &mut commands {
        let members = command.as_object_mut().unwrap();
        // Older versions of the original had these members; pi has both.
        members.remove("path");
        members.remove("location");
    }
    commands
}

/// The commands of `finder.ts`. The original forgets the sources of all others when an extension
/// adds some.
fn found(commands: &[Value]) -> Vec<&Value> {
    let is_found = |command: &&Value| command["name"].as_str().unwrap().ends_with("found");
    commands.iter().filter(is_found).collect()
}

fn names(commands: &[Value]) -> Vec<&str> {
    commands
        .iter()
        .map(|command| command["name"].as_str().unwrap())
        .collect()
}

/// The system prompt and the user's last message of a request.
async fn request(server: &ModelServer, rpc: &mut Rpc, prompt: &str) -> (String, String) {
    server.push(Answer::text("ok"));
    rpc.run(prompt).await;
    let body = server.last_request().body;
    let system = match &body["system"] {
        Value::String(text) => text.clone(),
        blocks => text_of(&json!({"content": blocks})),
    };
    let messages = body["messages"].as_array().unwrap();
    (system, text_of(messages.last().unwrap()))
}

/// The system prompt without the instructions for skills, which pi words differently.
fn comparable(system: &str) -> String {
    let (before, skills) = system.split_once("\n\n<available_skills>").expect("skills");
    let (before, _) = before.rsplit_once("\n\n").expect("an introduction");
    format!("{before}\n\n<available_skills>{skills}")
}

#[tokio::test]
async fn prompt_and_commands_equal_the_originals() {
    let server = ModelServer::start().await;
    let home = furnished(&server);
    let mut all = Vec::new();
    for mut rpc in [ours(&home, &FLAGS), original(&home, &FLAGS)] {
        let commands = commands(&mut rpc).await;
        let (system, text) = request(&server, &mut rpc, "/fix 'a b' c \"d\" e").await;
        let (_, skill) = request(&server, &mut rpc, "/skill:hidden with this").await;
        let (_, unknown) = request(&server, &mut rpc, "/skill:unknown x").await;
        let (_, fixed) = request(&server, &mut rpc, "/named").await;
        rpc.close().await;
        all.push((commands, comparable(&system), [text, skill, unknown, fixed]));
    }
    let (theirs, ours) = (all.pop().unwrap(), all.pop().unwrap());
    assert_eq!(names(&ours.0), names(&theirs.0));
    assert_eq!(found(&ours.0), found(&theirs.0));
    assert_eq!(ours.1, theirs.1);
    assert_eq!(ours.2, theirs.2);
    // Both must not merely be empty.
    assert!(
        ours.1
            .starts_with("You are a test.\n\n\nAppended by the user."),
        "{}",
        ours.1
    );
    assert!(ours.1.contains("<name>shared</name>") && !ours.1.contains("hidden"));
    assert_eq!(
        ours.2[0],
        "Fix a b in c. All: a b c d e. Rest: c d e. One: c. a b c d e ."
    );
}

#[tokio::test]
async fn sources_of_resources_equal_the_originals() {
    let server = ModelServer::start().await;
    let home = furnished(&server);
    fs::remove_file(home.agent_dir().join("extensions/finder.ts")).unwrap();
    let flags = [&FLAGS[..], &["-e", "pkg"]].concat();
    for flags in [&FLAGS[..], &flags] {
        let mut ours = ours(&home, flags);
        let mut theirs = original(&home, flags);
        let (our_commands, their_commands) =
            (commands(&mut ours).await, commands(&mut theirs).await);
        assert_eq!(our_commands, their_commands);
        assert!(our_commands.len() > 10, "{our_commands:?}");
        ours.close().await;
        theirs.close().await;
    }
}

#[tokio::test]
async fn each_kind_can_be_disabled_and_still_named() {
    let server = ModelServer::start().await;
    let home = furnished(&server);
    let off = [
        "--no-skills",
        "-np",
        "--no-themes",
        "-nc",
        "--no-extensions",
    ];
    let with_flags = [&off[..], &FLAGS].concat();
    for arguments in [&off[..], &with_flags] {
        let mut ours = ours(&home, arguments);
        let mut theirs = original(&home, arguments);
        assert_eq!(commands(&mut ours).await, commands(&mut theirs).await);
        let (our_system, _) = request(&server, &mut ours, "hello").await;
        let (their_system, _) = request(&server, &mut theirs, "hello").await;
        match arguments.len() == off.len() {
            true => assert_eq!(our_system, their_system),
            false => assert_eq!(comparable(&our_system), comparable(&their_system)),
        }
        assert!(!our_system.contains("Rules of"), "{our_system}");
        ours.close().await;
        theirs.close().await;
    }
    let mut rpc = ours(&home, &with_flags);
    assert_eq!(names(&commands(&mut rpc).await), ["named", "skill:named"]);
    rpc.close().await;
}

#[tokio::test]
async fn flags_override_the_system_prompt_files() {
    let server = ModelServer::start().await;
    let home = furnished(&server);
    home.file("prompt.txt", "From a file.");
    let flags = [
        "--system-prompt",
        "prompt.txt",
        "--append-system-prompt",
        "one",
    ];
    let flags = [
        &flags[..],
        &["--append-system-prompt", "two", "--tools", "bash"],
    ]
    .concat();
    let mut systems = Vec::new();
    for mut rpc in [ours(&home, &flags), original(&home, &flags)] {
        systems.push(request(&server, &mut rpc, "hello").await.0);
        rpc.close().await;
    }
    assert_eq!(systems[0], systems[1]);
    assert!(
        systems[0].starts_with("From a file.\n\none\n\ntwo\n\n# Project Context\n\n"),
        "{}",
        systems[0]
    );
    assert!(!systems[0].contains("<skill>"), "the model cannot read");
}

#[tokio::test]
async fn collisions_and_mistakes_are_reported() {
    let server = ModelServer::start().await;
    let home = furnished(&server);
    let mut rpc = ours(&home, &["--skill", "gone", "--prompt-template", "gone.md"]);
    commands(&mut rpc).await;
    let output = rpc.stderr();
    for part in [
        "has the same name, \"both\"",
        "has the same name, \"/fix\"",
        "needs a description",
        "broken/SKILL.md: not loaded",
        "Skill path does not exist: ",
        "Prompt template path does not exist: ",
    ] {
        assert!(output.contains(part), "{part}: {output}");
    }
    rpc.close().await;
}

#[tokio::test]
async fn a_command_that_changes_a_setting_writes_only_its_key() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    let path = home.agent_dir().join("settings.json");
    let text = fs::read_to_string(&path).unwrap();
    let model = serde_json::from_str::<Value>(&text).unwrap();
    let provider = &model["defaultProvider"];
    let before = format!(
        "{{\n  // mine\n  \"defaultProvider\": {provider}, \"defaultModel\": {},\n\n  \
         \"unknown\": {{ \"a\": [1,2] }},\n}}\n",
        model["defaultModel"]
    );
    fs::write(&path, &before).unwrap();
    let mut rpc = home.rpc(&["--no-session"]);
    rpc.ok(json!({"type": "get_state"})).await;
    assert_eq!(fs::read_to_string(&path).unwrap(), before);
    for command in [
        json!({"type": "set_steering_mode", "mode": "all"}),
        json!({"type": "set_auto_retry", "enabled": false}),
        json!({"type": "set_follow_up_mode", "mode": "all"}),
    ] {
        rpc.ok(command).await;
    }
    rpc.close().await;
    let after = fs::read_to_string(&path).unwrap();
    let kept = before.strip_suffix("\n}\n").unwrap();
    assert_eq!(
        after,
        format!(
            "{kept}\n  \"steeringMode\": \"all\",\n  \"retry\": {{\n    \"enabled\": false,\n  }},\n  \
             \"followUpMode\": \"all\",\n}}\n"
        )
    );
}

/// From an untrusted folder only text for the model is used.
#[tokio::test]
async fn resources_of_a_project_can_be_left_out() {
    let server = ModelServer::start().await;
    server.repeat(Answer::text("Fine."));
    let home = Home::new(&server);
    let says = |who: &str| {
        format!(
            "export default (pi) => pi.on('session_start', (event, ctx) => \
             ctx.ui.notify(`{who} ${{ctx.isProjectTrusted()}} ${{event.reason}}`));"
        )
    };
    home.extension("mine.ts", &says("mine"));
    home.file(".pi/extensions/theirs.ts", &says("theirs"));
    home.file("more.ts", &says("theirs, too"));
    home.file(".pi/SYSTEM.md", "You are theirs.");
    home.file(".pi/prompts/theirs.md", "Theirs");
    home.file(
        ".agents/skills/theirs/SKILL.md",
        "---\nname: theirs\ndescription: is theirs\n---\n\nDo it.\n",
    );
    home.file("AGENTS.md", "Read me all the same.");
    home.file(
        ".pi/settings.json",
        &json!({"extensions": ["../more.ts"], "defaultModel": "none"}).to_string(),
    );
    let mut rpc = home.rpc(&["-na"]);
    rpc.notified("mine false startup").await;
    rpc.run("hi").await;
    let system = server.last_request().body["system"].to_string();
    assert!(
        system.contains("Read me") && !system.contains("theirs"),
        "{system}"
    );
    rpc.ok(json!({"type": "reload"})).await;
    rpc.notified("mine false reload").await;
    let reported = commands(&mut rpc).await;
    assert!(
        !json!(reported).to_string().contains("theirs"),
        "{reported:?}"
    );
    rpc.ok(json!({"type": "new_session"})).await;
    rpc.notified("mine false new").await;
    let lines = json!(rpc.lines()).to_string();
    assert!(!lines.contains("theirs"), "{lines}");
    rpc.close().await;
    let mut rpc = home.rpc(&["--approve", "--model", "scripted-1"]);
    rpc.notified("theirs true startup").await;
}

/// Users who had recorded it in a newer version of the original lost it when they moved to pi.
#[tokio::test]
async fn a_project_that_is_recorded_as_not_trusted_is_left_out() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    let trusts = "import { SettingsManager } from '@mariozechner/pi-coding-agent';
        export default (pi) => pi.on('session_start', (event, ctx) => ctx.ui.notify(
            `mine ${ctx.isProjectTrusted()} ${SettingsManager.create(ctx.cwd).isProjectTrusted()}`));";
    home.extension("mine.ts", trusts);
    home.file(".pi/settings.json", r#"{"defaultModel": "theirs"}"#);
    let at = |folder: &Path| folder.canonicalize().unwrap().display().to_string();
    let (project, around) = (at(&home.cwd()), at(home.cwd().parent().unwrap()));
    let says = |trust: Value, default: &str| {
        fs::write(home.agent_dir().join("trust.json"), trust.to_string()).unwrap();
        home.settings(json!({"defaultProjectTrust": default}));
    };
    let reported = async |options: &[&str]| {
        let mut rpc = home.rpc(options);
        let output = rpc.ui("notify").await["message"].clone();
        rpc.close_stdin();
        rpc.end().await;
        (output.as_str().unwrap().to_owned(), rpc.stderr())
    };
    let (left_out, taken) = ("mine false false", "mine true true");
    says(json!({ &around: true, &project: false }), "always");
    let (output, complaint) = reported(&[]).await;
    assert_eq!(output, left_out);
    let why = format!("{project} is not trusted in ");
    assert!(
        complaint.contains(&why) && complaint.contains("--approve"),
        "{complaint}"
    );
    assert_eq!(reported(&["--approve"]).await.0, taken);
    says(json!({ &around: false, &project: true }), "never");
    let (output, complaint) = reported(&[]).await;
    assert_eq!(
        (output.as_str(), complaint.contains("left out")),
        (taken, false)
    );
    says(json!({ &around: false, &project: null }), "always");
    assert_eq!(reported(&[]).await.0, left_out);
    says(json!({}), "never");
    let (output, complaint) = reported(&[]).await;
    assert_eq!(output, left_out);
    assert!(complaint.contains("defaultProjectTrust"), "{complaint}");
    says(json!({ &project: "yes" }), "always");
    let (output, complaint) = reported(&[]).await;
    assert_eq!(output, left_out);
    assert!(complaint.contains("neither true nor false"), "{complaint}");
    says(json!({}), "always");
    assert_eq!(reported(&[]).await.0, taken);
}

#[tokio::test]
async fn an_extension_reads_the_recorded_trust() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    let asks = r#"import { hasTrustRequiringProjectResources, ProjectTrustStore } from "@earendil-works/pi-coding-agent";
        import { mkdirSync, realpathSync, writeFileSync } from "node:fs";
        export default (pi) => pi.on("session_start", (event, ctx) => {
            const here = realpathSync(ctx.cwd);
            mkdirSync(`${here}/project/.pi/prompts`, { recursive: true });
            const store = new ProjectTrustStore(`${here}/agent`);
            const thrown = (action) => { try { action() } catch (error) { return error.message.replaceAll(here, ".") } };
            const write = (text) => writeFileSync(`${here}/agent/trust.json`, text);
            mkdirSync(`${here}/agent`);
            const told = [store.get(here)];
            write(JSON.stringify({ [here]: true, [`${here}/project`]: false, [`${here}/none`]: null }));
            told.push(store.get(`${here}/project/a`), store.get(`${here}/none`));
            told.push(store.getEntry(`${here}/other`)?.path === here, store.getEntry("/") );
            write("[]");
            told.push(thrown(() => store.get(here)), thrown(() => store.set(here, true)));
            told.push(["project", "agent"].map((name) => hasTrustRequiringProjectResources(`${here}/${name}`)));
            ctx.ui.notify(JSON.stringify(told));
        });"#;
    home.extension("asks.ts", asks);
    let mut rpc = home.rpc(&[]);
    let output = rpc.ui("notify").await["message"].clone();
    let output: Value = serde_json::from_str(output.as_str().unwrap()).unwrap();
    let damaged = "./agent/trust.json: it is no object. Correct the file or remove it";
    assert_eq!(
        output,
        json!([
            null,
            false,
            true,
            true,
            null,
            damaged,
            damaged,
            [true, false]
        ])
    );
}

/// Newer versions have this setting: without it models could not be reached behind a proxy.
#[tokio::test]
async fn the_proxy_of_the_settings_is_used() {
    let server = ModelServer::start().await;
    server.repeat(Answer::text("Fine."));
    let home = Home::new(&server);
    home.settings(json!({"httpProxy": server.url()}));
    home.file(
        ".pi/settings.json",
        r#"{"httpProxy": "http://theirs.invalid"}"#,
    );
    home.extension(
        "far.ts",
        r#"export default (pi) => {
          pi.registerProvider("far", { baseUrl: "http://far.invalid", apiKey: "k", api: "anthropic-messages",
            models: [{ id: "m", name: "m", reasoning: false, input: ["text"], contextWindow: 200000, maxTokens: 900,
              cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 } }] });
          pi.on("session_start", (_event, ctx) => ctx.ui.notify(String(process.env.HTTPS_PROXY)));
        };"#,
    );
    let mut rpc = home.rpc(&["--model", "far/m"]);
    rpc.notified(&server.url()).await;
    assert_eq!(rpc.answer_to("hi").await, "Fine.");
}

/// Extensions for the newest versions open a child session in this way.
#[tokio::test]
async fn a_child_takes_nothing_from_an_untrusted_project() {
    let server = ModelServer::start().await;
    server.repeat(Answer::text("Fine."));
    let home = Home::new(&server);
    home.file(".pi/SYSTEM.md", "You are theirs.");
    home.file(".pi/prompts/theirs.md", "Theirs");
    home.file(
        ".pi/settings.json",
        r#"{"shellCommandPrefix": "echo theirs"}"#,
    );
    home.extension("opens.ts", include_str!("fixtures/resources.ts"));
    let nothing = r#"[false,false,0,"mine\n"]"#;
    let all = r#"[true,true,1,"theirs\nmine\n"]"#;
    for (option, reported) in [("-na", [nothing; 3]), ("-a", [all, nothing, all])] {
        let mut rpc = home.rpc(&[option]);
        for (args, reported) in ["", "no", "yes"].into_iter().zip(reported) {
            rpc.ok(json!({"type": "prompt", "message": format!("/open {args}")}))
                .await;
            let output = rpc
                .wait("what it took", |line| line["method"] == "notify")
                .await;
            assert_eq!(output["message"], reported, "{option} {args}");
        }
        rpc.close().await;
    }
}

#[tokio::test]
async fn a_byte_order_mark_never_reaches_the_model() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    let agent = |name: &str, text: &str| {
        let path = home.agent_dir().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("\u{feff}{text}")).unwrap();
    };
    agent("AGENTS.md", "The user's rules.");
    agent("APPEND_SYSTEM.md", "Appended.");
    agent("prompts/greet.md", "Hello $1.");
    agent(
        "skills/marked/SKILL.md",
        "---\nname: marked\ndescription: about marks\n---\nDo it.",
    );
    agent(
        "auth.json",
        r#"{"openai": {"type": "api_key", "key": "of the file"}}"#,
    );
    agent("keybindings.json", "{}");
    for name in ["settings.json", "models.json"] {
        let text = fs::read_to_string(home.agent_dir().join(name)).unwrap();
        agent(name, &text);
    }
    server.push(Answer::text("Yes."));
    let ran = home.run(&["-ne", "-p", "/greet you"], "").await;
    assert!(!ran.stderr.contains("Warning"), "{}", ran.stderr);
    ran.ok();
    let body = server.last_request().body.to_string();
    for text in [
        "The user's rules.",
        "Appended.",
        "Hello you.",
        "about marks",
    ] {
        assert!(body.contains(text), "{text} is not in {body}");
    }
    assert!(
        !body.contains('\u{feff}') && !body.contains("ufeff"),
        "{body}"
    );
}

#[tokio::test]
async fn error_of_a_skill_that_is_gone_names_its_file() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    let file = home.agent_dir().join("skills/gone/SKILL.md");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "---\nname: gone\ndescription: about it\n---\nDo it.").unwrap();
    let mut rpc = ours(&home, &[]);
    assert_eq!(names(&commands(&mut rpc).await), ["skill:gone"]);
    fs::remove_file(&file).unwrap();
    server.push(Answer::text("Yes."));
    rpc.run("/skill:gone").await;
    let lines = rpc.lines();
    let error = lines.iter().find(|it| it["type"] == "extension_error");
    let error = error.unwrap();
    assert_eq!(error["event"], "skill_expansion");
    assert_eq!(error["extensionPath"], file.display().to_string());
}
