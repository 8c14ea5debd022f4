//! Sign-in at a terminal, and two programs that renew one token at the same time.

use std::fs;

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use crate::support::{Home, Terminal, pause, prompt, with_extension};

/// A provider whose sign-in asks a server on loopback. A prompt that is a number continues when a
/// file of that name exists; a renewal continues when the file `go` exists.
const CLUB: &str = include_str!("fixtures/logins/club.ts");

fn stored(home: &Home) -> Value {
    let text = fs::read_to_string(home.agent_dir().join("auth.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Reading a terminal blocks a thread, and the server needs one.
#[tokio::test(flavor = "multi_thread")]
async fn signing_in_at_a_terminal() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("club.ts", &CLUB.replace("URL", &server.url()));
    let mut terminal = Terminal::open(&home, "xterm", &[]);
    terminal.see("> ");
    terminal.line("/login club");
    terminal.see("Open http://club/enter");
    terminal.see("say hello");
    terminal.see("The word?");
    terminal.line("friend");
    terminal.see("Asking at the door");
    terminal.see("Logged in to club. Credentials saved to ");
    terminal.see("/model club/ lists its models.");
    terminal.see("> ");
    let found = stored(&home);
    assert_eq!(found["club"]["access"], "a-friend", "{found}");
    assert_eq!(found["club"]["type"], "oauth");
    assert_eq!(found["club"]["member"], 7);

    terminal.line("/model club/c1");
    terminal.see("Model: club/c1");
    terminal.see("> ");
    server.push(Answer::text("Welcome in."));
    terminal.line("hello");
    terminal.see("Welcome in.");
    terminal.see("> ");
    assert_eq!(server.last_request().headers["x-api-key"], "key-a-friend");

    // For a built-in provider the address in the browser can be pasted.
    terminal.line("/login anthropic");
    terminal.see("Open https://claude.ai/oauth/authorize?");
    terminal.see("aste the ");
    terminal.line("http://localhost/callback?code=c&state=of-somebody-else");
    terminal.see("Failed to login to anthropic: OAuth state mismatch");
    terminal.see("> ");
    terminal.line("/login nowhere");
    terminal.see("\"nowhere\" is none of ");
    terminal.see("> ");

    terminal.line("/logout club");
    terminal.see("Logged out of club.");
    terminal.see("> ");
    assert_eq!(stored(&home), json!({}));
    terminal.line("/quit");
    assert_eq!(terminal.end(), 0);
}

/// The callbacks of newer versions were missing, and a sign-in that called them failed.
#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_shows_a_device_code_and_lets_the_user_choose() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    let callbacks = r#"callbacks.onDeviceCode({ userCode: "AB-12", verificationUri: "http://club/device", intervalSeconds: 5 });
        const options = [{ id: "m", label: "As a member" }, { id: "g", label: "As a guest" }];
        const code = await callbacks.onSelect({ message: "How?", options });"#;
    let club = CLUB.replace("URL", &server.url());
    let begin = club.find("callbacks.onAuth").unwrap();
    let end = club.find("callbacks.onProgress").unwrap();
    let club = format!("{}{callbacks}\n{}", &club[..begin], &club[end..]);
    home.extension("club.ts", &club);
    home.extension(
        "asks.ts",
        r#"export default (pi) => pi.registerCommand("own", { handler: async (_args, ctx) => {
          const { authStorage } = ctx.modelRegistry;
          const heard = [];
          const more = { onPrompt: async () => "", onAuth: (info) => heard.push(info) };
          await authStorage.login("club", { ...more, onDeviceCode: (info) => heard.push(info), onSelect: async ({ options }) => options[1].id });
          heard.push(authStorage.get("club").access);
          await authStorage.login("club", more);
          heard.push(authStorage.get("club").access);
          ctx.ui.notify(JSON.stringify(heard));
        } });"#,
    );
    let mut terminal = Terminal::open(&home, "xterm", &[]);
    terminal.see("> ");
    terminal.line("/login club");
    terminal.see("Open http://club/device");
    terminal.see("Enter code: AB-12");
    terminal.see("How?");
    terminal.see("As a guest");
    terminal.line("2");
    terminal.see("Logged in to club. Credentials saved to ");
    assert_eq!(stored(&home)["club"]["access"], "a-g");
    terminal.line("/quit");
    assert_eq!(terminal.end(), 0);

    let mut rpc = home.rpc(&[]);
    rpc.ok(prompt("/own")).await;
    let expected = json!([
        {"userCode": "AB-12", "verificationUri": "http://club/device", "intervalSeconds": 5},
        "a-g",
        {"url": "http://club/device", "instructions": "Enter code: AB-12"},
        "a-undefined",
    ]);
    rpc.notified(&expected.to_string()).await;
}

#[tokio::test]
async fn the_dialog_of_a_sign_in_shows_codes_and_links() {
    let (_server, _home, mut rpc) = with_extension(include_str!(
        "fixtures/logins/the-dialog-of-a-sign-in-shows-codes-and-links.ts"
    ))
    .await;
    rpc.ok(prompt("/show")).await;
    let expected = json!({
        "code": ["http://club/device", "Enter code: AB-12"],
        "info": ["Read this", "Rules: http://club/a", "http://club/b"],
        "details": ["One", "Two"],
    });
    rpc.notified(&expected.to_string()).await;
}

/// Whichever program comes first, the other waits and takes the new token. (The original does not
/// start while any other process has the file locked.)
#[tokio::test]
async fn a_token_is_renewed_once_beside_the_original() {
    let server = ModelServer::start().await;
    for (ours, theirs) in [("1", "2"), ("2", "1")] {
        let home = Home::new(&server);
        home.extension("club.ts", &CLUB.replace("URL", &server.url()));
        let expired = json!({
            "club": {"type": "oauth", "refresh": "r1", "access": "old", "expires": 1000, "member": 8},
            "other": {"type": "api_key", "key": "untouched"},
        });
        let auth = home.agent_dir().join("auth.json");
        fs::write(&auth, expired.to_string()).unwrap();
        server.push(Answer::text("member's answer"));
        server.push(Answer::text("member's answer"));
        let here = home.agent_dir().join("../..");
        let lines = async |name: &str, count: usize| {
            loop {
                let text = fs::read_to_string(here.join(name)).unwrap_or_default();
                let lines: Vec<String> = text.lines().map(str::to_owned).collect();
                if lines.len() >= count {
                    return lines;
                }
                pause(10).await;
            }
        };
        let one_by_one = async {
            lines("ready", 2).await;
            fs::write(here.join("1"), "").unwrap();
            lines("renewed", 1).await;
            fs::write(here.join("2"), "").unwrap();
            // By now the second program waits for the lock, or will find a new token.
            pause(300).await;
            fs::write(here.join("go"), "").unwrap();
        };
        let arguments = |prompt| ["-p", "--model", "club/c1", prompt];
        let (by_us, by_them) = (arguments(ours), arguments(theirs));
        let runs = async { tokio::join!(home.run(&by_us, ""), home.run_original(&by_them)) };
        let ((by_us, by_them), ()) = tokio::join!(runs, one_by_one);
        assert_eq!(by_us.ok().trim_end(), "member's answer");
        assert_eq!(by_them.ok().trim_end(), "member's answer");
        assert_eq!(lines("renewed", 0).await, ["r1"], "we are number {ours}");
        let found = stored(&home);
        assert_eq!(found["club"]["refresh"], "r2", "{found}");
        assert_eq!(found["club"]["member"], 8);
        assert_eq!(found["other"], expired["other"]);
        assert!(!auth.with_extension("json.lock").exists());
    }
    for request in server.requests() {
        assert_eq!(request.headers["x-api-key"], "key-fresh");
    }
}
