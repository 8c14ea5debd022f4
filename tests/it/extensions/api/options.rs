//! Options of functions and classes that extensions call, and settings of newer versions. Each of
//! them was accepted and ignored.

use serde_json::json;

use crate::support::{Home, command_result};

/// An extension whose slash command `look` notifies the JSON of what `body` returns.
fn looks(imports: &str, body: &str) -> String {
    format!(
        r#"{imports}
        const failure = (work) => {{ try {{ return work(); }} catch (error) {{ return error.message; }} }};
        export default (pi) => pi.registerCommand("look", {{ handler: async (_args, ctx) => {{
          const look = async () => {{ {body} }};
          ctx.ui.notify(JSON.stringify(await look()));
        }} }});"#
    )
}

#[tokio::test]
async fn a_new_session_takes_its_parent_and_id_from_the_options() {
    let home = Home::bare();
    home.extension(
        "look.ts",
        &looks(
            r#"import { SessionManager } from "@earendil-works/pi-coding-agent";
            import { basename } from "node:path";"#,
            r#"const dir = ctx.cwd + "/sessions";
            const of = (manager) => [manager.getHeader().parentSession ?? null, manager.getSessionId()];
            const created = SessionManager.create(ctx.cwd, dir, { id: "made", parentSession: "/before.jsonl" });
            created.appendMessage({ role: "user", content: "x", timestamp: 1 });
            const file = created.getSessionFile();
            const forked = SessionManager.forkFrom(file, ctx.cwd, dir, { id: "copy", parentSession: "/not-this.jsonl" });
            const listed = await SessionManager.list(ctx.cwd, dir);
            return {
              created: of(created),
              named: basename(file).endsWith("_made.jsonl"),
              memory: of(SessionManager.inMemory(ctx.cwd, { id: "held", parentSession: "/before.jsonl" })),
              forked: [forked.getHeader().parentSession === file, forked.getSessionId()],
              listed: listed.find(({ id }) => id === "made").parentSessionPath,
              wrong: failure(() => SessionManager.create(ctx.cwd, dir, { id: "../x" })).includes("../x"),
              entries: failure(() => SessionManager.inMemory(ctx.cwd, {}, [{}])).split(":")[0],
            };"#,
        ),
    );
    let mut rpc = home.rpc(&[]);
    let expected = json!({
        "created": ["/before.jsonl", "made"],
        "named": true,
        "memory": ["/before.jsonl", "held"],
        "forked": [true, "copy"],
        "listed": "/before.jsonl",
        "wrong": true,
        "entries": "SessionManager.inMemory",
    });
    assert_eq!(command_result(&mut rpc, "look").await, expected);
}

#[tokio::test]
async fn settings_in_memory_know_the_trust_of_the_project() {
    let home = Home::bare();
    home.trust_projects();
    home.file(".pi/prompts/theirs.md", "Theirs");
    home.extension(
        "look.ts",
        &looks(
            r#"import { DefaultResourceLoader, getAgentDir, SettingsManager } from "@earendil-works/pi-coding-agent";"#,
            r#"const prompts = async (settingsManager) => {
              const loader = new DefaultResourceLoader({ cwd: ctx.cwd, agentDir: getAgentDir(), settingsManager });
              await loader.reload();
              return loader.getPrompts().prompts.map(({ name }) => name);
            };
            const distrusts = SettingsManager.inMemory({ theme: "light" }, { projectTrusted: false });
            const trusts = SettingsManager.inMemory({}, { projectTrusted: true });
            trusts.setProjectPackages(["npm:x"]);
            trusts.setProjectTrusted(false);
            const meanwhile = trusts.getPackages();
            trusts.setProjectTrusted(true);
            return {
              distrusts: [distrusts.isProjectTrusted(), distrusts.getTheme(), await prompts(distrusts)],
              refused: failure(() => distrusts.setProjectPackages(["npm:x"])),
              packages: distrusts.getPackages(),
              trusts: [trusts.isProjectTrusted(), meanwhile, trusts.getPackages(), await prompts(SettingsManager.inMemory())],
              without: SettingsManager.inMemory().isProjectTrusted(),
            };"#,
        ),
    );
    let mut rpc = home.rpc(&[]);
    let expected = json!({
        "distrusts": [false, "light", []],
        "refused": "SettingsManager: \"packages\" is not set for the project, because the project is \
                    not trusted",
        "packages": [],
        "trusts": [true, [], ["npm:x"], ["theirs"]],
        "without": true,
    });
    assert_eq!(command_result(&mut rpc, "look").await, expected);
}

#[cfg(unix)]
#[tokio::test]
async fn commands_run_in_the_shell_of_the_options() {
    let home = Home::bare();
    home.extension(
        "look.ts",
        &looks(
            r#"import { createBashTool, createCodingTools, createLocalBashOperations, getShellConfig } from "@earendil-works/pi-coding-agent";
            import { chmodSync, writeFileSync } from "node:fs";"#,
            r##"const shellPath = ctx.cwd + "/mine.sh";
            const none = ctx.cwd + "/none.sh";
            writeFileSync(shellPath, '#!/bin/sh\nprintf "mine $1: $2"\n');
            chmodSync(shellPath, 0o755);
            const ran = async (tool) => (await tool.execute("1", { command: "echo x" })).content[0].text.trim();
            const said = [];
            const local = createLocalBashOperations({ shellPath });
            const { exitCode } = await local.exec("echo y", ctx.cwd, { onData: (data) => said.push(data.toString()) });
            const [, bash] = createCodingTools(ctx.cwd, { bash: { shellPath, commandPrefix: "first" } });
            const elsewhere = { exec: async (command, _cwd, { onData }) => {
              onData(Buffer.from(`elsewhere: ${command}`));
              return { exitCode: 0 };
            } };
            const broken = await createLocalBashOperations({ shellPath: none })
              .exec("true", ctx.cwd, { onData() {} }).catch(({ message }) => message);
            return {
              tool: await ran(createBashTool(ctx.cwd, { shellPath })),
              prefixed: await ran(bash),
              elsewhere: await ran(createBashTool(ctx.cwd, { shellPath: none, operations: elsewhere })),
              usual: await ran(createBashTool(ctx.cwd, { shellPath: "" })),
              local: [said.join(""), exitCode],
              config: [getShellConfig(shellPath).shell === shellPath, getShellConfig(shellPath).args],
              broken: [broken, failure(() => getShellConfig(none)), await ran(createBashTool(ctx.cwd, { shellPath: none })).catch(({ message }) => message)]
                .map((message) => message.replace(none, "NONE")),
            };"##,
        ),
    );
    let mut rpc = home.rpc(&[]);
    let expected = json!({
        "tool": "mine -c: echo x",
        "prefixed": "mine -c: first\necho x",
        "elsewhere": "elsewhere: echo x",
        "usual": "x",
        "local": ["mine -c: echo y", 0],
        "config": [true, ["-c"]],
        "broken": vec!["Custom shell path not found: NONE"; 3],
    });
    assert_eq!(command_result(&mut rpc, "look").await, expected);
}

#[tokio::test]
async fn tool_sets_take_the_options_of_each_tool() {
    let home = Home::bare();
    home.extension(
        "look.ts",
        &looks(
            r#"import { createCodingTools, createReadOnlyTools } from "@earendil-works/pi-coding-agent";"#,
            r#"const asked = [];
            const ask = (name, value) => async (...args) => { asked.push(name); return typeof value === "function" ? value(...args) : value; };
            const folder = { isDirectory: () => true };
            const ran = async (tools, name, args) => await tools.find((tool) => tool.name === name).execute("1", args).then(() => name, ({ message }) => message);
            const coding = createCodingTools(ctx.cwd, {
              edit: { operations: { access: ask("edit"), readFile: ask("edit", Buffer.from("a")), writeFile: ask("edit") } },
              write: { operations: { mkdir: ask("write"), writeFile: ask("write") } },
            });
            const reading = createReadOnlyTools(ctx.cwd, {
              grep: { operations: { isDirectory: ask("grep", true), readFile: ask("grep", "") } },
              find: { operations: { exists: ask("find", true), glob: ask("find", []) } },
              ls: { operations: { exists: ask("ls", true), stat: ask("ls", folder), readdir: ask("ls", []) } },
            });
            const done = [
              await ran(coding, "edit", { path: "far", edits: [{ oldText: "a", newText: "b" }] }),
              await ran(coding, "write", { path: "far", content: "x" }),
              await ran(reading, "grep", { pattern: "x", path: "." }),
              await ran(reading, "find", { pattern: "*" }),
              await ran(reading, "ls", {}),
            ];
            return [done, [...new Set(asked)]];"#,
        ),
    );
    let mut rpc = home.rpc(&[]);
    let all = ["edit", "write", "grep", "find", "ls"];
    assert_eq!(command_result(&mut rpc, "look").await, json!([all, all]));
}

#[tokio::test]
async fn settings_of_newer_versions_are_read_or_refused() {
    let home = Home::bare();
    home.trust_projects();
    home.file(
        ".pi/settings.json",
        r#"{"defaultProjectTrust": "always", "retry": {"maxAgentDelayMs": 7}}"#,
    );
    home.extension(
        "look.ts",
        &looks(
            r#"import { getAgentDir, SettingsManager } from "@earendil-works/pi-coding-agent";
            import { readFileSync } from "node:fs";"#,
            r#"const given = SettingsManager.inMemory({
              defaultTools: ["read"], theme: "light/dark", externalEditor: "ed -s",
              retry: { provider: { timeoutMs: 1, maxRetries: 2, maxRetryDelayMs: 3 } },
            });
            const files = SettingsManager.create(ctx.cwd);
            const before = files.getDefaultProjectTrust();
            files.setDefaultProjectTrust("never");
            const none = SettingsManager.inMemory();
            const editors = [given.getExternalEditorCommand()];
            for (const [visual, editor] of [["vim", "ex"], ["", "ex"], ["", ""]]) {
              Object.assign(process.env, { VISUAL: visual, EDITOR: editor });
              editors.push(none.getExternalEditorCommand());
            }
            const names = Object.getOwnPropertyNames(SettingsManager.prototype);
            const refused = names.filter((name) => /is not available/.test(failure(() => SettingsManager.inMemory()[name]("x", "y", "z"))));
            return {
              given: [given.getDefaultTools(), given.getThemeSetting(), given.getProviderRetrySettings(), given.getRetrySettings().maxDelayMs],
              none: [none.getDefaultTools() ?? null, none.getDefaultProjectTrust(), none.getProviderRetrySettings(), none.setDefaultTools ?? null],
              trust: [before, files.getDefaultProjectTrust(), JSON.parse(readFileSync(getAgentDir() + "/settings.json", "utf8")).defaultProjectTrust],
              agent: files.getRetrySettings().maxAgentDelayMs,
              editors, refused: refused.length, said: failure(() => none.setOutputPad(0)),
            };"#,
        ),
    );
    let mut rpc = home.rpc(&[]);
    let expected = json!({
        "given": [["read"], "light/dark", {"timeoutMs": 1, "maxRetries": 2, "maxRetryDelayMs": 3}, 3],
        "none": [null, "ask", {"maxRetryDelayMs": 60000}, null],
        "trust": ["always", "never", "never"],
        "agent": 7,
        "editors": ["ed -s", "vim", "ex", "nano"],
        "refused": 33,
        "said": "SettingsManager.setOutputPad is not available in this version of pi: it has no setting \"outputPad\"",
    });
    assert_eq!(command_result(&mut rpc, "look").await, expected);
}

#[tokio::test]
async fn unsupported_model_options_are_errors() {
    let home = Home::bare();
    home.settings(json!({}));
    home.extension(
        "look.ts",
        &looks(
            r#"import { complete, completeSimple, getModel } from "@mariozechner/pi-ai";"#,
            r#"const context = { messages: [{ role: "user", content: "hello", timestamp: 1 }] };
            const asked = async (provider, id, options, ask = complete) =>
              (await ask({ ...getModel(provider, id), baseUrl: "http://127.0.0.1:1" }, context,
                { apiKey: "k", maxRetries: 0, ...options })).errorMessage;
            const client = {};
            client.itself = client;
            const claude = (options, ask) => asked("anthropic", "claude-sonnet-4-5", options, ask);
            return {
              client: await claude({ client }),
              kept: await claude({ cacheRetention: "forever" }, completeSimple),
              display: await claude({ thinkingDisplay: 7 }),
              simple: await claude({ thinkingDisplay: 7, unheard: { of: 1 } }, completeSimple),
              project: await asked("google-vertex", "gemini-2.5-pro", { apiKey: undefined, project: "p" }),
              env: await asked("azure-openai-responses", "gpt-5.2", { env: { AZURE_OPENAI_BASE_URL: "http://127.0.0.1:2" } }),
            };"#,
        ),
    );
    let mut rpc = home.rpc(&[]);
    let mut found = command_result(&mut rpc, "look").await;
    // A request that reached the network failed at the address that it was sent to.
    for (name, address) in [("simple", "127.0.0.1:1"), ("env", "127.0.0.1:2")] {
        let error = found[name].take();
        let error = error.as_str().unwrap();
        let is_refused = error.starts_with("Connection error.") && error.contains(address);
        assert!(is_refused, "{name}: {error}");
    }
    let expected = json!({
        "client": "The option \"client\" of anthropic-messages is not there: pi sends the request itself. \
            The options \"apiKey\", \"headers\" and onPayload, and baseUrl of the model, say where to and how",
        "kept": "The option \"cacheRetention\": unknown variant `forever`, expected one of `none`, `short`, `long`",
        "display": "The option \"thinkingDisplay\" of anthropic-messages: invalid type: integer `7`, expected a string",
        "simple": null,
        "project": "Vertex AI with Application Default Credentials is not supported: set GOOGLE_CLOUD_API_KEY or \
            pass apiKey instead. The options \"project\" and \"location\" are for such credentials.",
        "env": null,
    });
    assert_eq!(found, expected);
}
