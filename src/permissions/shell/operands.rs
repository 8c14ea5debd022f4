//! Operands of well-known programs that tell or copy what is in files.

use super::effects::has_flag;
use super::word::Word;

/// How a program takes its arguments.
struct Reader {
    names: &'static [&'static str],
    /// Letters of options that take the next word, which is no file.
    with_value: &'static str,
    /// Whether the first operand is a pattern or a script, and the options that have it instead.
    first: Option<&'static [&'static str]>,
}

const READERS: [Reader; 16] = [
    plain(
        &[
            "cat", "tac", "rev", "less", "more", "most", "zless", "zcat", "gzcat", "bzcat",
            "xzcat", "zstdcat", "strings", "base64", "base32", "basenc", "diff", "diff3", "sdiff",
            "cmp", "comm", "expand", "unexpand", "column", "iconv", "shuf", "tsort", "zip", "gzip",
            "gunzip", "bzip2", "bunzip2", "xz", "unxz", "zstd", "unzstd", "bat", "batcat",
            "xmllint",
        ],
        "",
    ),
    plain(&["head", "tail"], "ncs"),
    plain(&["nl"], "bdfhilnsvw"),
    plain(&["od"], "AjNtSw"),
    plain(&["xxd", "hexdump", "hd"], "closenf"),
    plain(&["cut"], "bcdf"),
    plain(&["sort"], "koStT"),
    plain(&["uniq"], "fsw"),
    plain(&["fold", "fmt"], "w"),
    plain(&["paste", "pr", "split", "csplit"], "abdln"),
    plain(&["join"], "12aeotv"),
    with_first(
        &["sed", "gsed"],
        "l",
        &["-e", "-f", "--expression", "--file"],
    ),
    with_first(&["awk", "gawk", "mawk", "nawk"], "vF", &["-f", "--file"]),
    with_first(
        &[
            "grep", "egrep", "fgrep", "ggrep", "zgrep", "rgrep", "rg", "ag", "ack",
        ],
        "ABCemgtTd",
        &["-e", "-f", "--regexp", "--file", "--files"],
    ),
    with_first(&["jq", "yq"], "L", &["-f", "--from-file"]),
    plain(
        &["cp", "mv", "ln", "install", "scp", "rsync", "dd"],
        "mogSeP",
    ),
];

const fn plain(names: &'static [&'static str], with_value: &'static str) -> Reader {
    Reader {
        names,
        with_value,
        first: None,
    }
}

const fn with_first(
    names: &'static [&'static str],
    with_value: &'static str,
    instead: &'static [&'static str],
) -> Reader {
    Reader {
        names,
        with_value,
        first: Some(instead),
    }
}

/// Returns the operands of a command that names the files which it prints or copies. The list is empty
/// for other commands.
pub(super) fn file_operands(name: &str, args: &[Word]) -> Vec<Word> {
    if matches!(name, "curl" | "http" | "https" | "xh" | "gh") {
        return args.iter().filter_map(sent_file).collect();
    }
    let Some(reader) = READERS.iter().find(|it| it.names.contains(&name)) else {
        return Vec::new();
    };
    if name == "dd" {
        return input_of_dd(args).into_iter().collect();
    }
    let mut operands = Vec::new();
    let mut are_all = false;
    let mut skipped = 0;
    for word in args {
        let start = word.known_prefix();
        if skipped > 0 {
            skipped -= 1;
        } else if are_all || !start.starts_with('-') || start == "-" && !word.is_open() {
            operands.push(word.clone());
        } else if start == "--" {
            are_all = true;
        } else if !word.is_open() {
            skipped = words_of_option(reader, &start);
        }
    }
    let starts = || args.iter().map(Word::known_prefix);
    let has_option = |option: &str| starts().any(|start| start.starts_with(option));
    if let Some(instead) = reader.first
        && !instead.iter().any(|option| has_option(option))
        && !operands.is_empty()
    {
        operands.remove(0);
    }
    let is_copy = matches!(name, "cp" | "mv" | "ln" | "install" | "scp" | "rsync");
    if is_copy && !has_flag(args, 't', "--target-directory") {
        operands.pop();
    }
    operands
}

/// Returns the number of words behind an option that belong to it.
fn words_of_option(reader: &Reader, option: &str) -> usize {
    match option {
        "--arg" | "--argjson" => 2,
        _ if option.starts_with("--") => 0,
        _ => usize::from(option.ends_with(|letter| reader.with_value.contains(letter))),
    }
}

/// Returns the file that `dd` reads.
pub(super) fn input_of_dd(args: &[Word]) -> Option<Word> {
    let input = args
        .iter()
        .find(|word| word.known_prefix().starts_with("if="))?;
    Some(input.without_prefix("if=".len()))
}

/// Returns the file that a word means to be sent, as clients of HTTP write it: `@file`, `name=@file`,
/// `-d@file`, `file://path`.
pub(super) fn sent_file(word: &Word) -> Option<Word> {
    let start = word.known_prefix();
    let at = match start.find("file://") {
        Some(at) => at + "file://".len(),
        None => {
            let at = start.find('@')?;
            let before = &start[..at];
            let is_option = before.len() == 2 && before.starts_with('-');
            if !(before.is_empty() || before.ends_with('=') || is_option) {
                return None;
            }
            at + 1
        }
    };
    Some(word.without_prefix(at))
}
