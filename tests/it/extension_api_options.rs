//! Options of functions and classes that extensions call: each of them was taken without a
//! word, and did nothing.

use serde_json::json;

use crate::extension_api_sdk::checked;
use crate::support::Home;

/// An extension whose command `look` notifies of what `body` returns, as JSON.
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
async fn a_new_session_has_the_parent_and_the_id_that_it_is_given() {
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
    assert_eq!(checked(&mut rpc, "look").await, expected);
}

#[tokio::test]
async fn settings_in_memory_know_whether_the_project_is_trusted() {
    let home = Home::bare();
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
    assert_eq!(checked(&mut rpc, "look").await, expected);
}
