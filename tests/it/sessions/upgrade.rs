//! A session continues while another version of the program replaces its file.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use model_server::ModelServer;
use serde_json::json;

use crate::support::{Home, Rpc, prompt};

/// An extension that starts pi in every possible way.
const EXTENSION: &str = r#"
    import { fork, spawnSync } from "node:child_process";
    import { once } from "node:events";

    export default (pi) => pi.registerCommand("start", { handler: async (_, ctx) => {
        const { stdout } = spawnSync(process.execPath, ["-e", "console.log(6 * 7)"], { encoding: "utf8" });
        const child = fork("./child.cjs");
        const [word] = await once(child, "message");
        const { code } = await pi.exec(process.execPath, ["--version"]);
        ctx.ui.notify(JSON.stringify([process.execPath, process.argv[0], stdout.trim(), word, code]));
    } });"#;

/// Replaces the program as package managers do, and as `cp` after `rm` does. The new program
/// identifies itself.
fn upgrade(program: &Path) {
    let new = program.with_file_name("new");
    let script = format!(
        "#!/bin/sh\nUPGRADED=yes exec {} \"$@\"\n",
        env!("CARGO_BIN_EXE_pi")
    );
    fs::write(&new, script).unwrap();
    fs::set_permissions(&new, fs::Permissions::from_mode(0o755)).unwrap();
    fs::rename(new, program).unwrap();
}

/// The path in `process.execPath` no longer existed.
#[tokio::test]
async fn process_exec_path_works_after_an_upgrade() {
    for place in ["thread", "process"] {
        let server = ModelServer::start().await;
        let home = Home::new(&server);
        home.settings(json!({ "extensionHost": place }));
        home.extension("ext.ts", EXTENSION);
        home.file("child.cjs", "process.send(process.env.UPGRADED ?? 'no');");
        let program = home.cwd().join("pi");
        let built = env!("CARGO_BIN_EXE_pi");
        // A copy is large.
        if fs::hard_link(built, &program).is_err() {
            fs::copy(built, &program).unwrap();
        }
        let mut command = home.command(program.to_str().unwrap());
        command.args(["--mode", "rpc"]);
        let mut rpc = Rpc::start(command);
        let program_is = |word: &str| {
            let answers = json!([program, program, "42", word, 0]);
            answers.to_string()
        };
        rpc.ok(prompt("/start")).await;
        rpc.notified(&program_is("no")).await;

        upgrade(&program);
        for cause in [None, Some("reload"), Some("new_session")] {
            if let Some(kind) = cause {
                rpc.ok(json!({ "type": kind })).await;
            }
            rpc.ok(prompt("/start")).await;
            rpc.notified(&program_is("yes")).await;
        }
        assert_eq!(rpc.close().await.code(), Some(0), "{place}");
    }
}
