//! The question whether a project is trusted: what would run, and the possible answers.

use std::path::{Path, PathBuf};

use pi_base::regular_file;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::difference::{Change, shortened, shown_path};
use super::file_set::{FileRole, Files, ProjectFolder, package_sources, path_of};
use super::{Answer, Difference, Distrust};
use crate::packages::PackageSource;
use crate::settings::parse_text;

/// Settings that name programs.
const PROGRAM_SETTINGS: [&str; 4] = ["shellPath", "shellCommandPrefix", "npmCommand", "httpProxy"];
const INSTALL_SCRIPTS: [&str; 3] = ["preinstall", "install", "postinstall"];

/// Why the user is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum TrustReason {
    /// The folder has no answer.
    Unanswered,
    /// The folder has changed since it was trusted.
    Changed,
}

/// A file or package that would be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Listed {
    pub role: FileRole,
    /// The path, relative to the project if it is inside, or the source of a package.
    pub name: String,
    /// The change since the folder was trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<Change>,
}

#[derive(Clone, Debug)]
pub struct Question {
    pub folder: PathBuf,
    agent_dir: PathBuf,
    pub reason: TrustReason,
    /// Files and packages that would be used, the newest first; only the changes if the folder was
    /// trusted before.
    pub listed: Vec<Listed>,
    /// The lists as text.
    groups: Vec<(&'static str, Vec<String>)>,
    difference: Option<std::sync::Arc<Difference>>,
}

impl Question {
    pub(super) fn new(
        folder: &ProjectFolder,
        agent_dir: &Path,
        distrust: Distrust,
        files: &Files,
    ) -> Self {
        let difference = match distrust {
            Distrust::Changed(difference) => Some(difference),
            _ => None,
        };
        let listed = match &difference {
            Some(difference) => (difference.files.iter())
                .map(|file| Listed {
                    role: file.role,
                    name: shown_path(&folder.path, &file.path),
                    change: Some(file.change),
                })
                .collect(),
            None => {
                let packages = packages(folder).into_iter().map(|name| Listed {
                    role: FileRole::Package,
                    name,
                    change: None,
                });
                let files = newest_first(
                    files
                        .iter()
                        .filter_map(|(key, file)| Some((path_of(&folder.path, key)?, file.role))),
                );
                let files = files.into_iter().map(|(path, role)| Listed {
                    role,
                    name: shown_path(&folder.path, &path),
                    change: None,
                });
                packages.chain(files).collect()
            }
        };
        Self {
            folder: folder.path.clone(),
            agent_dir: agent_dir.to_owned(),
            reason: match difference {
                Some(_) => TrustReason::Changed,
                None => TrustReason::Unanswered,
            },
            listed,
            groups: groups(folder),
            difference,
        }
    }

    /// Returns the text above the answers.
    pub fn text(&self) -> String {
        let folder = shown_path(Path::new(""), &self.folder);
        let mut text = match &self.difference {
            None => format!(
                "Trust this project folder?\n{folder}\npi would load and run what it brings:"
            ),
            Some(_) => format!(
                "This project folder has changed since you trusted it. Trust it as it is now?\n{folder}"
            ),
        };
        match &self.difference {
            None => {
                for (title, names) in &self.groups {
                    text += &format!("\n  {title}: {}", shortened(names));
                }
            }
            Some(difference) => {
                text += &format!("\n  {}", difference.summary(&self.folder));
            }
        }
        text
    }

    /// Returns the answers with their labels. The labels are those of the original.
    pub fn answers(&self) -> Vec<(String, Answer)> {
        let mut answers = vec![("Trust".to_owned(), Answer::Trust)];
        match (self.reason, self.folder.parent()) {
            (TrustReason::Unanswered, Some(parent)) => {
                let parent = shown_path(Path::new(""), parent);
                let label = format!("Trust parent folder ({parent})");
                answers.push((label, Answer::TrustParent));
            }
            (TrustReason::Unanswered, None) => {}
            (TrustReason::Changed, _) => {
                let label = "Trust changes in this folder from now on".to_owned();
                answers.push((label, Answer::TrustChanges));
            }
        }
        answers.push(("Trust (this session only)".to_owned(), Answer::TrustSession));
        answers.push(("Do not trust".to_owned(), Answer::Deny));
        answers.push((
            "Do not trust (this session only)".to_owned(),
            Answer::DenySession,
        ));
        answers
    }

    /// Returns the changes since the folder was trusted as a diff.
    pub fn diff(&self) -> Option<String> {
        let difference = self.difference.as_ref()?;
        Some(difference.diff(&self.agent_dir, &self.folder))
    }
}

/// Lists in one line what the project brings.
pub(super) fn summary(folder: &ProjectFolder) -> String {
    let groups = groups(folder);
    if groups.is_empty() {
        return "its themes".to_owned();
    }
    let groups = groups.iter().map(|(title, names)| match names.len() {
        1 => format!("{title}: {}", names[0]),
        count => format!("{title}: {} and {} more", names[0], count - 1),
    });
    groups.collect::<Vec<_>>().join("; ")
}

/// Returns what the project brings by kind.
fn groups(folder: &ProjectFolder) -> Vec<(&'static str, Vec<String>)> {
    let files = newest_first(folder.names().into_iter());
    let of = |role: FileRole| -> Vec<String> {
        let files = files.iter().filter(|(_, of)| *of == role);
        files
            .map(|(path, _)| shown_path(&folder.path, path))
            .collect()
    };
    let skills = of(FileRole::Skill);
    let (skills, scripts): (Vec<String>, Vec<String>) =
        skills.into_iter().partition(|name| name.ends_with(".md"));
    let settings = settings(folder);
    let programs = PROGRAM_SETTINGS
        .iter()
        .filter(|key| settings.contains_key(**key));
    let groups = [
        ("packages", packages(folder)),
        ("extensions", of(FileRole::Extension)),
        ("local packages", of(FileRole::Package)),
        ("system prompt", of(FileRole::SystemPrompt)),
        ("MCP servers", of(FileRole::Mcp)),
        (
            "settings that name programs",
            programs.map(|key| key.to_string()).collect(),
        ),
        ("settings", of(FileRole::Settings)),
        ("skills", skills),
        ("files of skills", scripts),
        ("prompt templates", of(FileRole::Prompt)),
    ];
    groups
        .into_iter()
        .filter(|(_, names)| !names.is_empty())
        .collect()
}

/// Describes the packages that the project's settings name: source, installed version, and
/// whether they have install scripts.
fn packages(folder: &ProjectFolder) -> Vec<String> {
    let sources = package_sources(&settings(folder)).into_iter();
    sources
        .map(|source| {
            let shown = shown_path(Path::new(""), Path::new(&source));
            let root = match PackageSource::parse(&source) {
                Ok(PackageSource::Npm(npm)) => {
                    folder.config().join("npm/node_modules").join(npm.name)
                }
                Ok(PackageSource::Git(git)) => {
                    folder.config().join("git").join(git.host).join(git.path)
                }
                Ok(PackageSource::Local(path)) => folder.config().join(path),
                Err(_) => return shown,
            };
            let manifest = regular_file::read_text(root.join("package.json")).ok();
            let Some(manifest) =
                manifest.and_then(|text| serde_json::from_str::<Value>(&text).ok())
            else {
                return format!("{shown} (not installed)");
            };
            let version = manifest["version"].as_str().unwrap_or("no version");
            let has_scripts = INSTALL_SCRIPTS
                .iter()
                .any(|name| manifest["scripts"][name].is_string());
            let scripts = if has_scripts {
                ", has install scripts"
            } else {
                ""
            };
            format!(
                "{shown} ({}{scripts})",
                shown_path(Path::new(""), Path::new(version))
            )
        })
        .collect()
}

fn settings(folder: &ProjectFolder) -> Map<String, Value> {
    let text = regular_file::read_text(folder.config().join("settings.json"));
    text.ok()
        .and_then(|text| parse_text(&text).ok())
        .unwrap_or_default()
}

fn newest_first(files: impl Iterator<Item = (PathBuf, FileRole)>) -> Vec<(PathBuf, FileRole)> {
    let mut files: Vec<_> = files.collect();
    files.sort_by_cached_key(|(path, _)| {
        let modified = std::fs::symlink_metadata(path).and_then(|found| found.modified());
        (std::cmp::Reverse(modified.ok()), path.clone())
    });
    files
}
