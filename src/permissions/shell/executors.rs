//! Programs with a subcommand that runs what follows it, such as `poetry run` and `npm exec`.

use super::word::Word;
use super::wrappers::{Inner, Wrapped, command};

/// The programs with their subcommands. An empty name stands for no subcommand.
const EXECUTORS: &[(&str, &[&str])] = &[
    ("asdf", &["exec"]),
    ("bun", &["x"]),
    ("bundle", &["exec"]),
    ("bunx", &[""]),
    ("conda", &["run"]),
    ("direnv", &["exec"]),
    ("doppler", &["run"]),
    ("hatch", &["run"]),
    ("ip", &["exec"]),
    ("mamba", &["run"]),
    ("mise", &["exec", "x"]),
    ("npm", &["exec", "x"]),
    ("npx", &[""]),
    ("op", &["run"]),
    ("pdm", &["run"]),
    ("perf", &["record", "stat", "trace"]),
    ("pipenv", &["run"]),
    ("pixi", &["run"]),
    ("pnpm", &["dlx", "exec"]),
    ("poetry", &["run"]),
    ("pyenv", &["exec"]),
    ("rbenv", &["exec"]),
    ("rye", &["run"]),
    ("uv", &["run"]),
    ("uvx", &[""]),
    ("yarn", &["dlx", "exec"]),
];

/// Subcommands with an operand before the command: `direnv exec FOLDER`, `ip netns exec NAME`.
const WITH_OPERAND: [&str; 2] = ["direnv", "ip"];

/// Returns the commands that a program may run by its subcommand. The word behind an option may be
/// the value of the option or the command, so both readings are returned.
pub(super) fn unwrap_subcommand(name: &str, args: &[Word]) -> Option<Wrapped> {
    let (_, subcommands) = EXECUTORS.iter().find(|(program, _)| *program == name)?;
    let mut start = match subcommands {
        [""] => 0,
        names => {
            let is_one = |word: &Word| word.known().is_some_and(|it| names.contains(&it.as_str()));
            args.iter().position(is_one)? + 1
        }
    };
    start += usize::from(WITH_OPERAND.contains(&name));
    let mut inner = Vec::new();
    let mut at = None;
    let mut is_after_option = false;
    for (index, word) in args.iter().enumerate().skip(start) {
        let text = word.known_prefix();
        if text == "--" {
            at.get_or_insert(index + 2);
            inner.extend(command(Vec::new(), &args[index + 1..]));
            break;
        }
        if text.starts_with('-') {
            is_after_option = !text.contains('=');
            continue;
        }
        at.get_or_insert(index + 1);
        inner.extend(command(Vec::new(), &args[index..]));
        if !is_after_option {
            break;
        }
        is_after_option = false;
    }
    inner.retain(|it| !matches!(it, Inner::Words { words, .. } if words.is_empty()));
    (!inner.is_empty()).then_some(Wrapped {
        inner,
        dialect: None,
        at,
        is_transparent: false,
    })
}
