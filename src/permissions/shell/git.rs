//! Commands that the arguments of `git` run: settings such as `-c core.pager=…`, and options such
//! as `rebase --exec`.

use super::options::{OptionName, value_at};
use super::runs::{InnerCommands, may_be_option};
use super::word::Word;

/// Sections of settings that run nothing.
const HARMLESS_SECTIONS: [&str; 21] = [
    "advice",
    "blame",
    "branch",
    "color",
    "column",
    "commit",
    "fetch",
    "format",
    "gc",
    "grep",
    "i18n",
    "index",
    "log",
    "pack",
    "pull",
    "push",
    "rebase",
    "status",
    "tag",
    "user",
    "versionsort",
];

/// Settings in other sections that run nothing.
const HARMLESS_SETTINGS: [&str; 18] = [
    "core.abbrev",
    "core.autocrlf",
    "core.bare",
    "core.eol",
    "core.filemode",
    "core.ignorecase",
    "core.longpaths",
    "core.quotepath",
    "core.safecrlf",
    "diff.algorithm",
    "diff.context",
    "diff.noprefix",
    "diff.renamelimit",
    "diff.renames",
    "init.defaultbranch",
    "merge.conflictstyle",
    "merge.ff",
    "safe.directory",
];

/// Options whose value `git` runs, without their dashes, by subcommand.
const RUNNING: [(&str, &[&str]); 14] = [
    ("archive", &["exec"]),
    ("clone", &["u", "upload-pack"]),
    ("difftool", &["x", "extcmd"]),
    ("fetch", &["upload-pack"]),
    ("fetch-pack", &["upload-pack", "exec"]),
    ("filter-branch", FILTERS),
    ("grep", &["O"]),
    ("ls-remote", &["upload-pack", "exec"]),
    ("mergetool", &["extcmd"]),
    ("pull", &["upload-pack"]),
    ("push", &["receive-pack", "exec"]),
    ("rebase", &["x", "exec"]),
    (
        "send-email",
        &["cc-cmd", "sendmail-cmd", "smtp-server", "to-cmd"],
    ),
    ("send-pack", &["receive-pack", "exec"]),
];

/// Options of `git filter-branch` whose value runs.
const FILTERS: &[&str] = &[
    "commit-filter",
    "env-filter",
    "index-filter",
    "msg-filter",
    "parent-filter",
    "setup",
    "tag-name-filter",
    "tree-filter",
];

/// Finds what `git` runs with these arguments.
pub(super) fn find(args: &[Word], is_assigned: &dyn Fn(&str) -> bool, found: &mut InnerCommands) {
    let mut at = 0;
    // Options before the subcommand.
    while let Some(word) = args.get(at) {
        let start = word.known_prefix();
        if may_be_option(word, is_assigned, false) {
            found.unknown(at, word);
            return;
        }
        if !start.starts_with('-') {
            break;
        }
        if start.starts_with("--exec-path=") || start.starts_with("--config-env") {
            found.unknown(at, word);
        }
        let takes_next = matches!(
            start.as_str(),
            "-c" | "-C" | "--git-dir" | "--work-tree" | "--namespace" | "--config-env"
        );
        if start == "-c"
            && let Some(setting) = args.get(at + 1)
        {
            setting_of(setting, at + 1, found);
        }
        at += 1 + usize::from(takes_next);
    }
    let Some(command) = args.get(at).and_then(Word::known) else {
        return;
    };
    let rest = at + 1;
    let operands: Vec<usize> = (rest..args.len())
        .filter(|index| !args[*index].known_prefix().starts_with('-'))
        .collect();
    for (index, word) in args.iter().enumerate().skip(rest) {
        // Addresses such as `ext::sh -c …` run a command.
        let start = word.known_prefix();
        if start.starts_with("ext::") || start.starts_with("fd::") {
            found.unknown(index, word);
        }
    }
    let running = RUNNING.iter().find(|(name, _)| *name == command);
    if let Some((_, options)) = running {
        for index in rest..args.len() {
            if args[index].known().as_deref() == Some("--") {
                break;
            }
            if may_be_option(&args[index], is_assigned, false) {
                found.unknown(index, &args[index]);
            }
            for option in *options {
                if let Some((at, value)) = value_at(args, index, OptionName::of(option)) {
                    found.script(at, value);
                }
            }
        }
    }
    match command.as_str() {
        "grep" => {
            for (index, word) in args.iter().enumerate().skip(rest) {
                let start = word.known_prefix();
                let given = start.split('=').next().unwrap_or_default();
                if given.len() > 3 && "--open-files-in-pager".starts_with(given) {
                    match start.contains('=') {
                        true => found.script(index, word.without_prefix(given.len() + 1)),
                        false => found.unknown(index, word),
                    }
                }
            }
        }
        "clone" | "submodule" | "init" => {
            for index in rest..args.len() {
                let value_of = |name| value_at(args, index, OptionName::of(name));
                if command == "clone"
                    && let Some((at, value)) = value_of("c").or_else(|| value_of("config"))
                {
                    setting_of(&value, at, found);
                }
                // The hooks in the template run later.
                if let Some((at, value)) = value_of("template") {
                    found.unknown(at, &value);
                }
            }
            if let Some(foreach) = operands.first()
                && args[*foreach].known().as_deref() == Some("foreach")
                && let Some(first) = operands.get(1)
            {
                found.script(*first, super::wrappers::join(&args[*first..]));
            }
        }
        "bisect" => {
            if let Some(run) = operands.first()
                && args[*run].known().as_deref() == Some("run")
            {
                found.words(run + 1, &args[run + 1..]);
            }
        }
        "config" => {
            let mut values = operands.iter().copied().filter(|index| {
                let text = args[*index].known().unwrap_or_default();
                !matches!(text.as_str(), "set" | "add")
            });
            if let (Some(key), Some(value)) = (values.next(), values.next())
                && !matches!(
                    args[key].known().as_deref(),
                    Some("get" | "list" | "unset" | "remove-section" | "rename-section")
                )
            {
                let mut setting = args[key].clone();
                setting.push('=');
                setting.0.extend(args[value].0.iter().cloned());
                setting_of(&setting, value, found);
            }
        }
        _ => {}
    }
}

/// Finds what a setting such as `core.pager=less` runs.
fn setting_of(setting: &Word, at: usize, found: &mut InnerCommands) {
    let start = setting.known_prefix();
    let Some((name, value)) = start.split_once('=') else {
        if setting.is_open() {
            found.unknown(at, setting);
        }
        return;
    };
    let key = name.to_lowercase();
    let section = key.split('.').next().unwrap_or_default();
    let is_boolean = !setting.is_open() && matches!(value, "" | "true" | "false" | "0" | "1");
    let is_harmless = HARMLESS_SECTIONS.contains(&section)
        || HARMLESS_SETTINGS.contains(&key.as_str())
        || is_boolean;
    if is_harmless {
        return;
    }
    let mut script = setting.without_prefix(name.len() + 1);
    if value.starts_with('!') {
        script = script.without_prefix(1);
    }
    found.script(at, script);
}
