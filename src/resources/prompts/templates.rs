//! Prompt templates: Markdown files that the user invokes as `/name args`.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde::{Deserialize, Serialize};

use crate::diagnostic::Diagnostic;
use crate::discovery::{NamedPath, ResourcePath, ResourceSources};
use crate::paths::ResourceKind;
use crate::prompts::frontmatter::Document;
use crate::skills::shown;
use crate::source_info::SourceInfo;
use crate::trust;

const LONGEST_DESCRIPTION: usize = 60;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PromptTemplate {
    pub name: String,
    #[serde(default)]
    pub description: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argument_hint: Option<String>,
    pub content: String,
    #[serde(serialize_with = "shown", default)]
    pub file_path: PathBuf,
    #[serde(default = "SourceInfo::without_origin")]
    pub source_info: SourceInfo,
}

/// Loads the templates. `named` are the values of `--prompt-template` and the paths of
/// extensions. Of two templates with the same name the first is used.
pub fn load_prompt_templates(
    sources: &ResourceSources<'_>,
    named: &[NamedPath],
) -> (Vec<PromptTemplate>, Vec<Diagnostic>) {
    let found = sources.find_with_named(ResourceKind::Prompts, named);
    let mut problems = found.diagnostics;
    let mut templates: Vec<PromptTemplate> = Vec::new();
    let mut owners: HashMap<String, PathBuf> = HashMap::new();
    for resource in found.paths {
        let path = resource.path.clone();
        let template = match load(resource) {
            Ok(template) => template,
            Err(error) => {
                let message = format!(
                    "The prompt template {} is not loaded: {error}",
                    path.display()
                );
                problems.push(Diagnostic::warning(&path, message));
                continue;
            }
        };
        if let Some(owner) = owners.get(&template.name) {
            let message = format!(
                "The prompt template {} is not loaded: {} has the same name, \"/{}\"",
                path.display(),
                owner.display(),
                template.name
            );
            problems.push(Diagnostic::warning(&path, message));
            continue;
        }
        owners.insert(template.name.clone(), path);
        templates.push(template);
    }
    (templates, problems)
}

fn load(resource: ResourcePath) -> Result<PromptTemplate, String> {
    let ResourcePath { path, source_info } = resource;
    if path.extension().is_none_or(|extension| extension != "md") {
        return Err("it is not a Markdown file (.md)".to_owned());
    }
    let text = trust::read_lossy(&path).map_err(|error| error.to_string())?;
    let document = Document::parse(&text).map_err(|error| error.to_string())?;
    let description = document.text("description");
    Ok(PromptTemplate {
        name: path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned(),
        description: description.unwrap_or_else(|| first_words(&document.body)),
        argument_hint: document.text("argument-hint"),
        content: document.body,
        file_path: path,
        source_info,
    })
}

/// Returns the first line with text, shortened.
fn first_words(body: &str) -> String {
    let line = body
        .lines()
        .find(|line| !line.trim().is_empty())
        .unwrap_or("");
    match line.char_indices().nth(LONGEST_DESCRIPTION) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line.to_owned(),
    }
}

/// Returns the text of `/name args`; `None` if no template has the name.
pub fn expand_prompt_template(text: &str, templates: &[PromptTemplate]) -> Option<String> {
    let command = text.strip_prefix('/')?;
    let (name, args) = command.split_once(' ').unwrap_or((command, ""));
    let template = templates.iter().find(|template| template.name == name)?;
    Some(substitute(&template.content, &split_args(args)))
}

/// Splits arguments at spaces and tabs; single or double quotes group words.
fn split_args(text: &str) -> Vec<String> {
    let mut args = Vec::new();
    let mut word = String::new();
    let mut quote = None;
    for c in text.chars() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, ' ' | '\t') => {
                if !word.is_empty() {
                    args.push(std::mem::take(&mut word));
                }
            }
            _ => word.push(c),
        }
    }
    if !word.is_empty() {
        args.push(word);
    }
    args
}

/// Replaces `$1`, `${@:from}`, `${@:from:count}`, `$@`, `$ARGUMENTS`, and the forms
/// `${1:-default}` and `${@:-default}` of newer versions. Works in one pass, so that
/// placeholders in arguments are not replaced.
fn substitute(content: &str, args: &[String]) -> String {
    static PLACEHOLDER: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(
            r"\$(?:([0-9]+)|\{@:([0-9]+)(?::([0-9]+))?\}|ARGUMENTS|@|\{([0-9]+|@):-([^}]*)\})",
        )
        .expect("the pattern is constant and tested")
    });
    let number = |found: &Captures<'_>, group| {
        // A number that overflows is beyond the end of every list.
        let digits = found.get(group)?.as_str();
        Some(digits.parse::<usize>().unwrap_or(usize::MAX))
    };
    let replaced = PLACEHOLDER.replace_all(content, |found: &Captures<'_>| {
        let at = |position: usize| args.get(position.checked_sub(1)?).cloned();
        if let Some(position) = number(found, 1) {
            return at(position).unwrap_or_default();
        }
        if let (Some(which), Some(default)) = (found.get(4), found.get(5)) {
            let argument = match which.as_str() {
                "@" => Some(args.join(" ")),
                digits => at(digits.parse().unwrap_or(usize::MAX)),
            };
            let argument = argument.filter(|text| !text.is_empty());
            return argument.unwrap_or_else(|| default.as_str().to_owned());
        }
        let from = number(found, 2).unwrap_or(1).saturating_sub(1);
        let count = number(found, 3).unwrap_or(usize::MAX);
        let chosen: Vec<_> = args
            .iter()
            .skip(from)
            .take(count)
            .map(String::as_str)
            .collect();
        chosen.join(" ")
    });
    replaced.into_owned()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::paths::Paths;
    use crate::settings::Settings;

    fn expand(content: &str, args: &str) -> String {
        substitute(content, &split_args(args))
    }

    #[test]
    fn placeholders() {
        let args = r#"one "two words" 'th"ree' fo"ur""#;
        assert_eq!(
            expand("$1|$2|$3|$4|$5|$0", args),
            "one|two words|th\"ree|four||"
        );
        assert_eq!(expand("$@|$ARGUMENTS", "a  b\tc"), "a b c|a b c");
        assert_eq!(
            expand("${@:2}|${@:2:1}|${@:0}|${@:9}|${@:1:0}", "a b c"),
            "b c|b|a b c||"
        );
        assert_eq!(
            expand("${1:-x}|${2:-some words}|${3:-}|${@:-none}|${0:-y}", "a"),
            "a|some words||a|y"
        );
        assert_eq!(expand("${@:-$1 none}", ""), "$1 none");
        assert_eq!(
            expand("$99999999999999999999999 $ {@} $x", "a"),
            " $ {@} $x"
        );
    }

    #[test]
    fn placeholders_in_arguments_are_not_replaced() {
        assert_eq!(expand("$1 $@", "$@ $& $1"), "$@ $@ $& $1");
    }

    #[test]
    fn templates_load_and_expand_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        let long = "é".repeat(61);
        for (name, text) in [
            (
                "agent/prompts/fix.md",
                "---\ndescription: Fix it\nargument-hint: <file>\n---\nFix $1.\n",
            ),
            ("agent/prompts/long.md", &format!("\n  \n{long}\n")),
            ("agent/prompts/broken.md", "---\na: [\n---\n"),
            ("p/.pi/prompts/fix.md", "Project's $1"),
            ("x/extra.md", "extra"),
        ] {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let paths = Paths {
            agent_dir: root.join("agent"),
            cwd: root.join("p"),
            home: root.clone(),
            distrust: None,
        };
        let sources = ResourceSources {
            paths: &paths,
            settings: &Settings::load(&paths),
            cli_extensions: &[],
            discover: true,
        };
        let (templates, problems) = load_prompt_templates(&sources, &[NamedPath::by_user("../x")]);
        let summary: Vec<_> = templates
            .iter()
            .map(|t| (t.name.as_str(), t.description.as_str()))
            .collect();
        let cut = format!("{}...", "é".repeat(60));
        assert_eq!(
            summary,
            [("fix", "Project's $1"), ("long", &cut), ("extra", "extra")]
        );
        let places: Vec<_> = problems
            .iter()
            .map(|problem| problem.path.clone())
            .collect();
        let agent = root.join("agent/prompts");
        assert_eq!(places, [agent.join("broken.md"), agent.join("fix.md")]);
        let expand = |text| expand_prompt_template(text, &templates);
        assert_eq!(expand("/fix 'a b'"), Some("Project's a b".to_owned()));
        assert_eq!(expand("/fix"), Some("Project's ".to_owned()));
        assert_eq!(expand("/fixed"), None);
        assert_eq!(expand("fix"), None);
        let discover = ResourceSources {
            discover: false,
            ..sources
        };
        let (templates, _) =
            load_prompt_templates(&discover, &[NamedPath::by_user("~/agent/prompts/fix.md")]);
        assert_eq!(templates[0].description, "Fix it");
        assert_eq!(templates[0].argument_hint.as_deref(), Some("<file>"));
        assert_eq!(templates[0].content, "Fix $1.");
    }
}
