//! Converts the command line to the configuration of a session.

use std::path::PathBuf;
use std::sync::Arc;

use super::args::{Arguments, Options, is_own_option};
use super::{CliError, print_stderr};
use pi_ai::model::ThinkingLevel;
use pi_app::{AppConfig, KindFlags, Mode, ModelChoice, ResourceFlags, SessionTarget, ToolChoice};
use pi_extensions::OwnNames;
use pi_modes::line::is_own_command;
use pi_resources::discovery::is_local_source;
use pi_resources::paths::{Paths, expand_tilde};
use pi_resources::prompts::system_prompt_files::PromptFlags;

/// Maximum bytes of a session id, which is part of a file name.
const MAX_ID_BYTES: usize = 200;

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{option} cannot be combined with {others}")]
pub struct Conflict {
    option: &'static str,
    others: String,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "--session-id: \"{0}\" cannot be an id: use up to {MAX_ID_BYTES} letters, digits, \".\", \"_\" and \
     \"-\", with a letter or a digit at both ends"
)]
pub struct InvalidId(String);

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolListError {
    #[error(
        "--tools: names cannot be mixed with +name and -name. Give the names of all tools, or \
         only what changes"
    )]
    Mixed,
    #[error("--tools: +name and -name take whole names, not patterns: {0}")]
    Pattern(String),
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("--use-theme needs the name of a theme, not \"{0}\"")]
pub struct NoTheme(String);

/// Builds the configuration. Problems that are no reason to stop are added to `warnings`.
pub fn build(
    arguments: &Arguments,
    paths: Paths,
    mode: Mode,
    warnings: &mut Vec<String>,
) -> Result<AppConfig, CliError> {
    let options = &arguments.options;
    Ok(AppConfig {
        mode,
        has_ui: mode.has_ui(),
        session: session_target(options)?,
        session_id: session_id(options)?,
        session_name: non_empty(&options.name)
            .map(str::trim)
            .filter(|name| !name.is_empty())
            .map(str::to_string),
        continue_here: false,
        session_dir: session_dir(options, &paths),
        model: ModelChoice {
            provider: non_empty(&options.provider).map(str::to_string),
            model: non_empty(&options.model).map(str::to_string),
            thinking: thinking(options, warnings),
            scope: options.models.as_deref().map_or_else(Vec::new, list),
            api_key: non_empty(&options.api_key).map(str::to_string),
        },
        tools: tool_choice(options, warnings)?,
        theme: theme(options)?,
        prompt: PromptFlags {
            system: options.system_prompt.clone(),
            append: options.append_system_prompt.clone(),
        },
        no_context_files: options.no_context_files,
        extensions: extensions(options, &paths),
        discover_extensions: !options.no_extensions,
        resources: resource_flags(options, &paths),
        flags: arguments.flags.clone(),
        own_names: OWN_NAMES,
        console: super::console(mode),
        fetch_packages: !pi_app::is_offline(),
        progress: Arc::new(print_stderr),
        paths,
    })
}

/// Names of pi that extensions should not use.
pub const OWN_NAMES: OwnNames = OwnNames {
    is_option: is_own_option,
    is_command: is_own_command,
    tools: &pi_tools::NAMES,
};

/// Returns the value of an option. An empty value, as of an unset variable, is `None`.
fn non_empty(option: &Option<String>) -> Option<&str> {
    option.as_deref().filter(|text| !text.is_empty())
}

fn session_target(options: &Options) -> Result<SessionTarget, Conflict> {
    let session = non_empty(&options.session);
    let others = [
        (session.is_some(), "--session"),
        (options.continue_, "--continue"),
        (options.resume, "--resume"),
        (options.no_session, "--no-session"),
    ];
    let alone = |option, others: &[(bool, &str)]| {
        let given = others.iter().filter(|(given, _)| *given);
        let names: Vec<&str> = given.map(|(_, name)| *name).collect();
        match names.as_slice() {
            [] => Ok(()),
            names => Err(Conflict {
                option,
                others: names.join(", "),
            }),
        }
    };
    if non_empty(&options.session_id).is_some() {
        alone("--session-id", &others[..3])?;
    }
    if let Some(fork) = non_empty(&options.fork) {
        alone("--fork", &others)?;
        return Ok(SessionTarget::ForkOf(fork.to_string()));
    }
    Ok(match session {
        _ if options.no_session => SessionTarget::InMemory,
        Some(session) => SessionTarget::Named(session.to_string()),
        None if options.continue_ => SessionTarget::Recent,
        None => SessionTarget::New,
    })
}

/// Checks the session id by the rules of newer versions of the original.
fn session_id(options: &Options) -> Result<Option<String>, InvalidId> {
    let Some(id) = &options.session_id else {
        return Ok(None);
    };
    let is_inner = |one: char| one.is_ascii_alphanumeric() || ".-_".contains(one);
    let ends_well = |one: Option<char>| one.is_some_and(|one| one.is_ascii_alphanumeric());
    let mut characters = id.chars();
    match id.len() <= MAX_ID_BYTES
        && characters.clone().all(is_inner)
        && ends_well(characters.next())
        && ends_well(id.chars().next_back())
    {
        true => Ok(Some(id.to_string())),
        false => Err(InvalidId(id.to_string())),
    }
}

fn session_dir(options: &Options, paths: &Paths) -> Option<PathBuf> {
    let from_env = std::env::var("PI_CODING_AGENT_SESSION_DIR").ok();
    let dir = non_empty(&options.session_dir).or(non_empty(&from_env))?;
    Some(expand_tilde(dir, &paths.home))
}

fn thinking(options: &Options, warnings: &mut Vec<String>) -> Option<ThinkingLevel> {
    let text = options.thinking.as_deref()?;
    let level = ThinkingLevel::parse(text);
    if level.is_none() {
        let names = ThinkingLevel::ALL.map(ThinkingLevel::as_str).join(", ");
        warnings.push(format!(
            "Invalid thinking level \"{text}\". Valid values: {names}"
        ));
    }
    level
}

/// Parses `--tools`, which is a list of names and patterns, or one of changes to the usual
/// selection.
fn tool_choice(options: &Options, warnings: &mut Vec<String>) -> Result<ToolChoice, ToolListError> {
    let mut choice = ToolChoice {
        no_builtin: options.no_builtin_tools,
        no_others: options.no_tools,
        except: options.exclude_tools.as_deref().map_or_else(Vec::new, list),
        ..ToolChoice::default()
    };
    let entries = options.tools.as_deref().map(list);
    let entries = match entries {
        Some(entries) => entries,
        None => {
            choice.only = options.no_tools.then(Vec::new);
            return Ok(choice);
        }
    };
    if entries.is_empty() {
        warnings.push("--tools names none: the model has no tools".to_owned());
    }
    let is_change = |entry: &&String| entry.starts_with(['+', '-']);
    let changes = entries.iter().filter(is_change).count();
    if changes == 0 {
        (choice.only, choice.no_others) = (Some(entries), true);
    } else if changes < entries.len() {
        return Err(ToolListError::Mixed);
    } else if let Some(pattern) = entries.iter().find(|entry| entry.contains('*')) {
        return Err(ToolListError::Pattern(pattern.clone()));
    } else if options.no_tools {
        let added = entries.iter().filter_map(|entry| entry.strip_prefix('+'));
        choice.only = Some(added.map(str::to_owned).collect());
    } else {
        choice.changes = entries;
    }
    Ok(choice)
}

/// Returns the theme of `--use-theme`. The next option is not accepted as a name.
fn theme(options: &Options) -> Result<Option<String>, NoTheme> {
    match &options.use_theme {
        Some(name) if name.is_empty() || name.starts_with('-') => Err(NoTheme(name.clone())),
        name => Ok(name.clone()),
    }
}

/// Returns the sources of `--extension`. Paths are made absolute here, because the session may work
/// in another folder.
fn extensions(options: &Options, paths: &Paths) -> Vec<String> {
    let absolute = |source: &String| match is_local_source(source) {
        true => paths.resolve(source, &paths.cwd).display().to_string(),
        false => source.clone(),
    };
    options.extension.iter().map(absolute).collect()
}

fn resource_flags(options: &Options, paths: &Paths) -> ResourceFlags {
    let of_kind = |named: &[String], only_named| {
        // The session may work in another folder.
        let absolute = |path: &String| paths.resolve(path, &paths.cwd).display().to_string();
        KindFlags {
            named: named.iter().map(absolute).collect(),
            only_named,
        }
    };
    ResourceFlags {
        skills: of_kind(&options.skill, options.no_skills),
        prompts: of_kind(&options.prompt_template, options.no_prompt_templates),
        themes: of_kind(&options.theme, options.no_themes),
    }
}

fn list(text: &str) -> Vec<String> {
    let parts = text.split(',').map(str::trim);
    parts
        .filter(|part| !part.is_empty())
        .map(str::to_string)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::path::Path;

    use super::super::args;
    use super::*;

    struct Built {
        config: AppConfig,
        warnings: Vec<String>,
    }

    fn try_build(agent_dir: &Path, words: &[&str]) -> Result<Built, CliError> {
        let arguments = args::parse(words.iter().map(OsString::from)).unwrap();
        let paths = Paths {
            home: "/home/u".into(),
            agent_dir: agent_dir.to_owned(),
            cwd: "/work".into(),
            distrust: None,
        };
        let mut warnings = Vec::new();
        let config = build(&arguments, paths, Mode::Print, &mut warnings)?;
        Ok(Built { config, warnings })
    }

    fn build_ok(words: &[&str]) -> Built {
        try_build(Path::new("/nonexistent"), words).unwrap()
    }

    fn build_error(words: &[&str]) -> String {
        match try_build(Path::new("/nonexistent"), words) {
            Ok(_) => panic!("{words:?} is wrong"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn one_session_is_selected() {
        let target = |words: &[&str]| build_ok(words).config.session;
        assert_eq!(target(&[]), SessionTarget::New);
        assert_eq!(target(&["-c"]), SessionTarget::Recent);
        assert_eq!(
            target(&["-c", "--session", "ab"]),
            SessionTarget::Named("ab".into())
        );
        assert_eq!(
            target(&["-c", "--session", "ab", "--no-session"]),
            SessionTarget::InMemory
        );
        assert_eq!(
            target(&["--fork", "ab"]),
            SessionTarget::ForkOf("ab".into())
        );
        assert_eq!(
            build_error(&["--fork", "a", "-c", "--no-session", "--session", "b"]),
            "--fork cannot be combined with --session, --continue, --no-session"
        );
        let exact = build_ok(&["--session-id", "a.b-1", "--fork", "x", "-n", "Mine"]).config;
        assert_eq!(exact.session_id.as_deref(), Some("a.b-1"));
        assert_eq!(exact.session_name.as_deref(), Some("Mine"));
        assert_eq!(
            build_error(&["--session-id", "a", "-r"]),
            "--session-id cannot be combined with --resume"
        );
        for wrong in ["", "../x", "a b", "-a", "a.", &"a".repeat(201)] {
            let error = build_error(&["--session-id", wrong]);
            assert!(error.contains("cannot be an id"), "{error}");
        }
    }

    #[test]
    fn an_empty_value_is_none() {
        let config = build_ok(&[
            "--session",
            "",
            "--fork=",
            "--session-dir",
            "",
            "--provider",
            "",
            "--model",
            "",
            "--api-key",
            "",
        ])
        .config;
        assert_eq!(config.session, SessionTarget::New);
        assert_eq!(config.session_dir, None);
        let model = config.model;
        assert_eq!(
            (model.provider, model.model, model.api_key),
            (None, None, None)
        );
    }

    #[test]
    fn a_wrong_thinking_level_is_a_warning() {
        let built = build_ok(&["--thinking", "high"]);
        assert_eq!(built.config.model.thinking, Some(ThinkingLevel::High));
        assert_eq!(built.warnings, Vec::<String>::new());
        let built = build_ok(&["--thinking", "hard"]);
        assert_eq!(built.config.model.thinking, None);
        assert_eq!(
            built.warnings,
            [
                "Invalid thinking level \"hard\". Valid values: off, minimal, low, medium, high, xhigh, max"
            ]
        );
    }

    #[test]
    fn tools_are_listed_or_changed() {
        let tools = |words: &[&str]| build_ok(words).config.tools;
        let strings = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let listed = |names: &[&str]| ToolChoice {
            only: Some(strings(names)),
            no_others: true,
            ..ToolChoice::default()
        };
        let changed = |changes: &[&str]| ToolChoice {
            changes: strings(changes),
            ..ToolChoice::default()
        };
        let no_builtin = |choice| ToolChoice {
            no_builtin: true,
            ..choice
        };
        for short in ["-t", "--tools"] {
            assert_eq!(tools(&[short, "ls, mcp__*"]), listed(&["ls", "mcp__*"]));
        }
        assert_eq!(tools(&["-t", " "]), listed(&[]));
        assert_eq!(tools(&["-t", "+ls,-bash"]), changed(&["+ls", "-bash"]));
        for none in ["-nt", "--no-tools"] {
            assert_eq!(tools(&[none]), listed(&[]));
            assert_eq!(tools(&[none, "-t", "ls"]), listed(&["ls"]));
            assert_eq!(tools(&[none, "-t", "+ls,-bash"]), listed(&["ls"]));
        }
        for none in ["-nbt", "--no-builtin-tools"] {
            assert_eq!(tools(&[none]), no_builtin(changed(&[])));
            assert_eq!(tools(&[none, "-t", "+ls"]), no_builtin(changed(&["+ls"])));
        }
        assert_eq!(tools(&["-xt", "bash, mine_*"]).except, ["bash", "mine_*"]);
        assert_eq!(
            build_error(&["-t", "ls,+bash"]),
            "--tools: names cannot be mixed with +name and -name. Give the names of all tools, or \
             only what changes"
        );
        assert_eq!(
            build_error(&["-t", "+ls,-mcp__*"]),
            "--tools: +name and -name take whole names, not patterns: -mcp__*"
        );
    }

    #[test]
    fn use_theme_needs_a_name() {
        let theme = |words: &[&str]| build_ok(words).config.theme;
        assert_eq!(theme(&[]), None);
        assert_eq!(theme(&["--use-theme", "light"]).as_deref(), Some("light"));
        assert_eq!(
            build_error(&["--use-theme", "-p"]),
            "--use-theme needs the name of a theme, not \"-p\""
        );
    }

    #[test]
    fn paths_are_relative_to_cwd_or_home() {
        let config = build_ok(&["-e", "./x/../a.ts", "-e", "~/b.ts", "-e", "npm:c"]).config;
        assert_eq!(config.extensions, ["/work/a.ts", "/home/u/b.ts", "npm:c"]);
        let config = build_ok(&["--session-dir", "~/s"]).config;
        assert_eq!(config.session_dir.as_deref(), Some(Path::new("/home/u/s")));
    }

    #[test]
    fn other_options_are_passed_on() {
        let config = build_ok(&[
            "--models",
            "a/*, b:high,",
            "--api-key",
            "k",
            "--system-prompt",
            "s",
            "--append-system-prompt",
            "t",
            "-nc",
            "-ne",
            "--plan",
            "-p",
        ])
        .config;
        assert_eq!(config.model.scope, ["a/*", "b:high"]);
        assert_eq!(config.model.api_key.as_deref(), Some("k"));
        let prompt = PromptFlags {
            system: Some("s".into()),
            append: vec!["t".into()],
        };
        assert_eq!(config.prompt, prompt);
        assert!(config.no_context_files);
        assert!(!config.discover_extensions);
        assert_eq!(config.flags, [("plan".to_string(), None)]);
        assert_eq!((config.mode, config.has_ui), (Mode::Print, false));
    }
}
