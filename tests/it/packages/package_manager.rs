//! `DefaultPackageManager`: published packages find resources of other packages with it.

use std::fs;

use serde_json::json;

use crate::support::{Home, prompt};

#[tokio::test]
async fn packages_are_resolved_and_not_installed() {
    let home = Home::bare();
    let pack = home.agent_dir().join("local-pack");
    fs::create_dir_all(pack.join("extensions")).unwrap();
    let manifest = json!({"name": "local-pack", "pi": {"extensions": ["./extensions"]}});
    fs::write(pack.join("package.json"), manifest.to_string()).unwrap();
    fs::write(pack.join("extensions/e.ts"), "export default () => {};").unwrap();
    home.extension("look.ts", include_str!("fixtures/package-manager.ts"));
    let mut rpc = home.rpc(&["--provider", "demo", "--model", "demo"]);
    rpc.ok(prompt("/look")).await;
    let expected = json!([
        [
            ["./local-pack", "user", false, "AGENT/local-pack"],
            ["npm:@a/b@1.0.0", "user", true, null],
        ],
        "AGENT/local-pack",
        null,
        ["AGENT/local-pack/extensions/e.ts"],
        [
            ["AGENT/extensions/look.ts", true, "auto", "top-level"],
            [
                "AGENT/local-pack/extensions/e.ts",
                true,
                "./local-pack",
                "package"
            ],
        ],
        [],
        "DefaultPackageManager.install()",
    ]);
    rpc.notified(&expected.to_string()).await;
}
