//! `pi install`, `remove`, `update` and `list`: manages packages without a session, and without
//! running their code.

use std::io::{self, BufRead, IsTerminal};

use super::{CliError, output, paths, print_stderr, proxy, warn};
use pi_packages::{
    Changes, ConfiguredPackage, Confirm, Contents, InstallOptions, InstalledPackage, Output,
    PackageError, PackageScripts, Packages, UpdateOutcome,
};
use pi_resources::settings::{Settings, SettingsScope};
use pi_resources::source_info::SourceScope;
use pi_resources::trust;

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
    locked: bool,
    ignore_release_age: bool,
    diff: bool,
    /// The package whose install scripts may run.
    allow_scripts: Option<String>,
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
            Self::Install => "pi install [source]... [-l] [--locked] [--allow-scripts <name>]",
            Self::Remove => "pi remove <source>... [-l]",
            Self::Update => "pi update [source]... [--diff]",
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
extensions run when pi starts the next time. Install scripts do not run; the
packages that have some are named.

Options:
  -l, --local             For this project only (.pi/settings.json)
  --locked                Exactly what pi.lock names; without a source, all
                          packages of the settings
  --allow-scripts <name>  Run the install scripts of an installed package, and
                          of the same archive whenever it is installed again
  --ignore-release-age    Also versions that were published in the last hours
                          (setting minimumReleaseAge)

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
  --diff                Show what changes, and ask before it takes effect
  --ignore-release-age  Also versions that were published in the last hours
  -a, --approve         Those of this project, too, also if it is not trusted
  -na, --no-approve     Not those of this project
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
    let mut sources = parsed.sources;
    sources.retain(|source| !source.trim().is_empty());
    let works_alone = parsed.locked || parsed.allow_scripts.is_some();
    let needs_source = match command {
        Command::Install => !works_alone,
        Command::Remove => true,
        Command::Update | Command::List => false,
    };
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
    if let Some(note) = trust::note(&paths) {
        warn(&note);
    }
    let scope = match parsed.local {
        true => SettingsScope::Project,
        false => SettingsScope::Global,
    };
    let progress = |text: &str| {
        // Errors of stdout do not stop the command.
        let _ = output(&dim(&format!("{text}\n")));
    };
    let options = InstallOptions {
        locked: parsed.locked,
        ignore_release_age: parsed.ignore_release_age,
    };
    let packages = Packages::new(&paths, &settings, Output::Shown, &progress).with_options(options);
    let confirm: Option<Confirm<'_>> = match parsed.diff {
        true => Some(&ask_about_changes),
        false => None,
    };
    let allowed = parsed.allow_scripts.as_deref();
    let one = |source: Option<&str>| match (command, source) {
        (Command::Install, Some(source)) => {
            let installed = packages.install(source, scope)?;
            Ok(describe(&installed, scope, allowed))
        }
        (Command::Install, None) => {
            let only = parsed.local.then_some(scope);
            let installed = packages.install_locked(only)?;
            let texts = installed.iter().map(|it| describe(it, scope, allowed));
            Ok(texts.collect())
        }
        (Command::Remove, Some(source)) => remove(&packages, source, scope),
        (Command::Update, source) => update(&packages, source, confirm),
        _ => Ok(list(&packages)),
    };
    let all: Vec<Option<&str>> = match (sources.is_empty(), command) {
        (_, Command::List) => vec![None],
        (true, Command::Install) if !parsed.locked => Vec::new(),
        (true, _) => vec![None],
        (false, _) => sources.iter().map(|source| Some(source.as_str())).collect(),
    };
    let mut code = 0;
    for source in all {
        code = print_result(command, one(source))?;
        if code != 0 {
            break;
        }
    }
    if command != Command::List
        && let Err(error) = trust::accept_packages(&paths)
    {
        warn(&error.to_string());
    }
    match allowed {
        Some(name) if code == 0 => {
            print_result(command, allow_scripts(&packages, name, scope)).map(Some)
        }
        _ => Ok(Some(code)),
    }
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
        locked: false,
        ignore_release_age: false,
        diff: false,
        allow_scripts: None,
        help: false,
        unknown: None,
    };
    let fetches = matches!(parsed.command, Command::Install | Command::Update);
    let mut rest = rest.iter();
    while let Some(arg) = rest.next() {
        match arg.as_str() {
            "-h" | "--help" => parsed.help = true,
            "-l" | "--local" if parsed.command.has_local() => parsed.local = true,
            "--locked" if parsed.command == Command::Install => parsed.locked = true,
            "--ignore-release-age" if fetches => parsed.ignore_release_age = true,
            "--diff" if parsed.command == Command::Update => parsed.diff = true,
            "--allow-scripts" if parsed.command == Command::Install => {
                match rest.next().filter(|name| !name.starts_with('-')) {
                    Some(name) => parsed.allow_scripts = Some(name.clone()),
                    None => drop(parsed.unknown.get_or_insert_with(|| {
                        "--allow-scripts without the name of a package".to_owned()
                    })),
                }
            }
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

/// Describes a new installation. The scripts of `allowed` are left out: they run next.
fn describe(installed: &InstalledPackage, scope: SettingsScope, allowed: Option<&str>) -> String {
    let source = &installed.source;
    let contents = Contents::read(&installed.folder);
    let scripts = describe_scripts(&installed.scripts, scope, allowed);
    format!("Installed {source}\nIt brings:\n{contents}\n{scripts}")
}

/// Describes install scripts that did not run, with the command that runs them.
fn describe_scripts(all: &[PackageScripts], scope: SettingsScope, allowed: Option<&str>) -> String {
    let mut text = String::new();
    for package in all {
        if allowed == Some(&package.name) {
            continue;
        }
        if text.is_empty() {
            text += "Install scripts did not run:\n";
        }
        for (name, script) in &package.scripts {
            text += &format!("  {} {} {name}: {script}\n", package.name, package.version);
        }
        let local = match scope {
            SettingsScope::Project => " -l",
            SettingsScope::Global => "",
        };
        text += &format!(
            "    If it does not work without: pi install{local} --allow-scripts {}\n",
            package.name
        );
    }
    pi_packages::printable(&text)
}

fn allow_scripts(
    packages: &Packages<'_>,
    name: &str,
    scope: SettingsScope,
) -> Result<String, PackageError> {
    let ran = packages.allow_scripts(name, scope)?;
    let lines = ran.iter().map(|ran| {
        let scripts: Vec<&str> = ran.scripts.iter().map(|(name, _)| name.as_str()).collect();
        format!("Ran {} of {name} {}\n", scripts.join(", "), ran.version)
    });
    Ok(lines.collect())
}

/// Shows the changes of an update and asks whether it takes effect. No answer is no.
fn ask_about_changes(changes: &Changes<'_>) -> bool {
    let question = format!("{}Update {}? [y/N] ", changes.describe(), changes.source);
    if output(&question).is_err() {
        return false;
    }
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    if !io::stdin().is_terminal() {
        let _ = output("\n");
    }
    let answer = answer.trim().to_lowercase();
    read.is_ok() && ["y", "yes"].contains(&answer.as_str())
}

fn remove(
    packages: &Packages<'_>,
    source: &str,
    scope: SettingsScope,
) -> Result<String, PackageError> {
    packages.remove(source, scope)?;
    Ok(format!("Removed {source}\n"))
}

fn update(
    packages: &Packages<'_>,
    source: Option<&str>,
    confirm: Option<Confirm<'_>>,
) -> Result<String, PackageError> {
    if pi_app::is_offline() {
        return Ok("Nothing was updated: pi is offline (PI_OFFLINE)\n".to_owned());
    }
    let mut lines = String::new();
    packages.update(source, confirm, |package, updated| {
        let scope = match package.scope {
            SourceScope::Project => SettingsScope::Project,
            _ => SettingsScope::Global,
        };
        lines += &match updated {
            UpdateOutcome::Updated(update) => {
                let state = |it: Option<String>| it.unwrap_or_else(|| "not installed".to_owned());
                format!(
                    "{} {} -> {}\n{}",
                    package.source,
                    state(update.from),
                    state(update.to),
                    describe_scripts(&update.scripts, scope, None)
                )
            }
            UpdateOutcome::Declined => format!("{} stays as it is\n", package.source),
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
            locked: false,
            ignore_release_age: false,
            diff: false,
            allow_scripts: None,
            help: false,
            unknown: None,
        };
        assert_eq!(install, expected);
        let words = [
            "install",
            "--locked",
            "--allow-scripts",
            "x",
            "--ignore-release-age",
        ];
        let install = parsed(&words).unwrap();
        assert!(install.locked && install.ignore_release_age && install.sources.is_empty());
        assert_eq!(install.allow_scripts.as_deref(), Some("x"));
        let wrong = parsed(&["install", "--allow-scripts", "--locked"]).unwrap();
        assert!(
            wrong
                .unknown
                .unwrap()
                .starts_with("--allow-scripts without")
        );
        let update = parsed(&["update", "--diff", "--locked"]).unwrap();
        assert!(update.diff);
        assert_eq!(update.unknown.as_deref(), Some("--locked"));
        assert_eq!(
            parsed(&["uninstall", "a"]).unwrap().command,
            Command::Remove
        );
        let list = parsed(&["list", "-l", "-x", "-h"]).unwrap();
        assert_eq!(list.unknown.as_deref(), Some("-l"), "the first is reported");
        assert!(list.help);
    }
}
