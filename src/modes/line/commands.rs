//! The slash commands of line mode; extensions add others. Operations on the session become
//! commands of the session.

use std::sync::Arc;

use super::outcome::describe;
use super::sanitize::{counted, extension_name, one_line};
use super::session_commands;
use pi_ai::model::{Model, ThinkingLevel};
use pi_app::{
    AgentSession, ImmediateCommand, ModelChangeSource, ModelReference, SessionCommand, SessionStats,
};
use pi_extensions::registry::inventory::LoadState;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    Reload(String),
    Extensions,
    New,
    Model(String),
    Session,
    Thinking(String),
    Name(String),
    Compact(String),
    Tree(String),
    Resume(String),
    Fork(String),
    Clone,
    Export(String),
    Import(String),
    Login(String),
    Logout(String),
    Shortcut(String),
    Trust,
    Help,
    Quit,
}

/// Name, arguments and description of each command.
pub const COMMANDS: [(&str, &str, &str); 20] = [
    ("help", "", "shows this"),
    ("model", "[pattern]", "lists the models, or chooses one"),
    (
        "thinking",
        "[level]",
        "shows or sets how hard the model thinks",
    ),
    (
        "session",
        "",
        "shows the session's file, messages, tokens and cost",
    ),
    ("name", "[text]", "shows or sets the session's name"),
    (
        "compact",
        "[focus]",
        "puts a summary in the place of the older messages",
    ),
    (
        "tree",
        "[id]",
        "lists the branches of the session, or goes to an entry",
    ),
    ("new", "", "begins a new session"),
    ("resume", "[words]", "chooses a session to go on with"),
    (
        "fork",
        "[number]",
        "begins a new session before one of your messages",
    ),
    ("clone", "", "goes on in a copy of this session"),
    (
        "export",
        "[path]",
        "makes an HTML page of the session, or a copy with .jsonl",
    ),
    ("import", "<path.jsonl>", "goes on with a session of a file"),
    (
        "extensions",
        "",
        "lists the extensions and which version of each serves",
    ),
    ("login", "[provider]", "signs in to a subscription"),
    ("logout", "[provider]", "forgets a sign-in or a stored key"),
    (
        "shortcut",
        "[key]",
        "lists the keys of extensions, or does what one does",
    ),
    ("trust", "", "asks again whether this folder is trusted"),
    (
        "reload",
        "[extension]",
        "loads settings, models and extensions again, and a quarantined extension",
    ),
    ("quit", "", "ends pi"),
];

/// The text that a command prints; `Err` is printed as an error.
pub type CommandOutput = Result<String, String>;

/// Whether line mode has a command of this name, given without the slash.
pub fn is_own_command(name: &str) -> bool {
    parse(&format!("/{name}")).is_some()
}

/// Parses a command line. `None` if it is no command of line mode.
pub fn parse(line: &str) -> Option<Command> {
    let line = line.trim_end().strip_prefix('/')?;
    let (name, args) = line.split_once(' ').unwrap_or((line, ""));
    let args = args.trim().to_string();
    Some(match name {
        "help" => Command::Help,
        "model" => Command::Model(args),
        "thinking" => Command::Thinking(args),
        "session" => Command::Session,
        "name" => Command::Name(args),
        "compact" => Command::Compact(args),
        "tree" => Command::Tree(args),
        "new" => Command::New,
        "resume" => Command::Resume(args),
        "fork" => Command::Fork(args),
        "clone" => Command::Clone,
        "export" => Command::Export(args),
        "import" => Command::Import(args),
        "login" => Command::Login(args),
        "logout" => Command::Logout(args),
        "shortcut" => Command::Shortcut(args),
        "trust" => Command::Trust,
        "reload" => Command::Reload(args),
        "extensions" => Command::Extensions,
        "quit" => Command::Quit,
        _ => return None,
    })
}

pub async fn run(session: &Arc<AgentSession>, command: Command) -> CommandOutput {
    match command {
        Command::Reload(release) => {
            let release = Some(release).filter(|name| !name.is_empty());
            execute(session, SessionCommand::Reload { release }).await
        }
        Command::Extensions => Ok(list_extensions(session)),
        Command::New => execute(session, SessionCommand::NewSession { parent: None }).await,
        Command::Model(pattern) if pattern.is_empty() => Ok(list_models(session)),
        Command::Model(pattern) => set_model(session, &pattern).await,
        Command::Session => Ok(describe_session(session)),
        Command::Thinking(level) => set_thinking(session, &level),
        Command::Name(name) if name.is_empty() => Ok(match session.state().session_name {
            Some(name) => format!("Session name: {}", one_line(&name)),
            None => "The session has no name; /name <text> gives it one.".to_string(),
        }),
        Command::Name(name) => {
            execute(session, SessionCommand::SetName(name.clone())).await?;
            Ok(format!("Session name: {}", one_line(&name)))
        }
        Command::Export(path) => session_commands::export(session, &path).await,
        Command::Resume(query) => session_commands::resume(session, &query).await,
        Command::Fork(number) => session_commands::fork(session, &number).await,
        Command::Clone => session_commands::clone(session).await,
        Command::Import(path) => session_commands::import(session, &path).await,
        Command::Login(provider) => super::sign_in::login(session, &provider).await,
        Command::Logout(provider) => super::sign_in::logout(session, &provider).await,
        Command::Compact(focus) => {
            let focus = Some(focus).filter(|focus| !focus.is_empty());
            // An event reports the result.
            let _ = session.execute(SessionCommand::Compact { focus }).await;
            Ok(String::new())
        }
        Command::Tree(args) => super::tree::run(session, &args).await,
        Command::Shortcut(key) => super::shortcuts::run(session, &key).await,
        Command::Trust => execute(session, SessionCommand::AskTrust).await,
        Command::Help => Ok(help(session)),
        Command::Quit => Ok(String::new()),
    }
}

/// Executes a command of the session, and describes its outcome.
pub(super) async fn execute(session: &AgentSession, command: SessionCommand) -> CommandOutput {
    let outcome = session.execute(command).await?;
    Ok(describe(session, outcome))
}

/// A line about the session, such as
/// `pi 0.87.1+rs.0.1.0, demo/demo, session 0199, 2 extensions`.
pub fn header(session: &AgentSession) -> String {
    let state = session.state();
    let model = match &state.model {
        Some(model) => model.reference(),
        None => "no model".to_string(),
    };
    let short: String = state.session_id.chars().take(8).collect();
    let name = match &state.session_name {
        Some(name) => format!(" \"{}\"", one_line(name)),
        None => String::new(),
    };
    let before = match state.message_count {
        0 => String::new(),
        count => format!(" ({})", counted(count, "message", "messages")),
    };
    let report = session.load_report();
    let extensions = report.loaded.len() + report.kept.len();
    format!(
        "pi {}, {model}, session {short}{name}{before}, {}. /help lists the commands.",
        pi_base::VERSION,
        counted(extensions, "extension", "extensions")
    )
}

/// Lists the extensions, one per line, with the reason if the files of one do not load.
fn list_extensions(session: &AgentSession) -> String {
    let lines = session.extensions().describe().into_iter().map(|one| {
        let state = match one.state {
            LoadState::Loaded => "loaded",
            LoadState::Kept => "kept in its last good version",
            LoadState::Failed => "failed",
        };
        let reason = one.error.map(|error| {
            let error = error.to_string();
            format!(": {}", one_line(error.lines().next().unwrap_or_default()))
        });
        let name = one_line(&one.name.name);
        format!("  {name}  {state}{}", reason.unwrap_or_default())
    });
    let lines: Vec<String> = lines.collect();
    match lines.is_empty() {
        true => "There are no extensions.".to_string(),
        false => lines.join("\n"),
    }
}

/// The available models, the current model and the demo model.
pub(super) fn usable_models(session: &AgentSession) -> Vec<Arc<Model>> {
    let mut models = session.models().available();
    let demo = session.models().find("demo", "demo");
    for model in session.model().into_iter().chain(demo) {
        if !models
            .iter()
            .any(|known| known.reference() == model.reference())
        {
            models.push(model);
        }
    }
    models
}

fn list_models(session: &AgentSession) -> String {
    let models = usable_models(session);
    let current = session.model().map(|model| model.reference());
    let line = |model: &Arc<Model>| {
        let reference = model.reference();
        match current.as_ref() == Some(&reference) {
            true => format!("  {reference} (in use)"),
            false => format!("  {reference}"),
        }
    };
    let mut lines: Vec<String> = models.iter().map(line).collect();
    lines.push("/model <pattern> chooses one.".to_string());
    lines.join("\n")
}

async fn set_model(session: &AgentSession, pattern: &str) -> CommandOutput {
    let found = find_models(usable_models(session), pattern);
    match found.as_slice() {
        [] => Err(format!(
            "no model matches \"{}\"; /model lists those that can be used",
            one_line(pattern)
        )),
        [model] => {
            let model = ModelReference::Named {
                provider: model.provider.clone(),
                id: model.id.clone(),
            };
            let source = ModelChangeSource::Set;
            execute(session, SessionCommand::SetModel { model, source }).await
        }
        many => {
            let names: Vec<String> = many.iter().map(|model| model.reference()).collect();
            Ok(format!(
                "{} models match; say more of the name:\n  {}",
                many.len(),
                names.join("\n  ")
            ))
        }
    }
}

/// Returns the model with exactly this name or id, or all models whose name contains it.
fn find_models(models: Vec<Arc<Model>>, pattern: &str) -> Vec<Arc<Model>> {
    let wanted = pattern.to_lowercase();
    let named: Vec<Arc<Model>> = models
        .iter()
        .filter(|model| {
            model.reference().to_lowercase() == wanted || model.id.to_lowercase() == wanted
        })
        .cloned()
        .collect();
    if let [_] = named.as_slice() {
        return named;
    }
    let holds = |model: &Arc<Model>| {
        let name = format!("{} {}", model.reference(), model.name).to_lowercase();
        name.contains(&wanted)
    };
    models.into_iter().filter(holds).collect()
}

fn set_thinking(session: &AgentSession, level: &str) -> CommandOutput {
    let levels = match session.model() {
        Some(model) => model.thinking_levels(),
        None => ThinkingLevel::ALL.to_vec(),
    };
    let names: Vec<&str> = levels.iter().map(|level| level.as_str()).collect();
    if level.is_empty() {
        return Ok(format!(
            "Thinking: {} (of {})",
            session.thinking_level().as_str(),
            names.join(", ")
        ));
    }
    let parsed = ThinkingLevel::parse(&level.to_lowercase()).ok_or_else(|| {
        format!(
            "there is no level \"{}\": {}",
            one_line(level),
            names.join(", ")
        )
    })?;
    session.execute_now(ImmediateCommand::SetThinkingLevel(parsed))?;
    let now = session.thinking_level();
    Ok(match now == parsed {
        true => format!("Thinking: {}", now.as_str()),
        false => format!(
            "Thinking: {} (the model does not offer {})",
            now.as_str(),
            parsed.as_str()
        ),
    })
}

fn describe_session(session: &AgentSession) -> String {
    let state = session.state();
    let stats = session.stats();
    let file = match &stats.session_file {
        Some(file) => file.clone(),
        None => "none, it is in memory only".to_string(),
    };
    let mut lines = vec![format!("File: {file}"), format!("Id: {}", stats.session_id)];
    if let Some(name) = &state.session_name {
        lines.push(format!("Name: {}", one_line(name)));
    }
    if let Some(model) = &state.model {
        let thinking = state.thinking_level.as_str();
        lines.push(format!("Model: {}, thinking {thinking}", model.reference()));
    }
    lines.extend(usage(&stats));
    lines.join("\n")
}

fn usage(stats: &SessionStats) -> Vec<String> {
    let tokens = &stats.tokens;
    let mut lines = vec![
        format!(
            "Messages: {} ({} from you, {}, {})",
            stats.total_messages,
            stats.user_messages,
            counted(stats.assistant_messages, "answer", "answers"),
            counted(stats.tool_calls, "tool call", "tool calls"),
        ),
        format!(
            "Tokens: {} in, {} out, {} read from cache, {} written to cache, {} in all",
            tokens.input, tokens.output, tokens.cache_read, tokens.cache_write, tokens.total
        ),
        format!("Cost: ${:.4}", stats.cost),
    ];
    if let Some(usage) = &stats.context_usage {
        let filled = match (usage.tokens, usage.percent) {
            (Some(tokens), Some(percent)) => format!(
                "{tokens} of {} tokens, {percent:.1} %",
                usage.context_window
            ),
            _ => format!("not known yet, of {} tokens", usage.context_window),
        };
        lines.push(format!("Context: {filled}"));
    }
    lines
}

fn help(session: &AgentSession) -> String {
    let mut lines: Vec<String> = COMMANDS
        .iter()
        .map(|(name, args, what)| {
            let call = format!("/{name} {args}");
            format!("{:<20} {what}", call.trim_end())
        })
        .collect();
    for (command, info) in session.extensions().commands() {
        let from = extension_name(&info.path);
        let what = command.command.description.as_deref().map(one_line);
        let what = what.unwrap_or_default();
        let call = format!("/{}", one_line(&command.name));
        lines.push(format!("{call:<20} {what} [{from}]"));
    }
    lines.extend(
        [
            "!command             runs a shell command and adds its output to the context; !!command does not",
            "Tab completes commands, Alt-Enter begins another line, Up goes back in history.",
            "While the agent works, type a message and Enter: it reads it after this turn.",
            "Escape or Ctrl-C aborts; Ctrl-D, or Ctrl-C twice, quits.",
        ]
        .map(str::to_string),
    );
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_commands_are_parsed() {
        let cases = [
            ("/model  opus ", Some(Command::Model("opus".into()))),
            ("/model", Some(Command::Model(String::new()))),
            ("/name my session", Some(Command::Name("my session".into()))),
            ("/quit", Some(Command::Quit)),
            ("/models", None),
            ("/hello world", None),
            ("model", None),
            (" /quit", None),
        ];
        for (line, expected) in cases {
            assert_eq!(parse(line), expected, "{line}");
        }
        for (name, _, _) in COMMANDS {
            assert!(parse(&format!("/{name}")).is_some(), "{name}");
        }
    }
}
