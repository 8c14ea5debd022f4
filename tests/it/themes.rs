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

/// They threw, also in themes that have them.
#[tokio::test]
async fn colours_of_newer_versions_are_there_in_themes_of_any_age() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension(
        "newer.ts",
        r#"import { Theme } from "@earendil-works/pi-coding-agent";
        const FRONT = { scrollbarTrack: "muted", scrollbarThumb: "text", searchMatchText: "text", thinkingMax: "thinkingXhigh" };
        const look = (theme) => [
          Object.entries(FRONT).filter(([newer, older]) => theme.fg(newer, "x") === theme.fg(older, "x")).length,
          theme.bg("searchMatchBg", "x") === theme.bg("selectedBg", "x"),
          theme.getThinkingBorderColor("max")("x") === theme.fg("thinkingMax", "x"),
        ];
        export default (pi) => pi.registerCommand("look", { handler: async (_args, { ui }) => {
          const own = new Theme({ text: 5 }, { selectedBg: 6 }, "256color");
          const unknown = (() => { try { return own.fg("thinkingMax", "x"); } catch (error) { return error.message; } })();
          ui.notify(JSON.stringify({
            dark: look(ui.theme), older: look(ui.getTheme("older")), newer: look(ui.getTheme("newer")),
            own: [own.fg("searchMatchText", "x"), own.bg("searchMatchBg", "x"), unknown],
          }));
        } });"#,
    );
    std::fs::create_dir_all(home.agent_dir().join("themes")).unwrap();
    let older: Value = serde_json::from_str(&theme("older", "#0a0b0c")).unwrap();
    let mut newer = older.clone();
    newer["name"] = json!("newer");
    for name in [
        "scrollbarTrack",
        "scrollbarThumb",
        "searchMatchText",
        "thinkingMax",
        "searchMatchBg",
    ] {
        newer["colors"][name] = json!("#d0e0f0");
    }
    for file in [older, newer] {
        let path = format!("themes/{}.json", file["name"].as_str().unwrap());
        std::fs::write(home.agent_dir().join(path), file.to_string()).unwrap();
    }
    let mut rpc = home.rpc(&[]);
    rpc.ok(json!({"type": "prompt", "message": "/look"})).await;
    let told = rpc.ui("notify").await;
    let told: Value = serde_json::from_str(told["message"].as_str().unwrap()).unwrap();
    assert_eq!(
        told,
        json!({
            "dark": [4, true, true],
            "older": [4, true, true],
            "newer": [0, false, true],
            "own": ["\u{1b}[38;5;5mx\u{1b}[39m", "\u{1b}[48;5;6mx\u{1b}[49m", "Unknown theme color: thinkingMax"],
        })
    );
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
