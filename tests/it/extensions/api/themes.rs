//! Themes that extensions list, look up and choose, and exported pages in their colours.

use model_server::{Answer, ModelServer};
use pi_resources::themes::TOKENS;
use serde_json::{Map, Value, json};

use crate::support::{Home, Terminal};

const EXTENSION: &str = include_str!("fixtures/themes/extension.ts");

/// A theme with one colour.
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

    let mut terminal = Terminal::open(&home, "xterm-256color", &[]);
    for (command, reported) in [
        (
            "/theme nothing",
            "dark light mine other | none | Theme not found: nothing\nnow dark [38;2;240;198;116mx[39m\n",
        ),
        (
            "/theme mine",
            "dark light mine other | [38;2;10;11;12m | true\nnow mine [38;2;10;11;12mx[39m\n",
        ),
        ("/own", "true own [38;5;5mx[39m\n"),
    ] {
        terminal.see("> ");
        terminal.line(command);
        terminal.see(reported);
    }
    terminal.see("> ");
    terminal.line("/quit");
    assert_eq!(terminal.end(), 0);

    // A theme chosen by name is stored, and pages use its colours.
    let mut rpc = home.rpc(&[]);
    rpc.run("hello").await;
    let exported = rpc.ok(json!({"type": "export_html"})).await;
    let page = home.cwd().join(exported["path"].as_str().unwrap());
    let page = std::fs::read_to_string(page).unwrap();
    assert!(
        page.contains("--accent:#0a0b0c"),
        "the page is not in its colours"
    );
}

/// A theme was stored for users who never saw it.
#[tokio::test]
async fn no_theme_is_chosen_without_a_user_interface() {
    let server = ModelServer::start().await;
    server.push(Answer::text("Hello."));
    let home = Home::new(&server);
    home.extension("themes.ts", EXTENSION);
    let settings = home.agent_dir().join("settings.json");
    let before = std::fs::read_to_string(&settings).ok();
    let mut rpc = home.rpc(&[]);
    rpc.ok(json!({"type": "prompt", "message": "/theme light"}))
        .await;
    let refused = " | none | Theme switching not supported in RPC mode";
    rpc.notified(refused).await;
    rpc.close().await;
    home.extension(
        "start.ts",
        "export default (pi) => pi.on('session_start', (_event, { ui }) => {
            console.error(JSON.stringify([ui.setTheme('light'), ui.getAllThemes()]));
        });",
    );
    let printed = home.run(&["-p", "go"], "").await;
    let reported = printed.stderr;
    let refused = r#"[{"success":false,"error":"UI not available"},[]]"#;
    assert!(reported.contains(refused), "{reported}");
    assert_eq!(before, std::fs::read_to_string(&settings).ok());
}

/// Colours of newer versions threw, also in themes that define them.
#[tokio::test]
async fn colours_of_newer_versions_exist_in_old_themes() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension(
        "newer.ts",
        include_str!("fixtures/themes/colours-of-newer-versions-exist-in-old-themes.ts"),
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
    let mut terminal = Terminal::open(&home, "xterm-256color", &[]);
    terminal.see("> ");
    terminal.line("/look");
    terminal.see(concat!(
        r#"{"dark":[4,true,true],"older":[4,true,true],"newer":[0,false,true],"#,
        r#""own":["\u001b[38;5;5mx\u001b[39m","\u001b[48;5;6mx\u001b[49m","Unknown theme color: thinkingMax"]}"#,
    ));
}

#[tokio::test]
async fn a_theme_setting_may_be_a_file() {
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
    let reported = rpc.ui("notify").await;
    assert_eq!(reported["message"], " | none | ");
    let reported = rpc.ui("notify").await;
    let now = reported["message"].as_str().unwrap();
    assert!(now.starts_with("now Plain Theme "), "{reported}");
    rpc.run("hello").await;
    let exported = rpc.ok(json!({"type": "export_html"})).await;
    let page = home.cwd().join(exported["path"].as_str().unwrap());
    let page = std::fs::read_to_string(page).unwrap();
    assert!(
        page.contains("--accent:#0a0b0c"),
        "the page is not in its colours"
    );
}
