use super::*;

fn parse_all(words: &[&str]) -> Result<Arguments, Vec<ArgumentError>> {
    parse(words.iter().map(OsString::from))
}

fn parse_ok(words: &[&str]) -> Arguments {
    parse_all(words).unwrap_or_else(|errors| panic!("{words:?}: {errors:?}"))
}

fn parse_errors(words: &[&str]) -> Vec<String> {
    let errors = parse_all(words).expect_err("the words are wrong");
    errors.iter().map(ToString::to_string).collect()
}

fn no_arguments() -> Arguments {
    parse_ok(&[])
}

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_string()).collect()
}

fn flag(name: &str, value: Option<&str>) -> (String, Option<String>) {
    (name.to_string(), value.map(str::to_string))
}

#[test]
fn the_clap_definition_is_valid() {
    Options::command().debug_assert();
    // Options are looked up by their long names.
    for arg in Options::command().get_arguments() {
        assert!(arg.get_long().is_some(), "{arg:?}");
    }
}

#[test]
fn short_and_long_names_are_equal() {
    for (short, long) in [
        ("-p", "--print"),
        ("-c", "--continue"),
        ("-h", "--help"),
        ("-v", "--version"),
        ("-ne", "--no-extensions"),
        ("-nc", "--no-context-files"),
    ] {
        assert_eq!(parse_ok(&[short]), parse_ok(&[long]));
        assert_ne!(parse_ok(&[short]), no_arguments(), "{short}");
    }
}

#[test]
fn values_follow_or_are_attached() {
    let expected = Arguments {
        options: Options {
            mode: Some(OutputMode::Json),
            provider: Some("p".into()),
            model: Some("m=1:high".into()),
            thinking: Some("low".into()),
            models: Some("a,b".into()),
            api_key: Some("k".into()),
            session: Some("s".into()),
            fork: Some("f".into()),
            session_dir: Some("d".into()),
            tools: Some("read".into()),
            system_prompt: Some(String::new()),
            append_system_prompt: strings(&["one", "", "two"]),
            extension: strings(&["a.ts", "b.ts"]),
            ..no_arguments().options
        },
        ..no_arguments()
    };
    let pairs = [
        ("--mode", "json"),
        ("--provider", "p"),
        ("--model", "m=1:high"),
        ("--thinking", "low"),
        ("--models", "a,b"),
        ("--api-key", "k"),
        ("--session", "s"),
        ("--fork", "f"),
        ("--session-dir", "d"),
        ("--tools", "read"),
        ("--system-prompt", ""),
        ("--append-system-prompt", "one"),
        ("--append-system-prompt", ""),
        ("--append-system-prompt", "two"),
        ("--extension", "a.ts"),
        ("--extension", "b.ts"),
    ];
    let apart: Vec<&str> = pairs
        .iter()
        .flat_map(|(name, value)| [*name, *value])
        .collect();
    assert_eq!(parse_ok(&apart), expected);
    let attached: Vec<String> = pairs
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let attached: Vec<&str> = attached.iter().map(String::as_str).collect();
    assert_eq!(parse_ok(&attached), expected);
    assert_eq!(
        parse_ok(&["-e", "a.ts"]).options.extension,
        strings(&["a.ts"])
    );
}

#[test]
fn a_value_may_look_like_an_option_or_a_file() {
    let options = parse_ok(&["--system-prompt", "-p", "--append-system-prompt", "@x"]).options;
    assert!(!options.print);
    assert_eq!(options.system_prompt.as_deref(), Some("-p"));
    assert_eq!(options.append_system_prompt, strings(&["@x"]));
}

#[test]
fn the_last_of_repeated_values_counts() {
    let options = parse_ok(&["--model", "a", "-p", "--model=b", "-p"]).options;
    assert_eq!(options.model.as_deref(), Some("b"));
    assert!(options.print);
}

#[test]
fn files_and_messages_are_separated() {
    let expected = Arguments {
        files: strings(&["a.md", "", "@b"]),
        messages: strings(&["one", "", "two words"]),
        ..no_arguments()
    };
    assert_eq!(
        parse_ok(&["@a.md", "one", "@", "", "@@b", "two words"]),
        expected
    );
}

#[test]
fn after_two_dashes_everything_is_a_message() {
    let expected = Arguments {
        messages: strings(&["one", "install", "-p", "@a", "--", "--x=y"]),
        ..no_arguments()
    };
    assert_eq!(
        parse_ok(&["one", "--", "install", "-p", "@a", "--", "--x=y"]),
        expected
    );
}

#[test]
fn list_models_takes_a_pattern_if_there_is_one() {
    let listed = |words: &[&str]| parse_ok(words).options.list_models;
    assert_eq!(listed(&[]), None);
    assert_eq!(listed(&["--list-models"]).as_deref(), Some(""));
    assert_eq!(listed(&["--list-models", "opus"]).as_deref(), Some("opus"));
    assert_eq!(listed(&["--list-models=opus"]).as_deref(), Some("opus"));
    let with_option = parse_ok(&["--list-models", "-p"]);
    assert_eq!(with_option.options.list_models.as_deref(), Some(""));
    assert!(with_option.options.print);
    assert_eq!(parse_ok(&["--list-models", "@a"]).files, strings(&["a"]));
}

#[test]
fn unknown_options_are_kept_for_extensions() {
    let expected = Arguments {
        flags: vec![
            flag("plan", None),
            flag("level", Some("3=4")),
            flag("title", Some("value")),
            flag("empty", Some("")),
            flag("last", None),
        ],
        files: strings(&["a"]),
        messages: strings(&["message"]),
        options: Options {
            print: true,
            ..no_arguments().options
        },
    };
    assert_eq!(
        parse_ok(&[
            "--plan",
            "-p",
            "--level=3=4",
            "message",
            "--title",
            "value",
            "--empty=",
            "--last",
            "@a"
        ]),
        expected
    );
}

#[test]
fn errors_name_the_argument() {
    let cases: [(&[&str], &[&str]); 8] = [
        (&["-x"], &["Unknown option: -x"]),
        (&["-pc"], &["Unknown option: -pc"]),
        (&["-"], &["Unknown option: -"]),
        (&["--model"], &["--model needs a value (see pi --help)"]),
        (&["-e"], &["-e needs a value (see pi --help)"]),
        (&["-y", "-z"], &["Unknown option: -y", "Unknown option: -z"]),
        (
            &["--mode", "tui"],
            &[
                "invalid value 'tui' for '--mode <text|json|rpc>'\n  [possible values: text, json, rpc]",
            ],
        ),
        (
            &["--print=yes"],
            &["unexpected value 'yes' for '--print' found; no more were expected"],
        ),
    ];
    for (words, expected) in cases {
        assert_eq!(parse_errors(words), expected, "{words:?}");
    }
}

#[test]
fn missing_commands_are_errors_only_in_front() {
    assert_eq!(
        parse_errors(&["config"]),
        ["`pi config` is not implemented in this version. \
          If it is the beginning of a message, write: pi -- config ..."]
    );
    // These were once sent to the model.
    for words in [["mcp", "list"], ["auth", "login"]] {
        let error = parse_errors(&words).join("");
        let begin = format!("pi {} is a command of newer versions", words.join(" "));
        assert!(error.starts_with(&begin), "{error}");
    }
    assert_eq!(
        parse_ok(&["auth", "is", "broken"]).messages,
        strings(&["auth", "is", "broken"])
    );
    assert_eq!(
        parse_ok(&["please", "config"]).messages,
        strings(&["please", "config"])
    );
}

#[test]
fn resources_are_added_and_disabled() {
    let options = parse_ok(&[
        "--skill",
        "a",
        "--skill=b",
        "-ns",
        "-np",
        "--no-themes",
        "--theme",
        "t",
    ])
    .options;
    assert_eq!(options.skill, strings(&["a", "b"]));
    assert_eq!(options.theme, strings(&["t"]));
    assert!(options.no_skills && options.no_prompt_templates && options.no_themes);
    let options = parse_ok(&["--prompt-template", "p", "--no-prompt-templates"]).options;
    assert_eq!(options.prompt_template, strings(&["p"]));
    assert!(options.no_prompt_templates && !options.no_skills);
}

#[cfg(unix)]
#[test]
fn arguments_that_are_not_unicode_are_refused() {
    use std::os::unix::ffi::OsStringExt;
    let word = OsString::from_vec(b"@caf\xe9".to_vec());
    assert_eq!(
        parse([word].into_iter()),
        Err(vec![ArgumentError::NotUnicode("@caf\u{fffd}".into())])
    );
}
