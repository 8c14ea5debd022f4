//! Line mode at a pseudo-terminal: what a user types and sees.

use crate::support::{DEMO, Home, Terminal};

const ESCAPE: &str = "\x1b";
const CONTROL_C: &str = "\x03";
const CONTROL_D: &str = "\x04";

const ASK: &str = include_str!("fixtures/mode.ts");

fn home() -> Home {
    let home = Home::bare();
    home.file("violets.txt", "violets are blue\n");
    home.extension("ask.ts", ASK);
    home
}

/// A home, and a terminal of this type (`xterm`, `dumb`) in it.
fn set_up(term: &str) -> (Home, Terminal) {
    let home = home();
    let terminal = Terminal::start(&home, term);
    (home, terminal)
}

#[tokio::test]
async fn a_session_shows_prompts_tools_and_costs() {
    let (home, mut terminal) = set_up("xterm");
    assert!(terminal.is_raw());
    terminal.line("read violets.txt");
    terminal.see("* read: ");
    terminal.see("ok (");
    terminal.see("violets are blue");
    terminal.see("> ");
    terminal.line("/session");
    let reported = terminal.see("Cost: $0");
    assert!(reported.contains("1 tool call"), "{reported}");
    terminal.see("> ");
    terminal.line("!echo $((6*7))");
    terminal.see("\n42\n");
    terminal.see("> ");
    terminal.line("/quit");
    assert_eq!(terminal.end(), 0);
    let history = std::fs::read_to_string(home.agent_dir().join("history")).unwrap();
    assert_eq!(
        history,
        "read violets.txt\n/session\n!echo $((6*7))\n/quit\n"
    );
}

/// A pipe in the place of the history blocked the start, and a folder or a socket is no text either.
#[tokio::test]
async fn a_history_that_is_no_file_is_left_alone() {
    for kind in ["pipe", "folder", "socket"] {
        let home = home();
        let path = home.agent_dir().join("history");
        let socket = match kind {
            "pipe" => {
                let made = std::process::Command::new("mkfifo").arg(&path).status();
                assert!(made.unwrap().success());
                None
            }
            "folder" => {
                std::fs::create_dir(&path).unwrap();
                None
            }
            _ => Some(std::os::unix::net::UnixListener::bind(&path).unwrap()),
        };
        let before = std::fs::symlink_metadata(&path).unwrap().file_type();
        let mut terminal = Terminal::open(&home, "xterm", &DEMO);
        let reported = terminal.see("> ");
        // The note may be wrapped.
        let reported = reported.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(
            reported.matches("prompts are not stored").count(),
            1,
            "{reported}"
        );
        terminal.line("read violets.txt");
        terminal.see("violets are blue");
        terminal.see("> ");
        terminal.line("/quit");
        assert_eq!(terminal.end(), 0);
        let after = std::fs::symlink_metadata(&path).unwrap().file_type();
        assert_eq!(before, after);
        drop(socket);
    }
}

#[tokio::test]
async fn a_conversation_is_compacted() {
    let home = home();
    let settings = r#"{"compaction": {"keepRecentTokens": 1}}"#;
    std::fs::write(home.agent_dir().join("settings.json"), settings).unwrap();
    let mut terminal = Terminal::start(&home, "xterm");
    terminal.line("/compact");
    terminal.see("Error: Compaction failed: Nothing to compact (session too small)\n");
    terminal.see("> ");
    terminal.line("hello");
    terminal.see("built-in demo");
    terminal.see("> ");
    terminal.line("/compact the violets");
    terminal.see("Compacting the conversation\n");
    terminal.see("Compacted: it was about ");
    terminal.see("> ");
    terminal.line("/session");
    terminal.see("Context: not known yet");
    terminal.see("> ");
    terminal.line("/quit");
    assert_eq!(terminal.end(), 0);
}

#[tokio::test]
async fn the_tree_is_listed_and_walked() {
    let (home, mut terminal) = set_up("xterm");
    terminal.line("/tree");
    terminal.see("(thinking_level_change)  <- here\n");
    terminal.see("> ");
    terminal.line("read violets.txt");
    terminal.see("violets are blue");
    terminal.see("> ");
    let entries = home.entries();
    let id = entries[3]["id"].as_str().unwrap();
    terminal.line("/tree");
    terminal.see(&format!("* {id} you: read violets.txt\n"));
    terminal.see("  <- here\n");
    terminal.see("> ");
    terminal.line(&format!("/tree {id} summary"));
    terminal.see(&format!("Now before {id}; its text is at the prompt."));
    // The message can be edited and sent again.
    terminal.see("> read violets.txt");
    terminal.keys("\r");
    terminal.see("violets are blue");
    terminal.see("> ");
    terminal.line("/tree");
    let listed = terminal.see("  <- here\n");
    assert!(listed.contains(&format!("    {id} you: read")), "{listed}");
    assert!(
        listed.contains("summary of a branch: The user explored"),
        "{listed}"
    );
    terminal.see("> ");
    terminal.line("/tree nonsense");
    terminal.see("Error: there is no entry nonsense; /tree lists them\n");
}

#[tokio::test]
async fn dialogs_are_asked_as_questions() {
    let (_home, mut terminal) = set_up("xterm");
    terminal.line("/ask now");
    let requested = terminal.see("1-3> ");
    assert!(
        requested.contains("? Which one?\n  1. red\n  2. green\n  3. blue\n"),
        "{requested}"
    );
    terminal.line("7");
    terminal.see("Type a number from 1 to 3");
    terminal.see("1-3> ");
    terminal.line("2");
    terminal.see("? Sure?\nIt is only a colour.\n");
    terminal.see("y/n> ");
    terminal.line("y");
    terminal.see("picked green true now\n");
    terminal.see("> ");
    terminal.line("/ask");
    terminal.see("1-3> ");
    terminal.keys(ESCAPE);
    terminal.see("(cancelled)");
    terminal.see("y/n> ");
    terminal.keys(CONTROL_C);
    terminal.see("picked undefined false");
    terminal.see("> ");
    terminal.line("/note");
    terminal.see("text> ");
    terminal.keys("!\r\r");
    terminal.see("\"one!\"\n");
}

#[tokio::test]
async fn extensions_need_not_wait_for_an_answer() {
    let (_home, mut terminal) = set_up("xterm");
    terminal.line("/impatient");
    terminal.see("? Quick?\n");
    terminal.see_both("(the question was withdrawn)\n", "went on: false\n");
    terminal.see("? Slow?\n(1 s to answer)\n");
    terminal.see_both("(no answer in time)\n", "and on\n");
    terminal.see("> ");
    terminal.line("/quit");
    assert_eq!(terminal.end(), 0);
}

/// The line editor painted its one-line prompt over the output.
#[tokio::test]
async fn output_above_a_waiting_prompt_stays_on_the_screen() {
    let (_home, mut terminal) = set_up("xterm");
    terminal.line("/late");
    terminal.see("/late\n");
    terminal.see("> ");
    terminal.keys("half a pro");
    terminal.see("here it is\n");
    terminal.see("and another\n");
    terminal.see("half a pro");
    terminal.keys("mpt");
    terminal.see("mpt");
    let shown = terminal.screen();
    let lines: Vec<&str> = shown
        .lines()
        .skip_while(|line| !line.contains("/late"))
        .collect();
    assert_eq!(
        lines,
        ["> /late", "here it is", "and another", "> half a prompt"]
    );
}

#[tokio::test]
async fn a_terminal_may_change_its_size() {
    let (_home, mut terminal) = set_up("xterm");
    terminal.keys("read ");
    terminal.see("read ");
    terminal.resize(10, 30);
    terminal.line("violets.txt");
    terminal.see("* read: ");
    terminal.resize(24, 80);
    terminal.see("violets are blue");
    terminal.see("> ");
    terminal.line("/quit");
    assert_eq!(terminal.end(), 0);
}

#[tokio::test]
async fn escape_ends_the_current_activity() {
    let (home, mut terminal) = set_up("xterm");
    terminal.line("run sleep 300");
    terminal.see("* bash: sleep 300 ... ");
    terminal.keys(ESCAPE);
    terminal.see("error: ");
    terminal.see("Aborted.\n");
    terminal.see("> ");
    terminal.line("/hang");
    terminal.see("\n");
    terminal.keys(ESCAPE);
    terminal.see("Aborted.");
    terminal.see("> ");
    home.extension(
        "gate.ts",
        r#"export default (pi) => pi.on("tool_call", (event, ctx) => {
            ctx.ui.notify("gate hangs");
            return new Promise(() => {});
        });"#,
    );
    terminal.line("/reload");
    terminal.see("Reloaded 2 extensions: ");
    terminal.see("> ");
    terminal.line("list the files");
    terminal.see("gate hangs");
    terminal.keys(CONTROL_C);
    terminal.see("Aborted.\n");
    terminal.see("> ");
    terminal.keys(CONTROL_C);
    terminal.see("(Ctrl-C again or Ctrl-D quits)");
    terminal.see("> ");
    terminal.keys(CONTROL_D);
    assert_eq!(terminal.end(), 0);
}

#[tokio::test]
async fn a_message_typed_while_the_agent_works_is_queued() {
    let (_home, mut terminal) = set_up("xterm");
    terminal.line("run sleep 3");
    terminal.see("* bash: sleep 3 ... ");
    terminal.line("read violets.txt");
    terminal.see("(queued: the agent reads it after this turn)");
    terminal.see("* bash: sleep 3 ... ok (");
    terminal.see("> read violets.txt\n");
    terminal.see("* read: ");
    terminal.see("ok (");
    terminal.line("/quit");
    assert_eq!(terminal.end(), 0);
}

#[tokio::test]
async fn reload_shows_errors_with_their_positions() {
    let (home, mut terminal) = set_up("xterm");
    terminal.line("/reload");
    terminal.see("Reloaded 1 extension: ask.ts.\n");
    terminal.see("> ");
    home.extension("ask.ts", "export default function (pi) {\n  pi.on(;;\n}\n");
    terminal.line("/reload");
    terminal.see("Extension error: ask.ts, load: SyntaxError: ");
    terminal.see("extensions/ask.ts:2:");
    terminal.see("> 2 |   pi.on(;;");
    terminal.see("Last good version kept: ask.ts.");
    terminal.see("> ");
    terminal.line("/extensions");
    terminal.see("ask  kept in its last good version: ");
    terminal.see("> ");
    terminal.line("/ask");
    terminal.see("1-3> ");
}

#[tokio::test]
async fn tab_completes_names_and_arguments() {
    let (_home, mut terminal) = set_up("xterm");
    terminal.keys("/as\t");
    terminal.see("/ask ");
    terminal.keys("c\t");
    terminal.see("colour");
    terminal.keys("\r");
    terminal.see("1-3> ");
}

/// Tab did nothing, and no reason was shown.
#[tokio::test]
async fn unusable_completions_are_reported_once() {
    let (_home, mut terminal) = set_up("xterm");
    terminal.keys("/odd \t");
    terminal.see("odder");
    terminal.keys("\r");
    terminal.see("getArgumentCompletions must give an array of { value: \"...\", label: \"...\" }, not of an object");
    terminal.see("ask.ts:33:");
}

/// The line editor drew its prompt into the log: `pi 2>log` showed no input.
#[tokio::test]
async fn the_prompt_is_visible_when_stderr_is_a_file() {
    const START: &str = "exec \"$0\" --provider demo --model demo 2>log";
    let home = home();
    let arguments = ["-c", START, env!("CARGO_BIN_EXE_pi")];
    let mut terminal = Terminal::run(&home, "xterm", "sh", &arguments);
    terminal.see("/help lists the commands.");
    terminal.see("> ");
    terminal.line("read violets.txt");
    terminal.see("violets are blue");
    terminal.see("> ");
    terminal.keys(CONTROL_D);
    assert_eq!(terminal.end(), 0);
    assert_eq!(std::fs::read_to_string(home.cwd().join("log")).unwrap(), "");
}

#[tokio::test]
async fn a_dumb_terminal_gets_plain_lines() {
    let (_home, mut terminal) = set_up("dumb");
    terminal.line("read violets.txt");
    terminal.see("* read: ");
    terminal.see("violets are blue");
    terminal.see("> ");
    terminal.line("/ask dumb");
    terminal.see("1-3> ");
    terminal.line("blue");
    terminal.see("y/n> ");
    terminal.line("n");
    terminal.see("picked blue false dumb\n");
    terminal.see("> ");
    terminal.line("/note");
    terminal.see("text> ");
    terminal.line("two");
    terminal.line("three");
    terminal.line("");
    terminal.see("\"two\\nthree\"\n");
    terminal.see("> ");
    terminal.line("run sleep 300");
    terminal.see("* bash: sleep 300 ... ");
    terminal.keys(CONTROL_C);
    terminal.see("Aborted.\n");
    terminal.see("> ");
    let printed = String::from_utf8_lossy(terminal.printed());
    assert!(!printed.contains('\x1b'), "{printed:?}");
    terminal.keys(CONTROL_D);
    assert_eq!(terminal.end(), 0);
}

#[cfg(unix)]
#[tokio::test]
async fn a_signal_ends_line_mode_in_order() {
    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;
    let (_home, mut terminal) = set_up("xterm");
    terminal.line("run sleep 300");
    terminal.see("* bash: sleep 300 ... ");
    let pid = terminal.process_id();
    kill(Pid::from_raw(pid as i32), Signal::SIGTERM).unwrap();
    assert_eq!(terminal.end(), 143);
}

/// Packages print a summary in `session_shutdown`.
#[tokio::test]
async fn output_of_extensions_at_the_end_is_shown() {
    let home = home();
    home.extension(
        "summary.ts",
        r#"export default (pi) => {
            pi.on("session_shutdown", () => console.log("shutting down"));
            process.on("exit", (code) => console.log(`it was nice, ${code}`));
        };"#,
    );
    let mut terminal = Terminal::start(&home, "xterm");
    terminal.line("/quit");
    terminal.see("shutting down\n");
    terminal.see("it was nice, 0\n");
    assert_eq!(terminal.end(), 0);
}

/// `/todos` of the original's example did nothing and showed no error.
#[tokio::test]
async fn a_component_that_cannot_be_shown_is_reported() {
    let home = home();
    home.extension(
        "draws.ts",
        r#"export default (pi) => pi.registerCommand("draw", { handler: async (_, ctx) => {
            const shown = await ctx.ui.custom(() => ({ render: () => ["drawn"] }));
            ctx.ui.notify(`gave ${shown}`);
        } });"#,
    );
    let mut terminal = Terminal::start(&home, "xterm");
    terminal.line("/draw");
    terminal.see("would show a component of its own here");
    terminal.see("gave undefined");
    terminal.line("/quit");
    assert_eq!(terminal.end(), 0);
}
