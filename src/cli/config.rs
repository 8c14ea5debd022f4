//! From what the command line says to what a session is started with.

use std::path::PathBuf;
use std::sync::Arc;

use super::args::{Arguments, Options, is_own_option};
use super::{CliError, Mode, complain};
use crate::ai::model::ThinkingLevel;
use crate::app::{AppConfig, KindFlags, ModelChoice, ResourceFlags, SessionTarget, ToolChoice};
use crate::resources::paths::{Paths, expand_tilde};
use crate::resources::prompt_files::PromptFlags;
use crate::resources::resource_paths::is_local_source;
use crate::tools;

/// It is a part of a file's name.
const LONGEST_ID: usize = 200;

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{option} cannot be combined with {others}")]
pub struct Conflict {
    option: &'static str,
    others: String,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "--session-id: \"{0}\" cannot be an id: use up to {LONGEST_ID} letters, digits, \".\", \"_\" and \
     \"-\", with a letter or a digit at both ends"
)]
pub struct InvalidId(String);

/// What is odd but no reason to stop goes to `warnings`.
pub fn build(
    arguments: &Arguments,
    paths: Paths,
    mode: Mode,
    warnings: &mut Vec<String>,
) -> Result<AppConfig, CliError> {
    let options = &arguments.options;
    Ok(AppConfig {
        mode: mode.name(),
        has_ui: mode.has_ui(),
        session: session_target(options)?,
        session_id: session_id(options)?,
        session_name: given(&options.name)
            .map(str::trim)
            .filter(|name| !name.is_empty())
            .map(str::to_string),
        continue_here: false,
        session_dir: session_dir(options, &paths),
        model: ModelChoice {
            provider: given(&options.provider).map(str::to_string),
            model: given(&options.model).map(str::to_string),
            thinking: thinking(options, warnings),
            scope: options.models.as_deref().map_or_else(Vec::new, list),
            api_key: given(&options.api_key).map(str::to_string),
        },
        tools: tool_choice(options, warnings),
        prompt: PromptFlags {
            system: options.system_prompt.clone(),
            append: options.append_system_prompt.clone(),
        },
        no_context_files: options.no_context_files,
        extensions: extensions(options, &paths),
        discover_extensions: !options.no_extensions,
        resources: resource_flags(options, &paths),
        flags: arguments.flags.clone(),
        is_own_option,
        console: mode.console(),
        fetch_packages: !crate::app::is_offline(),
        progress: Arc::new(complain),
        paths,
    })
}

/// An empty value, as of a variable that is not set, is none.
fn given(option: &Option<String>) -> Option<&str> {
    option.as_deref().filter(|text| !text.is_empty())
}

fn session_target(options: &Options) -> Result<SessionTarget, Conflict> {
    let session = given(&options.session);
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
    if given(&options.session_id).is_some() {
        alone("--session-id", &others[..3])?;
    }
    if let Some(fork) = given(&options.fork) {
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

/// As newer versions of the original want them: the id is a part of the file's name.
fn session_id(options: &Options) -> Result<Option<String>, InvalidId> {
    let Some(id) = &options.session_id else {
        return Ok(None);
    };
    let is_inner = |one: char| one.is_ascii_alphanumeric() || ".-_".contains(one);
    let ends_well = |one: Option<char>| one.is_some_and(|one| one.is_ascii_alphanumeric());
    let mut characters = id.chars();
    match id.len() <= LONGEST_ID
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
    let dir = given(&options.session_dir).or(given(&from_env))?;
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

fn tool_choice(options: &Options, warnings: &mut Vec<String>) -> ToolChoice {
    let mut choice = ToolChoice {
        none: options.no_tools,
        except: options.exclude_tools.as_deref().map_or_else(Vec::new, list),
        ..ToolChoice::default()
    };
    let Some(names) = options.tools.as_deref().map(list) else {
        return choice;
    };
    if names.is_empty() {
        warnings.push("--tools names none: the model has no tools".to_owned());
    } else if names.iter().all(|name| name.starts_with(['+', '-'])) {
        choice.changes = names;
        return choice;
    }
    let mut only: Vec<String> = Vec::new();
    for name in names {
        if !tools::NAMES.contains(&name.as_str()) {
            let valid = tools::NAMES.join(", ");
            warnings.push(format!("Unknown tool \"{name}\". Valid tools: {valid}"));
        } else if !only.contains(&name) {
            only.push(name);
        }
    }
    choice.only = Some(only);
    choice
}

/// A session may work elsewhere: what is a path is one from here.
fn extensions(options: &Options, paths: &Paths) -> Vec<String> {
    let absolute = |source: &String| match is_local_source(source) {
        true => paths.resolve(source, &paths.cwd).display().to_string(),
        false => source.clone(),
    };
    options.extension.iter().map(absolute).collect()
}

fn resource_flags(options: &Options, paths: &Paths) -> ResourceFlags {
    let of_kind = |named: &[String], only_named| {
        // A session may work elsewhere: what is a path is one from here.
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

    fn good(words: &[&str]) -> Built {
        try_build(Path::new("/nonexistent"), words).unwrap()
    }

    fn bad(words: &[&str]) -> String {
        match try_build(Path::new("/nonexistent"), words) {
            Ok(_) => panic!("{words:?} is wrong"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn one_session_is_meant() {
        let target = |words: &[&str]| good(words).config.session;
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
            bad(&["--fork", "a", "-c", "--no-session", "--session", "b"]),
            "--fork cannot be combined with --session, --continue, --no-session"
        );
        let exact = good(&["--session-id", "a.b-1", "--fork", "x", "-n", "Mine"]).config;
        assert_eq!(exact.session_id.as_deref(), Some("a.b-1"));
        assert_eq!(exact.session_name.as_deref(), Some("Mine"));
        assert_eq!(
            bad(&["--session-id", "a", "-r"]),
            "--session-id cannot be combined with --resume"
        );
        for wrong in ["", "../x", "a b", "-a", "a.", &"a".repeat(201)] {
            let error = bad(&["--session-id", wrong]);
            assert!(error.contains("cannot be an id"), "{error}");
        }
    }

    #[test]
    fn an_empty_value_is_none() {
        let config = good(&[
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
    fn a_wrong_thinking_level_is_only_a_warning() {
        let built = good(&["--thinking", "high"]);
        assert_eq!(built.config.model.thinking, Some(ThinkingLevel::High));
        assert_eq!(built.warnings, Vec::<String>::new());
        let built = good(&["--thinking", "hard"]);
        assert_eq!(built.config.model.thinking, None);
        assert_eq!(
            built.warnings,
            [
                "Invalid thinking level \"hard\". Valid values: off, minimal, low, medium, high, xhigh, max"
            ]
        );
    }

    #[test]
    fn tools_that_nobody_knows_are_named() {
        let built = good(&["--tools", "ls, bsh,bash,grep,find,ls"]);
        let only = ["ls", "bash", "grep", "find"].map(str::to_string);
        let only = Some(only.to_vec());
        assert_eq!(
            built.config.tools,
            ToolChoice {
                only,
                ..ToolChoice::default()
            }
        );
        assert_eq!(
            built.warnings,
            ["Unknown tool \"bsh\". Valid tools: read, bash, edit, write, grep, find, ls"]
        );
        assert_eq!(
            good(&["--tools", " "]).warnings,
            ["--tools names none: the model has no tools"]
        );
        let none = ToolChoice {
            none: true,
            ..ToolChoice::default()
        };
        for words in ["--no-tools", "--no-builtin-tools", "-nbt"] {
            assert_eq!(good(&[words]).config.tools, none, "{words}");
        }
        let except = good(&["-xt", "bash, mine"]).config.tools.except;
        assert_eq!(except, ["bash", "mine"]);
    }

    #[test]
    fn paths_count_from_here_or_home() {
        let config = good(&["-e", "./x/../a.ts", "-e", "~/b.ts", "-e", "npm:c"]).config;
        assert_eq!(config.extensions, ["/work/a.ts", "/home/u/b.ts", "npm:c"]);
        let config = good(&["--session-dir", "~/s"]).config;
        assert_eq!(config.session_dir.as_deref(), Some(Path::new("/home/u/s")));
    }

    #[test]
    fn the_rest_is_handed_on() {
        let config = good(&[
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
        assert_eq!((config.mode, config.has_ui), ("print", false));
    }
}
