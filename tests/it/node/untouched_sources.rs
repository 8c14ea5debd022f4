//! Files are loaded unchanged: no text is replaced because it contains a certain word. The word
//! here is `Deno`, which the runtime's own JavaScript uses and programs must not find.

use crate::support::{Home, Rpc, prompt};

/// A home with a JSON file and a package whose `package.json` mention `Deno`, beside an extension.
fn home(extension: &str) -> Home {
    let home = Home::bare();
    let folder = "ext";
    home.extension(&format!("{folder}/d.json"), r#"{"a":"Deno"}"#);
    let package = format!("{folder}/node_modules/pkg");
    home.extension(
        &format!("{package}/package.json"),
        r#"{"name":"pkg","version":"1.0.0","main":"i.js","description":"For Deno and Node, typeof Deno"}"#,
    );
    home.extension(
        &format!("{package}/i.js"),
        r#"exports.data = require("./d.json"); exports.about = require("pkg/package.json").description;"#,
    );
    home.extension(
        &format!("{package}/d.json"),
        "\u{feff}[\"Deno\", \"d\u{e9}j\u{e0}\"]\n",
    );
    home.extension(
        &format!("{folder}/child.cjs"),
        r#"process.send([require("./d.json").a, require("pkg/package.json").name, typeof Deno], () => process.disconnect());"#,
    );
    home.extension(
        &format!("{folder}/worker.cjs"),
        r#"const { parentPort } = require("node:worker_threads");
        parentPort.once("message", () => {});
        parentPort.postMessage([require("./d.json").a, typeof Deno]);"#,
    );
    home.extension(
        &format!("{folder}/uses.cjs"),
        "module.exports = typeof Deno === 'undefined' ? 'none' : Deno.build.os;",
    );
    home.extension(&format!("{folder}/index.ts"), extension);
    home
}

async fn answers(body: &str, answer: &str) {
    let home = home(&format!(
        r#"import {{ createRequire }} from "node:module";
        import {{ fork }} from "node:child_process";
        import {{ once }} from "node:events";
        import vm from "node:vm";
        import {{ Worker }} from "node:worker_threads";
        import {{ dirname, join }} from "node:path";
        import {{ fileURLToPath }} from "node:url";
        const here = dirname(fileURLToPath(import.meta.url));
        export default (pi) => pi.registerCommand("go", {{ handler: async (_args, ctx) => {{
          const answer = await (async () => {{ {body} }})();
          ctx.ui.notify(JSON.stringify(answer));
        }} }});"#
    ));
    let mut rpc: Rpc = home.rpc(&[]);
    rpc.ok(prompt("/go")).await;
    rpc.notified(answer).await;
}

#[tokio::test]
async fn json_that_names_deno_is_required_and_imported() {
    answers(
        r#"const require2 = createRequire(import.meta.url);
        const { default: data } = await import("./d.json");
        const { default: typed } = await import("./d.json", { with: { type: "json" } });
        return [require("./d.json").a, require2("./d.json").a, data.a, typed.a, require2("pkg/package.json").name,
          require2("pkg"), (await import("pkg/package.json")).default.version];"#,
        r#"["Deno","Deno","Deno","Deno","pkg",{"data":["Deno","déjà"],"about":"For Deno and Node, typeof Deno"},"1.0.0"]"#,
    )
    .await;
}

#[tokio::test]
async fn workers_and_forked_scripts_require_such_json() {
    answers(
        r#"const eager = `const { parentPort } = require("node:worker_threads");
          parentPort.once("message", () => {});
          parentPort.postMessage([require(${JSON.stringify(join(here, "d.json"))}).a, typeof Deno]);`;
        const starts = [
          () => new Worker(eager, { eval: true }),
          () => new Worker(join(here, "worker.cjs")),
          () => fork(join(here, "child.cjs")),
        ];
        const messages = [];
        for (const start of starts) {
          const one = start();
          messages.push((await once(one, "message"))[0]);
          await one.terminate?.();
        }
        return messages;"#,
        r#"[["Deno","undefined"],["Deno","undefined"],["Deno","pkg","undefined"]]"#,
    )
    .await;
}

#[tokio::test]
async fn code_made_at_run_time_finds_no_deno() {
    answers(
        r#"const looks = "typeof Deno";
        return [eval(looks), (0, eval)(looks), new Function(`return ${looks}`)(), vm.runInThisContext(looks),
          vm.runInNewContext(looks), "Deno" in globalThis];"#,
        r#"["undefined","undefined","undefined","undefined","undefined",false]"#,
    )
    .await;
}

/// A variable of the module wrapper hid the global that another file had defined.
#[tokio::test]
async fn a_global_deno_of_a_package_is_visible_to_others() {
    answers(
        r#"globalThis.Deno = { build: { os: "mine" } };
        const made = createRequire(import.meta.url)("./uses.cjs");
        return [made, Deno.build.os, eval("Deno.build.os"), delete globalThis.Deno];"#,
        r#"["mine","mine","mine",true]"#,
    )
    .await;
}

#[tokio::test]
async fn a_comment_about_the_environment_changes_nothing() {
    answers(
        r#"// import.meta.env is Vite's
        return [typeof import.meta["e" + "nv"]];"#,
        r#"["undefined"]"#,
    )
    .await;
}
