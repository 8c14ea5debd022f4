use std::fs;
use std::os::unix::fs::symlink;

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn base_folders() -> BaseFolders {
    BaseFolders {
        cwd: "/home/me/project".into(),
        home: Some("/home/me".into()),
    }
}

fn rules(allow: &[&str], ask: &[&str], deny: &[&str], default: Verdict) -> Rules {
    let texts = |rules: &[&str]| -> Vec<String> { rules.iter().map(ToString::to_string).collect() };
    let (allow, ask, deny) = (texts(allow), texts(ask), texts(deny));
    let (rules, errors) = Rules::parse([&allow, &ask, &deny], default);
    assert_eq!(errors, []);
    rules
}

fn bash(rules: &Rules, line: &str) -> Decision {
    let call = Call {
        tool: "bash",
        input: &json!({ "command": line }),
        access: &Access::Bash(line.to_owned()),
    };
    rules.decide(&call, &base_folders())
}

/// The rules of `lines.txt`.
fn rules_of_the_table() -> Rules {
    rules(
        &[
            "Bash(git *)",
            "Bash(ls*)",
            "Bash(npm run *)",
            "Bash(grep:*)",
            "bash(echo *)",
            "bash(cat *)",
            "bash(find *)",
            "bash(awk *)",
            "bash(sed *)",
            "bash(tar *)",
            "bash(command -v *)",
            "bash(sudo apt update)",
            "bash(git push origin docs)",
            "bash(lsof)",
            "edit(./**)",
            "read(./**)",
        ],
        &["bash(git push *)", "bash(lsblk)"],
        &[
            "bash(rm *)",
            "edit(.env)",
            "write(~/.ssh/**)",
            "Read(*.pem)",
            "edit(.env.*)",
        ],
        Verdict::Ask,
    )
}

#[test]
fn shell_lines_are_decided_as_the_table_says() {
    let rules = rules_of_the_table();
    let mut wrong = Vec::new();
    let mut count = 0;
    for row in include_str!("lines.txt").lines() {
        let Some((verdict, line)) = row.split_once('\t').filter(|_| !row.starts_with("# ")) else {
            continue;
        };
        count += 1;
        let line = line
            .replace("\\n", "\n")
            .replace("\\\\", "\\")
            .replace("\\t", "\t");
        let expected = match verdict {
            "allow" => Verdict::Allow,
            "ask" => Verdict::Ask,
            "deny" => Verdict::Deny,
            other => panic!("{other} is no verdict"),
        };
        let decision = bash(&rules, &line);
        if decision.verdict != expected {
            wrong.push(format!("{line:?}: {decision:?}, not {expected:?}"));
        }
    }
    assert!(count >= 200, "only {count} lines");
    assert!(
        wrong.is_empty(),
        "{} of {count}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn nothing_is_asked_without_rules() {
    let decision = bash(&Rules::default(), "rm -rf / `");
    assert_eq!(decision, Decision::new(Verdict::Allow, None, ""));
    // Rules to allow change nothing where everything is allowed.
    let rules = rules(&["bash(ls)"], &[], &[], Verdict::Allow);
    assert_eq!(bash(&rules, "rm x").verdict, Verdict::Allow);
}

#[test]
fn deny_wins_then_ask_then_allow() {
    let verdict =
        |allow, ask, deny| bash(&rules(allow, ask, deny, Verdict::Allow), "git push x").verdict;
    let all: &[&str] = &["bash(git *)"];
    assert_eq!(verdict(all, all, all), Verdict::Deny);
    assert_eq!(verdict(all, all, &[]), Verdict::Ask);
    assert_eq!(verdict(all, &["bash"], &[]), Verdict::Ask);
    assert_eq!(verdict(&["bash"], all, &[]), Verdict::Ask);
    assert_eq!(verdict(all, &[], &["bash"]), Verdict::Deny);
    assert_eq!(verdict(&[], &["*"], &[]), Verdict::Ask);
    // An answer "always" is a rule without a wildcard.
    assert_eq!(verdict(&["bash(git push x)"], all, &[]), Verdict::Allow);
    assert_eq!(
        verdict(&["bash(git push x)"], &["bash(git push x)"], &[]),
        Verdict::Ask
    );
    assert_eq!(verdict(&["bash(git push x)"], &[], all), Verdict::Deny);
}

#[test]
fn what_is_not_understood_is_asked() {
    let line = "rm 'x";
    for deny in ["bash(git *)", "edit(.env)", "read(.env)"] {
        let decision = bash(&rules(&["bash"], &[], &[deny], Verdict::Allow), line);
        assert_eq!(decision.verdict, Verdict::Ask, "{decision:?}");
        assert!(decision.remember.is_empty());
    }
    let bare = rules(&["bash"], &[], &["write"], Verdict::Ask);
    assert_eq!(bash(&bare, line).verdict, Verdict::Allow);
}

#[test]
fn remembered_rules_allow_this_call_and_no_other() {
    let asking = rules(&["bash(ls)"], &["bash(git push *)"], &[], Verdict::Ask);
    for (line, remember) in [
        ("git push && ls", vec!["bash(git push)"]),
        (
            "make *.c 'a b' \\* \"it's\"",
            vec![r"bash(make '*'.c 'a b' '*' 'it'\''s')"],
        ),
        (
            "make $X > 'a[1].txt'",
            vec!["bash(make '$X')", r"edit(/home/me/project/a\[1\].txt)"],
        ),
        ("A=b make ~/x ''", vec!["bash(A=b make ~/x '')"]),
        ("sudo make", vec!["bash(sudo make)", "bash(make)"]),
        // A pipe brings another script each time.
        ("echo x | sh", vec![]),
    ] {
        let decision = bash(&asking, line);
        assert_eq!(
            (decision.verdict, &decision.remember),
            (
                Verdict::Ask,
                &remember.iter().map(ToString::to_string).collect()
            ),
            "{line}"
        );
        if remember.is_empty() {
            continue;
        }
        let mut remembering = asking.clone();
        let more = remember.iter().map(|rule| Rule::parse(rule).unwrap());
        remembering.allow.extend(more);
        assert_eq!(bash(&remembering, line).verdict, Verdict::Allow, "{line}");
        for other in [format!("{line} x"), format!("x {line}")] {
            assert_eq!(bash(&remembering, &other).verdict, Verdict::Ask, "{other}");
        }
    }
}

#[test]
fn an_input_without_a_line_or_a_file_is_asked_about() {
    let verdict = |deny: &str, tool, access| {
        let rules = rules(&["bash", "write"], &[], &[deny], Verdict::Allow);
        let input = &json!({ "other": "x" });
        rules
            .decide(
                &Call {
                    tool,
                    input,
                    access: &access,
                },
                &base_folders(),
            )
            .verdict
    };
    assert_eq!(verdict("bash(rm *)", "bash", Access::Other), Verdict::Ask);
    assert_eq!(
        verdict("edit(.env)", "write", Access::Write(Vec::new())),
        Verdict::Ask
    );
    assert_eq!(verdict("fetch", "bash", Access::Other), Verdict::Allow);
    assert_eq!(
        verdict("bash(rm *)", "fetch", Access::Other),
        Verdict::Allow
    );
}

fn file(rules: &Rules, access: Access, base_folders: &BaseFolders) -> Verdict {
    let tool = match access {
        Access::Write(_) => "write",
        _ => "read",
    };
    let call = Call {
        tool,
        input: &json!({}),
        access: &access,
    };
    rules.decide(&call, base_folders).verdict
}

#[test]
fn file_rules_hold_behind_symbolic_links() {
    let dir = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(dir.path()).unwrap();
    let base_folders = BaseFolders {
        cwd: root.join("project"),
        home: Some(root.join("home")),
    };
    for folder in ["project/src", "home/.ssh", "elsewhere"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    fs::write(root.join("project/.env"), "").unwrap();
    symlink(root.join("home/.ssh"), root.join("project/keys")).unwrap();
    symlink("../.env", root.join("project/src/settings")).unwrap();
    symlink("nowhere", root.join("project/dangling")).unwrap();
    symlink(root.join("elsewhere"), root.join("project/out")).unwrap();
    symlink("loop", root.join("project/loop")).unwrap();
    symlink(root.join("project"), root.join("link")).unwrap();
    let denying = rules(
        &[],
        &[],
        &["edit(.env)", "edit(~/.ssh/**)", "edit(/**/nowhere)"],
        Verdict::Allow,
    );
    let allowing = rules(&["edit(./**)"], &[], &[], Verdict::Ask);
    let write = |rules: &Rules, path: &str| {
        file(rules, Access::Write(vec![root.join(path)]), &base_folders)
    };
    for (path, denied, allowed) in [
        ("project/.env", Verdict::Deny, Verdict::Allow),
        ("project/a/../.env", Verdict::Deny, Verdict::Allow),
        ("project/src/settings", Verdict::Deny, Verdict::Allow),
        ("project/keys/id", Verdict::Deny, Verdict::Ask),
        ("project/keys/new/id", Verdict::Deny, Verdict::Ask),
        ("project/keys", Verdict::Allow, Verdict::Ask),
        ("project/dangling", Verdict::Deny, Verdict::Allow),
        ("project/out/x", Verdict::Allow, Verdict::Ask),
        ("project/out/../x", Verdict::Allow, Verdict::Ask),
        ("project/loop", Verdict::Allow, Verdict::Ask),
        ("project/src/new/file", Verdict::Allow, Verdict::Allow),
        ("link/src/new", Verdict::Allow, Verdict::Allow),
        ("link/.env", Verdict::Deny, Verdict::Allow),
        ("elsewhere/x", Verdict::Allow, Verdict::Ask),
    ] {
        assert_eq!(write(&denying, path), denied, "{path}");
        assert_eq!(write(&allowing, path), allowed, "{path}");
    }
    // A rule through a link means where it leads.
    let through = rules(&[], &[], &["edit(./out/**)"], Verdict::Allow);
    assert_eq!(write(&through, "elsewhere/x"), Verdict::Deny);
    let through = rules(&["edit(./out/**)"], &[], &[], Verdict::Ask);
    assert_eq!(write(&through, "elsewhere/x"), Verdict::Allow);
    // A rule to read is none to write.
    let reading = rules(&["read(./**)"], &[], &[], Verdict::Ask);
    assert_eq!(write(&reading, "project/x"), Verdict::Ask);
    let path = || vec![root.join("project/x")];
    assert_eq!(
        file(&reading, Access::Read(path()), &base_folders),
        Verdict::Allow
    );
}

#[test]
fn extension_tools_match_by_name_and_members() {
    let verdict = |allow, deny, tool, input: Value| {
        let rules = rules(allow, &[], deny, Verdict::Ask);
        let call = Call {
            tool,
            input: &input,
            access: &Access::Other,
        };
        rules.decide(&call, &base_folders()).verdict
    };
    let page =
        || json!({ "url": "https://example.com/a", "headers": [{ "name": "x" }, { "name": "y" }] });
    for (allow, deny, expected) in [
        (&["fetch"][..], &[][..], Verdict::Allow),
        (&["Fetch"], &[], Verdict::Ask),
        (&["f*"], &[], Verdict::Allow),
        (&["fetch(url:https://example.com/*)"], &[], Verdict::Allow),
        (&["fetch(url:https://example.org/*)"], &[], Verdict::Ask),
        (&["fetch(https://example.com/*)"], &[], Verdict::Ask),
        (&["fetch(headers.name:x)"], &[], Verdict::Ask),
        (&["fetch(headers.name:*)"], &[], Verdict::Allow),
        (&["fetch(missing:*)"], &[], Verdict::Ask),
        (&["fetch"], &["fetch(headers.name:x)"], Verdict::Deny),
        (&["fetch"], &["fetch(https://*)"], Verdict::Deny),
        (&["fetch"], &["fetch(z)"], Verdict::Allow),
    ] {
        assert_eq!(
            verdict(allow, deny, "fetch", page()),
            expected,
            "{allow:?} {deny:?}"
        );
    }
    let tool = "mcp__github__create";
    assert_eq!(
        verdict(&["mcp__github"], &[], tool, json!({})),
        Verdict::Allow
    );
    assert_eq!(
        verdict(&["mcp__github__*"], &[], tool, json!({})),
        Verdict::Allow
    );
    assert_eq!(verdict(&["mcp__git"], &[], tool, json!({})), Verdict::Ask);
}

#[test]
fn unusable_rules_say_why() {
    for text in [
        "",
        "bash(",
        "bash(ls",
        "bash()",
        "bash(a && b)",
        "bash(a | b)",
        "bash('a)",
        "(x)",
        "a b",
        "edit(a/../b)",
        "edit([)",
        "bash(a\\)",
    ] {
        let error = Rule::parse(text).unwrap_err().to_string();
        assert!(error.contains(&format!("{text:?}")), "{error}");
    }
}

fn any_line() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec![
        "rm", "git", "ls", "push", "x", "-c", "sh", "bash", "env", "sudo", "xargs", "find",
        "-exec", "eval", "A=b", "cd", "/etc", ".env", " ", " ", " ", "\n", ";", "|", "&", "&&",
        "(", ")", "{", "}", "$", "$(", "${", "`", "'", "\"", "\\", "<", ">", "<<", "<<<", "E",
        "\nE\n", "#", "*", "[", "]", "[[", "]]", "((", "))", "if", "then", "fi", "for", "in", "do",
        "done", "case", "esac", ";;", "function", "!", "=", "+=", "~", "\t", "\r", "é", "\0", "$'",
        "-", "{}", "..",
    ]);
    prop::collection::vec(part, 0..24).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_line_makes_a_panic(line in prop_oneof![any_line(), "\\PC{0,60}"]) {
        let rules = rules_of_the_table();
        bash(&rules, &line);
        // A command that runs with certainty is never missed, whatever is around it.
        let joined = bash(&rules, &format!("rm x\n{line}"));
        prop_assert_ne!(joined.verdict, Verdict::Allow);
        shell::visible_writes(&line, &base_folders());
    }

    #[test]
    fn no_rule_makes_a_panic(text in "\\PC{0,20}", pattern in "\\PC{0,30}") {
        for text in [text.clone(), format!("bash({pattern})"), format!("edit({pattern})"), format!("x({pattern})")] {
            if let Ok(rule) = Rule::parse(&text) {
                let mut rules = rules_of_the_table();
                rules.deny.push(rule.clone());
                rules.allow.push(rule);
                bash(&rules, "git x > y");
            }
        }
    }

    /// A remembered rule matches the command that it was made of, and none with another word.
    #[test]
    fn exact_rules_mean_one_command(words in prop::collection::vec("\\PC{1,8}", 1..5), at in 0..5usize, other in "\\PC{1,8}") {
        let words: Vec<Word> = words.into_iter().map(Word::text).collect();
        let command = Command { words: words.clone(), ..Command::default() };
        let Some(text) = Forms::new(&command).exact_rule() else {
            return Ok(());
        };
        let rule = Rule::parse(&text).unwrap();
        let pattern = command_pattern(&rule).unwrap();
        prop_assert!(pattern.must_match(&words));
        let mut changed = words.clone();
        let at = at % changed.len();
        changed[at] = Word::text(other);
        prop_assert_eq!(pattern.must_match(&changed), changed == words);
    }
}
