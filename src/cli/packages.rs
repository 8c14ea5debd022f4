//! `pi install`, `remove`, `update` and `list`: manages packages without a session, and without
//! running their code.

use std::io::{self, IsTerminal};

use super::{CliError, output, paths, print_stderr, proxy, warn};
use pi_resources::packages::{
    ConfiguredPackage, Contents, Output, PackageError, Packages, UpdateOutcome,
};
use pi_resources::settings::{Settings, SettingsScope};
use pi_resources::source_info::SourceScope;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Command {
    Install,
    Remove,
    Update,
    List,
}

#[derive(Debug, PartialEq, Eq)]
struct PackageArgs {
    command: Command,
    sources: Vec<String>,
    local: bool,
    help: bool,
    /// The first option that the command does not have.
    unknown: Option<String>,
}

impl Command {
    fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "install" => Self::Install,
            "remove" | "uninstall" => Self::Remove,
            "update" => Self::Update,
            "list" => Self::List,
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Install => "install",
            Self::Remove => "remove",
            Self::Update => "update",
            Self::List => "list",
        }
    }

    fn usage(self) -> &'static str {
        match self {
            Self::Install => "pi install <source>... [-l]",
            Self::Remove => "pi remove <source>... [-l]",
            Self::Update => "pi update [source]...",
            Self::List => "pi list",
        }
    }

    fn has_local(self) -> bool {
        matches!(self, Self::Install | Self::Remove)
    }

    fn help(self) -> &'static str {
        match self {
            Self::Install => {
                "\
Fetches a package and adds it to the settings. What it brings is listed; its
extensions run when pi starts the next time. npm runs its install scripts.

Options:
  -l, --local    For this project only (.pi/settings.json)

Sources:
  npm:@foo/bar                    the newest version; npm:@foo/bar@1.2.3 stays at one
  git:github.com/user/repo        the default branch; with @v1 a branch, tag or commit
  git:git@github.com:user/repo    by ssh
  https://github.com/user/repo
  ./folder                        where it is; nothing is copied
"
            }
            Self::Remove => {
                "\
Removes a package from the disk and from the settings. Also: pi uninstall.
A local folder stays where it is.

Options:
  -l, --local    From this project's settings (.pi/settings.json)
"
            }
            Self::Update => {
                "\
Fetches the newest version of all packages, or of one. Packages whose source
names a version stay as they are.

Options:
  -a, --approve        Those of this project, too, also if it is not trusted
  -na, --no-approve    Not those of this project
"
            }
            Self::List => {
                "\
Lists the packages of the user's and this project's settings.

Options:
  -a, --approve        Those of this project, too, also if it is not trusted
  -na, --no-approve    Not those of this project
"
            }
        }
    }
}

/// Runs a package command and returns the exit code; `None` if the arguments name none.
pub fn run(args: &[String]) -> Result<Option<u8>, CliError> {
    let Some(parsed) = parse(args) else {
        return Ok(None);
    };
    let command = parsed.command;
    if parsed.help {
        output(&format!("Usage: {}\n\n{}", command.usage(), command.help()))?;
        return Ok(Some(0));
    }
    if let Some(option) = parsed.unknown {
        print_stderr(&format!(
            "Unknown option {option} for \"{}\".",
            command.name()
        ));
        print_stderr(&format!("Use \"pi --help\" or \"{}\".", command.usage()));
        return Ok(Some(1));
    }
    let needs_source = matches!(command, Command::Install | Command::Remove);
    let mut sources = parsed.sources;
    sources.retain(|source| !source.trim().is_empty());
    if needs_source && sources.is_empty() {
        print_stderr(&format!("Missing {} source.", command.name()));
        print_stderr(&format!("Usage: {}", command.usage()));
        return Ok(Some(1));
    }
    let paths = paths()?;
    proxy::apply_setting(&paths);
    let settings = Settings::load(&paths);
    for warning in settings.take_warnings() {
        warn(&warning.describe("package command"));
    }
    let scope = match parsed.local {
        true => SettingsScope::Project,
        false => SettingsScope::Global,
    };
    let progress = |text: &str| {
        // Errors of stdout do not stop the command.
        let _ = output(&dim(&format!("{text}\n")));
    };
    let packages = Packages::new(&paths, &settings, Output::Shown, &progress);
    let one = |source: Option<&str>| match (command, source) {
        (Command::Install, Some(source)) => install(&packages, source, scope),
        (Command::Remove, Some(source)) => remove(&packages, source, scope),
        (Command::Update, source) => update(&packages, source),
        _ => Ok(list(&packages)),
    };
    if sources.is_empty() || command == Command::List {
        return print_result(command, one(None)).map(Some);
    }
    for source in &sources {
        let code = print_result(command, one(Some(source)))?;
        if code != 0 {
            return Ok(Some(code));
        }
    }
    Ok(Some(0))
}

/// Prints the result and returns the exit code.
fn print_result(command: Command, done: Result<String, PackageError>) -> Result<u8, CliError> {
    match done {
        Ok(text) => {
            output(&text)?;
            return Ok(0);
        }
        Err(error @ PackageError::NotConfigured { .. }) if command == Command::Remove => {
            print_stderr(&error.to_string());
        }
        Err(error) => print_stderr(&format!("Error: {error}")),
    }
    Ok(1)
}

fn parse(args: &[String]) -> Option<PackageArgs> {
    let (first, rest) = args.split_first()?;
    let mut parsed = PackageArgs {
        command: Command::parse(first)?,
        sources: Vec::new(),
        local: false,
        help: false,
        unknown: None,
    };
    for arg in rest {
        match arg.as_str() {
            "-h" | "--help" => parsed.help = true,
            "-l" | "--local" if parsed.command.has_local() => parsed.local = true,
            // Options of the whole program, which `cli::run_subcommand` has applied.
            "--offline" | "-a" | "--approve" | "-na" | "--no-approve" => {}
            option if option.starts_with('-') => {
                parsed.unknown.get_or_insert_with(|| option.to_owned());
            }
            source => parsed.sources.push(source.to_owned()),
        }
    }
    Some(parsed)
}

fn install(
    packages: &Packages<'_>,
    source: &str,
    scope: SettingsScope,
) -> Result<String, PackageError> {
    let folder = packages.install(source, scope)?;
    let contents = Contents::read(&folder);
    Ok(format!("Installed {source}\nIt brings:\n{contents}\n"))
}

fn remove(
    packages: &Packages<'_>,
    source: &str,
    scope: SettingsScope,
) -> Result<String, PackageError> {
    packages.remove(source, scope)?;
    Ok(format!("Removed {source}\n"))
}

fn update(packages: &Packages<'_>, source: Option<&str>) -> Result<String, PackageError> {
    if pi_app::is_offline() {
        return Ok("Nothing was updated: pi is offline (PI_OFFLINE)\n".to_owned());
    }
    let mut lines = String::new();
    packages.update(source, |package, updated| {
        lines += &match updated {
            UpdateOutcome::Yes => String::new(),
            UpdateOutcome::Current => format!("{} is the newest already\n", package.source),
            UpdateOutcome::Pinned => {
                format!("{} stays: its source names a version\n", package.source)
            }
            UpdateOutcome::Local => format!("{} stays: it is a folder of yours\n", package.source),
        };
    })?;
    lines += &match source {
        Some(source) => format!("Updated {source}\n"),
        None => "Updated packages\n".to_owned(),
    };
    Ok(lines)
}

fn list(packages: &Packages<'_>) -> String {
    let configured = packages.configured();
    if configured.is_empty() {
        return dim("No packages installed.\n");
    }
    let mut blocks = Vec::new();
    for (scope, title) in [
        (SourceScope::User, "User packages:"),
        (SourceScope::Project, "Project packages:"),
    ] {
        let in_scope = configured.iter().filter(|package| package.scope == scope);
        let lines: String = in_scope.map(entry).collect();
        if !lines.is_empty() {
            blocks.push(format!("{title}\n{lines}"));
        }
    }
    blocks.join("\n")
}

fn entry(package: &ConfiguredPackage) -> String {
    let filtered = if package.filtered { " (filtered)" } else { "" };
    let location = match (&package.folder, &package.problem) {
        (Some(folder), _) => folder.display().to_string(),
        (None, Some(problem)) => problem.clone(),
        (None, None) => "not installed".to_owned(),
    };
    let location = location.replace('\n', "\n    ");
    format!(
        "  {}{filtered}\n{}",
        package.source,
        dim(&format!("    {location}\n"))
    )
}

/// Dims the text, where there are colours.
fn dim(text: &str) -> String {
    match io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none() {
        true => format!("\x1b[2m{}\x1b[0m\n", text.trim_end_matches('\n')),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Option<PackageArgs> {
        parse(
            &words
                .iter()
                .map(|word| (*word).to_owned())
                .collect::<Vec<_>>(),
        )
    }

    #[test]
    fn commands_and_their_options() {
        assert_eq!(parsed(&["hello", "install"]), None);
        assert_eq!(parsed(&[]), None);
        let install = parsed(&["install", "-l", "npm:a", "b", "--offline"]).unwrap();
        let expected = PackageArgs {
            command: Command::Install,
            sources: vec!["npm:a".into(), "b".into()],
            local: true,
            help: false,
            unknown: None,
        };
        assert_eq!(install, expected);
        assert_eq!(
            parsed(&["uninstall", "a"]).unwrap().command,
            Command::Remove
        );
        let list = parsed(&["list", "-l", "-x", "-h"]).unwrap();
        assert_eq!(list.unknown.as_deref(), Some("-l"), "the first is reported");
        assert!(list.help);
    }
}
