//! The question whether a project is trusted: what would run, and the possible answers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pi_base::regular_file;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::difference::{Change, SHOWN, shortened, shown_path};
use super::file_set::{FileRole, Files, ProjectFolder, package_sources, path_of};
use super::{Difference, Distrust, TrustAnswer};
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
    groups: Vec<Group>,
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
                let files = files
                    .iter()
                    .filter_map(|(key, file)| Some((path_of(&folder.path, key)?, file.role)));
                let files = newest_first(files.collect());
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
            groups: groups(folder, &newest_first(folder.names())),
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
                for Group { title, names } in &self.groups {
                    text += &format!("\n  {title}: {}", names.listed());
                }
            }
            Some(difference) => {
                text += &format!("\n  {}", difference.summary(&self.folder));
            }
        }
        text
    }

    /// Returns the answers with their labels. The labels are those of the original.
    pub fn answers(&self) -> Vec<(String, TrustAnswer)> {
        let mut answers = vec![("Trust".to_owned(), TrustAnswer::Trust)];
        match (self.reason, self.folder.parent()) {
            (TrustReason::Unanswered, Some(parent)) => {
                let parent = shown_path(Path::new(""), parent);
                let label = format!("Trust parent folder ({parent})");
                answers.push((label, TrustAnswer::TrustParent));
            }
            (TrustReason::Unanswered, None) => {}
            (TrustReason::Changed, _) => {
                let label = "Trust changes in this folder from now on".to_owned();
                answers.push((label, TrustAnswer::TrustChanges));
            }
        }
        answers.push((
            "Trust (this session only)".to_owned(),
            TrustAnswer::TrustSession,
        ));
        answers.push(("Do not trust".to_owned(), TrustAnswer::Deny));
        answers.push((
            "Do not trust (this session only)".to_owned(),
            TrustAnswer::DenySession,
        ));
        answers
    }

    /// Returns the changes since the folder was trusted as a diff.
    pub fn diff(&self) -> Option<String> {
        let difference = self.difference.as_ref()?;
        Some(difference.diff(&self.agent_dir, &self.folder))
    }
}

/// Lists in one line what the project brings. Files are not looked at, because this is part of
/// each start in a folder that is not trusted.
pub(super) fn summary(folder: &ProjectFolder) -> String {
    let groups = groups(folder, &folder.names());
    if groups.is_empty() {
        return "its themes".to_owned();
    }
    let groups =
        groups.iter().map(
            |Group { title, names }| match (names.first.first(), names.count) {
                (Some(first), 2..) => format!("{title}: {first} and {} more", names.count - 1),
                _ => format!("{title}: {}", names.listed()),
            },
        );
    groups.collect::<Vec<_>>().join("; ")
}

/// Resources of one kind.
#[derive(Clone, Debug)]
struct Group {
    title: &'static str,
    names: Names,
}

/// Names of which only the first are shown.
#[derive(Clone, Debug, Default)]
struct Names {
    first: Vec<String>,
    count: usize,
}

impl Names {
    fn push(&mut self, name: impl FnOnce() -> String) {
        if self.first.len() < SHOWN {
            self.first.push(name());
        }
        self.count += 1;
    }

    fn listed(&self) -> String {
        shortened(&self.first, self.count)
    }
}

/// Returns what the project brings by kind, in the order of `files`.
fn groups(folder: &ProjectFolder, files: &[(PathBuf, FileRole)]) -> Vec<Group> {
    let texts = |texts: Vec<String>| {
        let mut names = Names::default();
        texts.into_iter().for_each(|text| names.push(|| text));
        names
    };
    let mut of_skills = Names::default();
    let mut by_role: BTreeMap<FileRole, Names> = BTreeMap::new();
    for (path, role) in files {
        let is_of_skill =
            *role == FileRole::Skill && path.extension().is_none_or(|ending| ending != "md");
        let names = match is_of_skill {
            true => &mut of_skills,
            false => by_role.entry(*role).or_default(),
        };
        names.push(|| shown_path(&folder.path, path));
    }
    let mut of = |role: FileRole| by_role.remove(&role).unwrap_or_default();
    let settings = settings(folder);
    let programs = PROGRAM_SETTINGS
        .iter()
        .filter(|key| settings.contains_key(**key));
    let groups = [
        ("packages", texts(packages(folder))),
        ("extensions", of(FileRole::Extension)),
        ("local packages", of(FileRole::Package)),
        ("system prompt", of(FileRole::SystemPrompt)),
        ("MCP servers", of(FileRole::Mcp)),
        (
            "settings that name programs",
            texts(programs.map(|key| key.to_string()).collect()),
        ),
        ("settings", of(FileRole::Settings)),
        ("skills", of(FileRole::Skill)),
        ("files of skills", of_skills),
        ("prompt templates", of(FileRole::Prompt)),
    ];
    let groups = groups
        .into_iter()
        .map(|(title, names)| Group { title, names });
    groups.filter(|group| group.names.count > 0).collect()
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

fn newest_first(mut files: Vec<(PathBuf, FileRole)>) -> Vec<(PathBuf, FileRole)> {
    files.sort_by_cached_key(|(path, _)| {
        let modified = std::fs::symlink_metadata(path).and_then(|found| found.modified());
        (std::cmp::Reverse(modified.ok()), path.clone())
    });
    files
}
