use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command as Process, Stdio};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::word::quote;
use super::*;
use crate::pattern::CommandPattern;

fn base_folders() -> BaseFolders {
    BaseFolders {
        cwd: "/w".into(),
        home: Some("/h".into()),
    }
}

#[test]
fn visible_writes_are_found() {
    for (line, files, open) in [
        ("echo x > a 2>> b", &["/w/a", "/w/b"][..], &[][..]),
        ("ls > $F", &[], &["$F"]),
        ("ls > ~/x/../y", &["/h/y"], &[]),
        ("ls | tee -a a b | cat", &["/w/a", "/w/b"], &[]),
        ("cp a b c/", &["/w/c", "/w/c/a", "/w/c/b"], &[]),
        (
            "cp -t d x/a",
            &["/w/d", "/w/d/a", "/w/d/d", "/w/x/a", "/w/x/a/d"],
            &[],
        ),
        ("mv a b", &["/w/a", "/w/b", "/w/b/a"], &[]),
        ("sed -i s/a/b/ f; sed s/a/b/ g", &["/w/f", "/w/s/a/b"], &[]),
        ("rm -rf .git/hooks", &["/w/.git/hooks"], &[]),
        ("dd if=a of=b", &["/w/b"], &[]),
        ("sort -o a --out=b c", &["/w/a", "/w/b"], &[]),
        ("sort -o$F a", &[], &["$F"]),
        ("sort -uo a b; sort -k2o b", &["/w/a"], &[]),
        ("curl -sSLo a https://x", &["/w/a"], &[]),
        ("curl -Ho https://x; wget -qO- https://x", &["/w/-"], &[]),
        ("gcc -lo -oa b.c", &["/w/a"], &[]),
        (
            "cp -at d a",
            &["/w/a", "/w/a/d", "/w/d", "/w/d/a", "/w/d/d"],
            &[],
        ),
        ("rsync -avt a b", &["/w/b", "/w/b/a"], &[]),
        ("git archive -vo a HEAD", &["/w/a"], &[]),
        ("git ls-files -o d; git grep -o x", &[], &[]),
        ("git diff --output=a", &["/w/a"], &[]),
        ("sudo sh -c 'echo x > /etc/y'", &["/etc/y"], &[]),
        ("cd /a && touch b", &["/a/b", "/w/b"], &[]),
        (
            "(cd /a && touch b); touch c",
            &["/a/b", "/w/b", "/w/c"],
            &[],
        ),
        ("cd $X; touch b", &[], &["b"]),
        ("find . -fprint a -exec touch b \\;", &["/w/a", "/w/b"], &[]),
        ("cat <<E > a\nx\nE", &["/w/a"], &[]),
        ("awk '{print > \"a\"; x = 1 > 2}' b", &["/w/a"], &[]),
        (
            "awk '{print $1 > $1 \".txt\"}' b",
            &[],
            &["the file of print"],
        ),
        ("sed -n 's/a/b/w c' d", &["/w/c"], &[]),
        ("install -m 755 a b", &["/w/b", "/w/b/755", "/w/b/a"], &[]),
        ("ln -s a b", &["/w/b", "/w/b/a"], &[]),
        ("truncate -s 0 a", &["/w/0", "/w/a"], &[]),
        ("git config a.b c; git config a.b", &["/w/.git/config"], &[]),
        ("git config --get a.b c; git config list", &[], &[]),
        ("git config --global a.b c", &["/h/.gitconfig"], &[]),
        ("exec 3<>a", &[], &[]),
        ("echo > /dev/null 2>&1", &["/dev/null"], &[]),
    ] {
        let writes = visible_writes(line, &base_folders());
        if writes.not_understood.is_some() {
            // Reading and writing one file at once is not in the grammar.
            assert!(line.contains("<>"), "{line}: {writes:?}");
            continue;
        }
        let files: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
        assert_eq!(
            (&writes.files, &writes.open),
            (&files, &open.iter().map(ToString::to_string).collect()),
            "{line}"
        );
    }
}

/// Deep nesting must neither exhaust the stack nor take long.
#[test]
fn deep_and_long_lines_are_given_up() {
    let nested = |open: &str, close: &str, count: usize| {
        format!("{}x{}", open.repeat(count), close.repeat(count))
    };
    let started = Instant::now();
    for line in [
        nested("$(", ")", 5000),
        nested("(", ")", 5000),
        nested("{ ", ";}", 5000),
        nested("((", "))", 5000),
        nested("\"$(", ")\"", 5000),
        nested("if ", "; then y; fi", 2000),
        "x".repeat(MAX_LINE + 1),
        "a\0b".to_owned(),
    ] {
        parse(&line, &base_folders()).unwrap_err();
    }
    for line in [
        "a|".repeat(5000) + "a",
        "<<A ".repeat(3000),
        "`".repeat(9001),
        "$((".repeat(9000),
    ] {
        _ = parse(&line, &base_folders());
    }
    // Seconds on a slow machine, hours if the time were exponential.
    assert!(started.elapsed() < Duration::from_secs(100));
}

/// A line with such a character ended pi with SIGSEGV, depending on the addresses of its tables.
#[test]
fn characters_behind_a_brace_do_not_crash() {
    for char in ['\u{31860}', '\u{1f600}', '\u{10ffff}', '\u{100}'] {
        for before in ["{", "a {", "{1", "{1..", "{1..2", "'{", "$(echo {12"] {
            let line = format!("echo {before}{char}");
            parse(&line, &base_folders()).unwrap_err();
        }
        parse(
            &format!("echo '{char} {{a,{char}}}' {{1,{char}}}"),
            &base_folders(),
        )
        .unwrap();
    }
    parse("echo {\u{ff} {1..\u{e4}}", &base_folders()).unwrap();
}

#[test]
fn options_may_lack_their_value() {
    for line in [
        "xargs -I",
        "xargs -n",
        "timeout -k",
        "flock -w",
        "watch -n",
        "env -u",
        "sudo -u",
        "bash -o",
        "sh -c",
    ] {
        parse(line, &base_folders()).unwrap();
    }
}

/// A simple command with quotes in all ways.
fn simple() -> BoxedStrategy<String> {
    let name = prop::sample::select(vec![
        "rm",
        "mk",
        "gt",
        "'rm'",
        "r\\m",
        "r''m",
        "\"mk\"",
        "$'\\x72m'",
        "$NAME",
        "{rm,a}",
        "`echo rm`",
        "r$EMPTY\"m\"",
        "$EMPTY rm",
        "A=b rm",
        "./rm",
        "$'gt'",
        "*m",
    ]);
    (name, prop::collection::vec(word(), 0..4))
        .prop_map(|(name, words)| {
            let mut line = name.to_owned();
            for word in words {
                line.push(' ');
                line.push_str(&word);
            }
            line
        })
        .boxed()
}

fn word() -> BoxedStrategy<String> {
    prop::sample::select(vec![
        "a",
        "b",
        "-c",
        "'b c'",
        "\"a b\"",
        "\"$NAME\"",
        "$NAME",
        "$EMPTY",
        "$MORE",
        "\"$MORE\"",
        "a\"b\"'c'",
        "\\$x",
        "\\'",
        "'$(rm q)'",
        "\"\\$(rm q)\"",
        "{x,y}",
        "$'a\\tb'",
        "*",
        "?",
        "\"${X:-d}\"",
        "$(echo w)",
        "`echo w`",
        "\"$(echo 'w w')\"",
        "$((1+2))",
        "a#b",
        "=",
        "x=1",
        ">o",
        "2>o",
        "<i",
        ">&2",
        "2>&1",
        "''",
        "\"\"",
        "\\\n",
        "a\\\nb",
        "~",
        "[a]",
        "a{b",
        "}",
        "!",
        "-exec",
    ])
    .prop_map(str::to_owned)
    .boxed()
}

fn any_line() -> BoxedStrategy<String> {
    simple()
        .prop_recursive(4, 24, 3, |inner| {
            let quoted = |line: String| quote(&line);
            prop_oneof![
                (
                    inner.clone(),
                    prop::sample::select(vec![
                        "; ",
                        " && ",
                        " || ",
                        " | ",
                        "\n",
                        " & wait; ",
                        " |& "
                    ]),
                    inner.clone()
                )
                    .prop_map(|(a, join, b)| format!("{a}{join}{b}")),
                inner.clone().prop_map(|it| format!("({it})")),
                inner.clone().prop_map(|it| format!("{{ {it}; }}")),
                inner.clone().prop_map(|it| format!("echo $({it})")),
                inner.clone().prop_map(|it| format!("echo \"x$({it})y\"")),
                inner
                    .clone()
                    .prop_map(|it| format!("echo \"${{X:-$({it})}}\"")),
                inner.clone().prop_map(|it| format!("cat <({it})")),
                inner.clone().prop_map(|it| format!("x=$({it})")),
                inner
                    .clone()
                    .prop_map(move |it| format!("sh -c {}", quoted(it))),
                inner
                    .clone()
                    .prop_map(move |it| format!("bash -ec {} a b", quoted(it))),
                inner
                    .clone()
                    .prop_map(move |it| format!("eval {}", quoted(it))),
                inner
                    .clone()
                    .prop_map(move |it| format!("env A=b sh -c {}", quoted(it))),
                inner.clone().prop_map(|it| format!("sh <<'E'\n{it}\nE\n")),
                inner
                    .clone()
                    .prop_map(|it| format!("cat <<E\n$({it})\nE\n")),
                inner.clone().prop_map(|it| format!("bash <<E\n{it}\nE\n")),
                inner.clone().prop_map(|it| format!(
                    "cat <<-E | cat\n\t`{}`\n\tE\n",
                    it.replace(['`', '\\'], "")
                )),
                (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("if {a}; then {b}; fi")),
                (word(), inner.clone())
                    .prop_map(|(word, it)| format!("for f in {word} z; do {it}; done")),
                (word(), inner.clone())
                    .prop_map(|(word, it)| format!("case {word} in a) {it};; *) {it};; esac")),
                inner.clone().prop_map(|it| format!("f() {{ {it}; }}; f q")),
                inner.clone().prop_map(|it| format!("[[ -n x ]] && {it}")),
                inner.clone().prop_map(|it| format!("! {it}")),
                inner.clone().prop_map(|it| format!("{it} # rm")),
                simple().prop_map(|it| format!("env A=b {it}")),
                simple().prop_map(|it| format!("nohup {it}")),
                simple().prop_map(|it| format!("timeout 5 {it}")),
                simple().prop_map(|it| format!("nice -n 1 {it}")),
                simple().prop_map(|it| format!("command {it}")),
                simple().prop_map(|it| format!("echo 1 2 | xargs -n 1 {it}")),
                simple().prop_map(|it| format!("echo 1 | xargs -I R {it} R")),
                simple().prop_map(|it| format!("find . -maxdepth 0 -exec {it} {{}} \\;")),
                inner.clone().prop_map(|it| format!("(({it}))")),
                inner.clone().prop_map(|it| format!("[[ {it} || {it} ]]")),
                inner.clone().prop_map(|it| format!("echo $(( $({it}) ))")),
                inner
                    .clone()
                    .prop_map(|it| format!("f() {{ {it}; }} & f; gt() {{ {it}; }}; gt a")),
                inner.clone().prop_map(|it| format!("{it} >$({it})")),
                inner
                    .clone()
                    .prop_map(|it| format!("while ! {it}; do break; done")),
                inner
                    .clone()
                    .prop_map(|it| format!("case a in $({it})) ;; a) {it} ;; esac")),
                inner
                    .clone()
                    .prop_map(move |it| format!("trap {} EXIT", quoted(it))),
                inner
                    .clone()
                    .prop_map(move |it| format!("mapfile -c 1 -C {} x <<< $'a\\nb'", quoted(it))),
                inner
                    .clone()
                    .prop_map(move |it| format!("BASH_ENV={} bash -c :", quoted(it))),
                inner
                    .clone()
                    .prop_map(move |it| format!("PS4={} bash -xc :", quoted(format!("$({it})")))),
                inner.clone().prop_map(move |it| format!(
                    "awk 'BEGIN {{ system(\"{}\") }}'",
                    it.replace(['\'', '"', '\\', '\n'], "")
                )),
                inner
                    .clone()
                    .prop_map(move |it| format!("echo a | sed {}", quoted(format!("1e {it}")))),
                simple().prop_map(|it| format!("hash -p ./rm mk; mk; {it}")),
                simple().prop_map(|it| format!("coproc {it}")),
                simple().prop_map(|it| format!("time -p {it}")),
                simple().prop_map(|it| format!("exec {it}")),
                simple().prop_map(|it| format!("setsid -w {it}")),
                simple().prop_map(|it| format!("stdbuf -oL {it}")),
                simple().prop_map(|it| format!("env -S {}", quote(&it))),
                inner.prop_map(move |it| format!(
                    "alias al={}; shopt -s expand_aliases\nal q",
                    quoted(it)
                )),
            ]
        })
        .boxed()
}

/// Changes characters of the line, as a mistake or an attack would.
fn mutate(line: String, changes: &[(prop::sample::Index, usize)]) -> String {
    const MORE: [&str; 20] = [
        "'", "\"", "\\", "`", "$", "(", ")", "{", "}", ";", "|", "&", "<", ">", " ", "\n", "#",
        "$(", "=", "[",
    ];
    let mut chars: Vec<String> = line.chars().map(String::from).collect();
    for (at, what) in changes {
        if chars.is_empty() {
            break;
        }
        let at = at.index(chars.len());
        match MORE.get(*what) {
            Some(more) => chars.insert(at, (*more).to_owned()),
            None => _ = chars.remove(at),
        }
    }
    chars.concat()
}

/// Runs random lines in bash, with programs that record their arguments, and compares them with
/// what was found in the line. `PI_LINES` is the number of lines.
#[test]
fn bash_runs_no_command_that_was_not_seen() {
    let Ok(bash) = Process::new("bash").arg("--version").output() else {
        eprintln!("skipped: there is no bash");
        return;
    };
    assert!(bash.status.success());
    let count = env::var("PI_LINES")
        .ok()
        .and_then(|it| it.parse().ok())
        .unwrap_or(250);
    let seed = env::var("PI_SEED").unwrap_or_else(|_| "pi".into());
    let mut bytes = [7; 32];
    bytes[..seed.len().min(32)].copy_from_slice(&seed.as_bytes()[..seed.len().min(32)]);
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let changes = prop::collection::vec((any::<prop::sample::Index>(), 0..26usize), 0..3);
    let lines = (any_line(), changes).prop_map(|(line, changes)| mutate(line, &changes));
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    for name in ["rm", "mk", "gt"] {
        for folder in ["bin", "cwd"] {
            let file = root.join(folder).join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            // A file for each process keeps commands that run at once apart.
            let script = "#!/bin/sh\nprintf '%s\\037' \"${0##*/}\" \"$@\" >> \"$LOG/$$\"\n";
            fs::write(&file, script).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }
    fs::write(root.join("cwd/i"), "").unwrap();
    let base_folders = BaseFolders {
        cwd: root.join("cwd"),
        home: Some(root.join("home")),
    };
    let (mut seen, mut not_understood) = (0, 0);
    let mut missed = Vec::new();
    for number in 0..count {
        let line = lines.new_tree(&mut runner).unwrap().current();
        let found = match parse(&line, &base_folders) {
            Ok(found) => found,
            Err(_) => {
                not_understood += 1;
                continue;
            }
        };
        // Commands in the background may outlive their line.
        let log = root.join(format!("log-{number}"));
        fs::create_dir(&log).unwrap();
        let path = format!(
            "{}:{}",
            root.join("bin").display(),
            env::var("PATH").unwrap()
        );
        let status = Process::new("timeout")
            .args(["5", "bash", "-c", &line])
            .current_dir(root.join("cwd"))
            .env_clear()
            .envs([("NAME", "rm"), ("EMPTY", ""), ("MORE", "mk a")])
            .env("PATH", path)
            .env("LOG", &log)
            .env("HOME", root.join("home"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        status.unwrap();
        for file in fs::read_dir(&log).unwrap() {
            let run = fs::read(file.unwrap().path()).unwrap();
            let run = String::from_utf8_lossy(&run);
            let Some(run) = run.strip_suffix('\u{1f}') else {
                continue;
            };
            let words: Vec<&str> = run.split('\u{1f}').collect();
            if !matches!(words[0], "rm" | "mk" | "gt") {
                // The program was read as a script, such as that of `BASH_ENV`.
                continue;
            }
            seen += 1;
            let commands = all(&found.commands);
            if !commands.iter().any(|command| is_command(command, &words)) {
                missed.push(format!("{words:?} ran in the line\n{line}"));
            }
        }
    }
    assert!(missed.is_empty(), "not seen:\n{}", missed.join("\n\n"));
    assert!(seen > count / 4, "only {seen} commands ran");
    assert!(
        not_understood < count * 2 / 3,
        "{not_understood} lines were not understood"
    );
}

fn all(commands: &[Command]) -> Vec<&Command> {
    let mut found = Vec::new();
    for command in commands {
        found.push(command);
        found.extend(all(&command.inner));
    }
    found
}

fn is_command(command: &Command, words: &[&str]) -> bool {
    let mut by_base_name = command.words.clone();
    if let Some(first) = by_base_name.first_mut() {
        *first = first.base_name();
    }
    let exact: Vec<String> = words
        .iter()
        .map(|word| Word::text(*word).as_pattern())
        .collect();
    let pattern = CommandPattern::parse(&exact.join(" ")).unwrap();
    // The program may be the script of a shell.
    let is_shell = |word: &Word| matches!(word.known().as_deref(), Some("sh" | "bash"));
    let scripts = by_base_name.first().is_some_and(is_shell);
    let starts = 1..if scripts { by_base_name.len() } else { 1 };
    let is_script = |start: usize| {
        let mut words = by_base_name[start..].to_vec();
        words[0] = words[0].base_name();
        pattern.may_match(&words)
    };
    pattern.may_match(&by_base_name) || starts.into_iter().any(is_script)
}
