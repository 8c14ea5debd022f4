//! Variables that change what a line or its programs run.

use super::word::{Piece, Word};

/// Variables that do not change what runs.
const HARMLESS: [&str; 14] = [
    "CI",
    "COLUMNS",
    "FORCE_COLOR",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LINES",
    "NODE_ENV",
    "NO_COLOR",
    "PYTHONUNBUFFERED",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "TERM",
    "TZ",
];

/// Variables whose value well-known programs run as a command.
const COMMANDS: [&str; 30] = [
    "BASH_ENV",
    "BROWSER",
    "CVS_RSH",
    "EDITOR",
    "ENV",
    "FZF_DEFAULT_COMMAND",
    "GIT_ASKPASS",
    "GIT_EDITOR",
    "GIT_EXTERNAL_DIFF",
    "GIT_PAGER",
    "GIT_PROXY_COMMAND",
    "GIT_SEQUENCE_EDITOR",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "LESSCLOSE",
    "LESSOPEN",
    "MANPAGER",
    "PAGER",
    "PROMPT_COMMAND",
    "PS0",
    "PS1",
    "PS2",
    "PS4",
    "RSYNC_RSH",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTC_WRAPPER",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "SYSTEMD_PAGER",
    "VISUAL",
];

/// Variables whose value is expanded as a text before it is used.
const TEXTS: [&str; 6] = ["BASH_ENV", "ENV", "PS0", "PS1", "PS2", "PS4"];

/// Tables of bash with programs and aliases by their names.
const TABLES: [&str; 2] = ["BASH_ALIASES", "BASH_CMDS"];

/// Builtins that set variables which their arguments name with a value.
pub(super) const DECLARING: [&str; 5] = ["declare", "export", "local", "readonly", "typeset"];

/// Returns whether a command runs the same programs with the variable as without it.
pub(super) fn is_harmless(name: &str) -> bool {
    HARMLESS.contains(&name)
}

/// Returns whether programs run the value of the variable.
pub(super) fn is_command(name: &str) -> bool {
    COMMANDS.contains(&name) || TABLES.contains(&name)
}

/// Returns whether a shell expands the value of the variable as a text.
pub(super) fn is_text(name: &str) -> bool {
    TEXTS.contains(&name)
}

/// Returns whether only the script itself reads the variable: its name has small letters, and no
/// well-known program reads it.
pub(super) fn is_of_script(name: &str) -> bool {
    const READ_BY_PROGRAMS: [&str; 7] = [
        "all_proxy",
        "ftp_proxy",
        "http_proxy",
        "https_proxy",
        "no_proxy",
        "npm_",
        "pnpm_",
    ];
    let is_small = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    !name.is_empty()
        && name.bytes().all(is_small)
        && !READ_BY_PROGRAMS.iter().any(|it| name.starts_with(it))
}

/// Returns the words in which a builtin of bash names variables that it sets.
pub(super) fn set_by(command: &str, args: &[Word]) -> Vec<Word> {
    match command {
        "printf" => after(args, "-v"),
        "wait" => after(args, "-p"),
        "read" => {
            let mut words = after(args, "-a");
            words.extend(operands(args, "adinNptu"));
            words
        }
        "mapfile" | "readarray" => operands(args, "dnOsuCc"),
        "getopts" => args.get(1).cloned().into_iter().collect(),
        _ => Vec::new(),
    }
}

/// Returns the value of an option: the word behind it, or the rest of its own word (`-vNAME`).
fn after(args: &[Word], option: &str) -> Vec<Word> {
    let mut found = Vec::new();
    for (index, word) in args.iter().enumerate() {
        let start = word.known_prefix();
        if start == option && !word.is_open() {
            found.extend(args.get(index + 1).cloned());
        } else if start.starts_with(option) {
            found.push(word.without_prefix(option.len()));
        }
    }
    found
}

/// Returns the words that are no option and no value of one. `with_value` has the letters of options
/// that take the next word.
fn operands(args: &[Word], with_value: &str) -> Vec<Word> {
    let mut found = Vec::new();
    let mut index = 0;
    while let Some(word) = args.get(index) {
        index += 1;
        let start = word.known_prefix();
        if start.starts_with('-') {
            index += usize::from(!word.is_open() && start.ends_with(|it| with_value.contains(it)));
        } else {
            found.push(word.clone());
        }
    }
    found
}

/// Returns the names that an arithmetic expression sets: `PATH` in `PATH = 5`.
pub(super) fn set_in_arithmetic(text: &str) -> Vec<String> {
    let is_name = |char: char| char.is_ascii_alphanumeric() || char == '_';
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(is_name) {
        let before = rest[..start].trim_end();
        let end = rest[start..].find(|char| !is_name(char));
        let end = end.map_or(rest.len(), |length| start + length);
        let name = &rest[start..end];
        rest = &rest[end..];
        let is_changed = before.ends_with("++") || before.ends_with("--");
        if (is_changed || is_assignment(rest)) && !name.starts_with(|it: char| it.is_ascii_digit())
        {
            found.push(name.to_owned());
        }
    }
    found
}

/// Returns whether the text behind a name in an expression sets it: `= 1`, `+= 1`, `++`.
fn is_assignment(rest: &str) -> bool {
    const OPERATORS: [&str; 10] = ["<<", ">>", "+", "-", "*", "/", "%", "&", "|", "^"];
    let rest = rest.trim_start();
    let operator = OPERATORS.iter().find_map(|it| rest.strip_prefix(it));
    let after = operator.unwrap_or(rest);
    rest.starts_with("++")
        || rest.starts_with("--")
        || after.starts_with('=') && !after.starts_with("==")
}

/// Makes the word of a setting, such as `PATH=/tmp`.
pub(super) fn setting(name: &str, value: &Word) -> Word {
    let mut word = Word::text(format!("{name}="));
    for piece in &value.0 {
        match piece {
            Piece::Text(text) => word.push_text(text),
            other => word.0.push(other.clone()),
        }
    }
    word
}
