//! Themes that extensions list, look up and choose, and pages in their colours.

use model_server::{Answer, ModelServer};
use pi::resources::themes::TOKENS;
use serde_json::{Map, Value, json};

use crate::support::Home;

const EXTENSION: &str = r#"
import { getMarkdownTheme, Theme } from "@mariozechner/pi-coding-agent";

export default function (pi) {
  pi.registerCommand("theme", {
    handler: async (name, { ui }) => {
      const found = ui.getTheme(name);
      const set = name ? ui.setTheme(name) : undefined;
      ui.notify(JSON.stringify({
        names: ui.getAllThemes().map(({ name }) => name),
        found: found && found.getFgAnsi("accent"),
        set,
        now: ui.theme.name,
        heading: getMarkdownTheme().heading("x"),
      }));
    },
  });
  pi.registerCommand("own", {
    handler: async (_args, { ui }) => {
      const colours = (names, value) => Object.fromEntries(names.map((name) => [name, value]));
      const own = new Theme(colours(["accent", "mdHeading"], 5), colours(["selectedBg"], 6), "256color", { name: "own" });
      ui.notify(JSON.stringify([ui.setTheme(own), ui.theme.name, ui.theme.fg("accent", "x")]));
    },
  });
}
"#;

/// A theme in one colour.
fn theme(name: &str, color: &str) -> String {
    let colors: Map<String, Value> = TOKENS
        .iter()
        .map(|token| (token.to_string(), json!(color)))
        .collect();
    json!({"name": name, "vars": {"unused": 3}, "colors": colors}).to_string()
}

#[tokio::test]
async fn an_extension_chooses_among_the_themes_that_are_loaded() {
    let server = ModelServer::start().await;
    server.push(Answer::text("Hello."));
    let home = Home::new(&server);
    home.extension("themes.ts", EXTENSION);
    std::fs::create_dir_all(home.agent_dir().join("themes")).unwrap();
    for (name, color) in [("mine", "#0a0b0c"), ("other", "#d0e0f0")] {
        let file = home.agent_dir().join(format!("themes/{name}.json"));
        std::fs::write(file, theme(name, color)).unwrap();
    }

    let mut rpc = home.rpc(&[]);
    let ask = async |rpc: &mut crate::support::Rpc, command: &str| -> Value {
        rpc.ok(json!({"type": "prompt", "message": command})).await;
        let told = rpc.ui("notify").await;
        serde_json::from_str(told["message"].as_str().unwrap()).unwrap()
    };
    let names = json!(["dark", "light", "mine", "other"]);
    assert_eq!(
        ask(&mut rpc, "/theme nothing").await,
        json!({
            "names": names,
            "set": {"success": false, "error": "Theme not found: nothing"},
            "now": "dark",
            "heading": "\u{1b}[38;5;222mx\u{1b}[39m",
        })
    );
    assert_eq!(
        ask(&mut rpc, "/theme mine").await,
        json!({
            "names": names,
            "found": "\u{1b}[38;5;232m",
            "set": {"success": true},
            "now": "mine",
            "heading": "\u{1b}[38;5;232mx\u{1b}[39m",
        })
    );
    let own = ask(&mut rpc, "/own").await;
    assert_eq!(
        own,
        json!([{"success": true}, "own", "\u{1b}[38;5;5mx\u{1b}[39m"])
    );

    // By name it is remembered, and pages are in its colours.
    rpc.run("hello").await;
    let exported = rpc.ok(json!({"type": "export_html"})).await;
    let page = home.cwd().join(exported["path"].as_str().unwrap());
    let page = std::fs::read_to_string(page).unwrap();
    assert!(
        page.contains("--accent:#0a0b0c"),
        "the page is not in its colours"
    );
    rpc.close().await;
    let mut rpc = home.rpc(&[]);
    let answer = ask(&mut rpc, "/theme").await;
    assert_eq!(answer["now"], "mine");
}

#[tokio::test]
async fn the_settings_may_name_the_file_of_a_theme() {
    let server = ModelServer::start().await;
    server.push(Answer::text("Hello."));
    let home = Home::new(&server);
    home.settings(json!({"theme": "plain"}));
    home.extension("themes.ts", EXTENSION);
    std::fs::create_dir_all(home.agent_dir().join("themes")).unwrap();
    let file = home.agent_dir().join("themes/plain.json");
    std::fs::write(file, theme("Plain Theme", "#0a0b0c")).unwrap();

    let mut rpc = home.rpc(&[]);
    rpc.ok(json!({"type": "prompt", "message": "/theme"})).await;
    let told = rpc.ui("notify").await;
    let told: Value = serde_json::from_str(told["message"].as_str().unwrap()).unwrap();
    assert_eq!(told["now"], "Plain Theme");
    rpc.run("hello").await;
    let exported = rpc.ok(json!({"type": "export_html"})).await;
    let page = home.cwd().join(exported["path"].as_str().unwrap());
    let page = std::fs::read_to_string(page).unwrap();
    assert!(
        page.contains("--accent:#0a0b0c"),
        "the page is not in its colours"
    );
}
