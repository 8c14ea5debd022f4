//! Skills: files with instructions that the model reads when a task requires them, or that the
//! user inserts into a prompt with `/skill:name`.

use pi_base::regular_file;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize, Serializer};

use crate::diagnostic::Diagnostic;
use crate::discovery::{NamedPath, ResourcePath, ResourceSources};
use crate::paths::ResourceKind;
use crate::prompts::frontmatter::Document;
use crate::source_info::SourceInfo;
use crate::trust;

const COMMAND: &str = "/skill:";
const MAX_NAME_CHARACTERS: usize = 64;
const MAX_DESCRIPTION_CHARACTERS: usize = 1024;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Skill {
    pub name: String,
    pub description: String,
    #[serde(serialize_with = "shown")]
    pub file_path: PathBuf,
    /// Folder to which paths in the skill's text are relative.
    #[serde(serialize_with = "shown", default)]
    pub base_dir: PathBuf,
    /// Source of the skill. Skills made by extensions may lack it.
    #[serde(default = "SourceInfo::without_origin")]
    pub source_info: SourceInfo,
    /// Hides the skill from the system prompt; the user can still invoke it.
    #[serde(default)]
    pub disable_model_invocation: bool,
}

/// Serializes a path; invalid Unicode is replaced.
pub(super) fn shown<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

/// Loads the skills. `named` are the values of `--skill` and the paths of extensions. Of two
/// skills with the same name the first is used.
pub fn load_skills(
    sources: &ResourceSources<'_>,
    named: &[NamedPath],
) -> (Vec<Skill>, Vec<Diagnostic>) {
    let found = sources.find_with_named(ResourceKind::Skills, named);
    let mut problems = found.diagnostics;
    let mut skills: Vec<Skill> = Vec::new();
    let mut owners: HashMap<String, PathBuf> = HashMap::new();
    for resource in found.paths {
        let Some(skill) = load(resource, &mut problems) else {
            continue;
        };
        if let Some(owner) = owners.get(&skill.name) {
            let message = format!(
                "The skill {} is not loaded: {} has the same name, \"{}\"",
                skill.file_path.display(),
                owner.display(),
                skill.name
            );
            problems.push(Diagnostic::warning(&skill.file_path, message));
            continue;
        }
        owners.insert(skill.name.clone(), skill.file_path.clone());
        skills.push(skill);
    }
    (skills, problems)
}

fn load(resource: ResourcePath, problems: &mut Vec<Diagnostic>) -> Option<Skill> {
    let ResourcePath { path, source_info } = resource;
    let mut warn = |message: String| {
        let message = format!("The skill {}: {message}", path.display());
        problems.push(Diagnostic::warning(&path, message));
    };
    if path.extension().is_none_or(|extension| extension != "md") {
        warn("is not a Markdown file (.md) and not loaded".to_owned());
        return None;
    }
    let document = match read(&path, trust::read_lossy) {
        Ok(document) => document,
        Err(message) => {
            warn(format!("not loaded: {message}"));
            return None;
        }
    };
    let base_dir = path.parent().unwrap_or(&path).to_owned();
    let dir_name = base_dir.file_name().unwrap_or_default().to_string_lossy();
    let name = document
        .text("name")
        .unwrap_or_else(|| dir_name.clone().into_owned());
    for complaint in complaints_about(&name, &dir_name) {
        warn(complaint);
    }
    let Some(description) = document
        .text("description")
        .filter(|text| !text.trim().is_empty())
    else {
        warn("not loaded: it needs a description in its frontmatter".to_owned());
        return None;
    };
    let length = description.chars().count();
    if length > MAX_DESCRIPTION_CHARACTERS {
        warn(format!(
            "its description has {length} characters; {MAX_DESCRIPTION_CHARACTERS} are allowed"
        ));
    }
    Some(Skill {
        name,
        description,
        base_dir,
        disable_model_invocation: document.is_true("disable-model-invocation"),
        source_info,
        file_path: path,
    })
}

fn read(path: &Path, read: impl Fn(&Path) -> io::Result<String>) -> Result<Document, String> {
    let text = read(path).map_err(|error| error.to_string())?;
    Document::parse(&text).map_err(|error| error.to_string())
}

/// Returns the violations of the Agent Skills standard by a name. The skill is used in spite of
/// them.
fn complaints_about(name: &str, dir_name: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    if name != dir_name {
        complaints.push(format!(
            "its name \"{name}\" differs from that of its folder, \"{dir_name}\""
        ));
    }
    let length = name.chars().count();
    if length > MAX_NAME_CHARACTERS {
        complaints.push(format!(
            "its name has {length} characters; {MAX_NAME_CHARACTERS} are allowed"
        ));
    }
    let valid = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !name.chars().all(valid) {
        complaints.push(format!(
            "its name \"{name}\" has other characters than a-z, 0-9 and hyphens"
        ));
    }
    if name.starts_with('-') || name.ends_with('-') || name.contains("--") {
        complaints.push(format!(
            "its name \"{name}\" starts or ends with a hyphen, or has two in a row"
        ));
    }
    complaints
}

/// Returns the block for the system prompt; `None` if the model may use no skill.
pub fn skills_block(skills: &[Skill]) -> Option<String> {
    let mut visible = skills
        .iter()
        .filter(|skill| !skill.disable_model_invocation)
        .peekable();
    visible.peek()?;
    let mut block = "These skills hold instructions for particular tasks.\n\
         When a task fits a skill's description, read the skill's file with the read tool first.\n\
         Paths in a skill are relative to the folder of its file; make them absolute before you use them.\n\n\
         <available_skills>\n"
        .to_owned();
    for skill in visible {
        block += "  <skill>\n";
        for (tag, text) in [
            ("name", skill.name.as_str()),
            ("description", &skill.description),
            ("location", &skill.file_path.to_string_lossy()),
        ] {
            block += &format!("    <{tag}>{}</{tag}>\n", escape(text));
        }
        block += "  </skill>\n";
    }
    block += "</available_skills>";
    Some(block)
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&apos;")
}

/// Replaces `/skill:name args` by the text of the skill. `None` for other texts and unknown
/// names, which are sent unchanged. Fails if the file cannot be read any more.
pub fn expand_skill_command(text: &str, skills: &[Skill]) -> Result<Option<String>, Diagnostic> {
    let Some(command) = text.strip_prefix(COMMAND) else {
        return Ok(None);
    };
    let (name, args) = command.split_once(' ').unwrap_or((command, ""));
    let Some(skill) = skills.iter().find(|skill| skill.name == name) else {
        return Ok(None);
    };
    let path = &skill.file_path;
    let document = read(path, |path| regular_file::read_lossy(path)).map_err(|error| {
        let message = format!("Could not read the skill {}: {error}", path.display());
        Diagnostic::warning(path, message)
    })?;
    let block = format!(
        "<skill name=\"{name}\" location=\"{}\">\nReferences are relative to {}.\n\n{}\n</skill>",
        path.display(),
        skill.base_dir.display(),
        document.body.trim(),
    );
    Ok(Some(match args.trim() {
        "" => block,
        args => format!("{block}\n\n{args}"),
    }))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::paths::Paths;
    use crate::settings::Settings;

    struct Fixture {
        _dir: tempfile::TempDir,
        paths: Paths,
    }

    impl Fixture {
        fn new(files: &[(&str, &str)]) -> Self {
            let dir = tempfile::tempdir().unwrap();
            let root = fs::canonicalize(dir.path()).unwrap();
            for (name, text) in files {
                let path = root.join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            let paths = Paths {
                agent_dir: root.join("agent"),
                cwd: root.join("p"),
                home: root,
                distrust: None,
            };
            Self { _dir: dir, paths }
        }

        fn load(&self, named: &[&str], discover: bool) -> (Vec<Skill>, Vec<String>) {
            let named: Vec<_> = named.iter().map(|name| NamedPath::by_user(name)).collect();
            let sources = ResourceSources {
                paths: &self.paths,
                settings: &Settings::load(&self.paths),
                cli_extensions: &[],
                discover,
            };
            let (skills, problems) = load_skills(&sources, &named);
            (skills, problems.iter().map(ToString::to_string).collect())
        }
    }

    fn names(skills: &[Skill]) -> Vec<&str> {
        skills.iter().map(|skill| skill.name.as_str()).collect()
    }

    #[test]
    fn skills_load_with_warnings_and_the_first_of_a_name_wins() {
        let fixture = Fixture::new(&[
            (
                "p/.pi/skills/one/SKILL.md",
                "---\nname: one\ndescription: first\n---\nText",
            ),
            (
                "agent/skills/one/SKILL.md",
                "---\ndescription: second\n---\n",
            ),
            ("agent/skills/Bad--/SKILL.md", "---\ndescription: d\n---\n"),
            ("agent/skills/none/SKILL.md", "no frontmatter"),
            ("agent/skills/broken/SKILL.md", "---\na: [\n---\n"),
            (
                "agent/skills/hidden/SKILL.md",
                "---\ndescription: h\ndisable-model-invocation: true\n---\n",
            ),
        ]);
        let (skills, problems) = fixture.load(&[], true);
        assert_eq!(names(&skills), ["one", "Bad--", "hidden"]);
        assert_eq!(skills[0].description, "first");
        assert_eq!(skills[0].base_dir, fixture.paths.cwd.join(".pi/skills/one"));
        assert_eq!(skills[0].source_info.source, "auto");
        assert!(skills[2].disable_model_invocation);
        let parts = [
            "other characters",
            "hyphen",
            "cannot be read",
            "needs a description",
            "same name",
        ];
        assert_eq!(problems.len(), parts.len(), "{problems:#?}");
        for part in parts {
            assert!(
                problems.iter().any(|problem| problem.contains(part)),
                "{part}: {problems:#?}"
            );
        }
    }

    #[test]
    fn named_skill_loads_without_discovery_and_missing_is_reported() {
        let fixture = Fixture::new(&[
            ("agent/skills/auto/SKILL.md", "---\ndescription: d\n---\n"),
            ("x/mine/SKILL.md", "---\ndescription: d\n---\n"),
            ("x/note.txt", ""),
        ]);
        let (skills, problems) = fixture.load(&["../x/mine", "gone", "../x/note.txt"], false);
        assert_eq!(names(&skills), ["mine"]);
        let home = &fixture.paths.home;
        let gone = format!(
            "Skill path does not exist: {}",
            fixture.paths.cwd.join("gone").display()
        );
        let note = home.join("x/note.txt");
        let note = format!(
            "The skill {}: is not a Markdown file (.md) and not loaded",
            note.display()
        );
        assert_eq!(problems, [gone, note]);
        let info = serde_json::to_value(&skills[0].source_info).unwrap();
        assert_eq!(
            info,
            serde_json::json!({"path": home.join("x/mine/SKILL.md"), "source": "local",
                "scope": "temporary", "origin": "top-level", "baseDir": home.join("x/mine")})
        );
    }

    #[test]
    fn the_block_lists_what_the_model_may_use_escaped() {
        let fixture = Fixture::new(&[
            (
                "agent/skills/a/SKILL.md",
                "---\ndescription: use <a> & 'b'\n---\n",
            ),
            (
                "agent/skills/h/SKILL.md",
                "---\ndescription: h\ndisable-model-invocation: true\n---\n",
            ),
        ]);
        let (skills, _) = fixture.load(&[], true);
        let block = skills_block(&skills).unwrap();
        let (_, list) = block.split_once("\n\n").unwrap();
        let location = fixture.paths.agent_dir.join("skills/a/SKILL.md");
        assert_eq!(
            list,
            format!(
                "<available_skills>\n  <skill>\n    <name>a</name>\n    \
                 <description>use &lt;a&gt; &amp; &apos;b&apos;</description>\n    \
                 <location>{}</location>\n  </skill>\n</available_skills>",
                location.display()
            )
        );
        assert_eq!(skills_block(&skills[1..]), None);
    }

    #[test]
    fn a_command_becomes_the_text_of_its_skill() {
        let fixture = Fixture::new(&[(
            "agent/skills/a/SKILL.md",
            "---\ndescription: d\n---\n\nDo it.\n",
        )]);
        let (skills, _) = fixture.load(&[], true);
        let dir = fixture.paths.agent_dir.join("skills/a");
        let block = format!(
            "<skill name=\"a\" location=\"{0}/SKILL.md\">\nReferences are relative to {0}.\n\nDo it.\n</skill>",
            dir.display()
        );
        let expand = |text| expand_skill_command(text, &skills).unwrap();
        assert_eq!(expand("/skill:a"), Some(block.clone()));
        assert_eq!(
            expand("/skill:a  now, please "),
            Some(format!("{block}\n\nnow, please"))
        );
        assert_eq!(expand("/skill:b x"), None);
        assert_eq!(expand("say /skill:a"), None);
        fs::remove_file(&skills[0].file_path).unwrap();
        let error = expand_skill_command("/skill:a", &skills).unwrap_err();
        assert_eq!(error.path, skills[0].file_path);
    }
}
