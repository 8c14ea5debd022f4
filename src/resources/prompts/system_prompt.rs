//! Builds the system prompt when a session starts or its tools change. Extensions search and
//! change the result: order, headings and the lines for tools, guidelines, date and folder are
//! part of the interface.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use chrono::NaiveDate;

use crate::prompts::context_files::ContextFile;

/// The parts of an active tool that the prompt contains.
#[derive(Clone, Copy, Debug)]
pub struct PromptTool<'a> {
    pub name: &'a str,
    /// The line for the tool; without one the tool is not listed.
    pub snippet: Option<&'a str>,
    pub guidelines: &'a [String],
}

#[derive(Clone, Debug)]
pub struct SystemPrompt<'a> {
    /// The active tools, in order.
    pub tools: Vec<PromptTool<'a>>,
    /// Replaces everything up to the documentation.
    pub custom: Option<&'a str>,
    pub append: Option<&'a str>,
    pub context_files: &'a [ContextFile],
    /// The block about skills, from its first line on; omitted if the model cannot read files.
    pub skills: Option<&'a str>,
    pub docs: Option<&'a Docs>,
    /// The date in local time.
    pub date: NaiveDate,
    pub cwd: &'a Path,
}

impl SystemPrompt<'_> {
    /// Returns the sections joined to one text.
    pub fn build(&self) -> String {
        let sections = self.sections();
        sections.into_iter().map(|(_, text)| text).collect()
    }

    /// Returns the sections with the names that newer versions have for them. Each text
    /// includes the separator from the previous section.
    pub fn sections(&self) -> Vec<(&'static str, String)> {
        let mut sections = match self.custom {
            Some(custom) => vec![("preamble", custom.to_owned())],
            None => self.beginning(),
        };
        if let Some(append) = self.append {
            sections.push(("addendum", format!("\n\n{append}")));
        }
        if !self.context_files.is_empty() {
            let mut text =
                "\n\n# Project Context\n\nProject-specific instructions and guidelines:\n\n"
                    .to_owned();
            for file in self.context_files {
                text += &format!("## {}\n\n{}\n\n", file.path.display(), file.content);
            }
            sections.push(("project_context", text));
        }
        if let Some(skills) = self.skills.filter(|_| self.has("read")) {
            sections.push(("skills", format!("\n\n{skills}")));
        }
        let cwd = self.cwd.to_string_lossy().replace('\\', "/");
        let date = self.date.format("%Y-%m-%d");
        let place = format!("\nCurrent date: {date}\nCurrent working directory: {cwd}");
        sections.push(("cwd", place));
        sections
    }

    fn beginning(&self) -> Vec<(&'static str, String)> {
        let preamble = "You are pi, a coding agent that works with a user in a terminal. You read and \
                        change files and run commands to do what the user asks.";
        let tools = format!(
            "\n\nAvailable tools:\n{}\n\n\
             The project or its extensions may give you more tools than these.",
            self.tool_list()
        );
        let rules = format!("\n\nGuidelines:\n{}", self.guidelines());
        let mut sections = vec![
            ("preamble", preamble.to_owned()),
            ("tools", tools),
            ("rules", rules),
        ];
        if let Some(docs) = self.docs {
            sections.push(("docs", format!("\n\n{}", docs.block())));
        }
        sections
    }

    fn tool_list(&self) -> String {
        let lines = self.tools.iter().filter_map(|tool| {
            let words: Vec<_> = tool.snippet?.split_whitespace().collect();
            (!words.is_empty()).then(|| format!("- {}: {}", tool.name, words.join(" ")))
        });
        let lines: Vec<_> = lines.collect();
        match lines.is_empty() {
            true => "(none)".to_owned(),
            false => lines.join("\n"),
        }
    }

    /// Returns the guidelines of all tools without duplicates.
    fn guidelines(&self) -> String {
        let mut lines: Vec<&str> = Vec::new();
        if self.has("bash") {
            lines.push(if ["grep", "find", "ls"].iter().any(|name| self.has(name)) {
                "To explore files, prefer the grep, find and ls tools to bash: they are faster and respect .gitignore"
            } else {
                "To explore files, use bash with ls, rg and find"
            });
        }
        let of_tools = self.tools.iter().flat_map(|tool| tool.guidelines);
        let always = [
            "Keep answers short",
            "Name the paths of the files you work with",
        ];
        for line in of_tools.map(|line| line.trim()).chain(always) {
            if !line.is_empty() && !lines.contains(&line) {
                lines.push(line);
            }
        }
        let bullets: Vec<_> = lines.iter().map(|line| format!("- {line}")).collect();
        bullets.join("\n")
    }

    fn has(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool.name == name)
    }
}

/// The documents about pi itself, for questions about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Docs {
    root: PathBuf,
    /// Names of the files in `docs`.
    topics: Vec<String>,
    examples: bool,
}

impl Docs {
    /// Finds the documents in `package_dir` (see [`crate::paths::package_dir`]); `None` if
    /// there are none.
    pub fn find(package_dir: &Path) -> Option<Self> {
        let entries = fs::read_dir(package_dir.join("docs")).ok()?;
        let names = entries.flatten().map(|entry| entry.file_name());
        let names = names.map(|name| name.to_string_lossy().into_owned());
        let mut topics: Vec<_> = names.filter(|name| name.ends_with(".md")).collect();
        topics.sort();
        Some(Self {
            root: package_dir.to_owned(),
            topics,
            examples: package_dir.join("examples").is_dir(),
        })
    }

    fn block(&self) -> String {
        let mut text = "Pi documentation (read it only when the user asks about pi itself: its \
                        extensions, settings, protocols or use as a library):"
            .to_owned();
        let mut line = |name: &str, path: PathBuf| {
            // Writing to a String cannot fail.
            let _ = write!(text, "\n- {name}: {}", path.display());
        };
        if self.root.join("README.md").is_file() {
            line("Overview", self.root.join("README.md"));
        }
        line("Documents", self.root.join("docs"));
        if self.examples {
            line("Examples", self.root.join("examples"));
        }
        if !self.topics.is_empty() {
            text += "\n- One document for each topic: ";
            text += &self.topics.join(", ");
        }
        text += "\n- Read a document to its end, and those it points to, before you build on it";
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_GUIDELINES: &[String] = &[];

    fn tool(name: &'static str) -> PromptTool<'static> {
        PromptTool {
            name,
            snippet: None,
            guidelines: NO_GUIDELINES,
        }
    }

    fn prompt<'a>(tools: Vec<PromptTool<'a>>) -> SystemPrompt<'a> {
        SystemPrompt {
            tools,
            custom: None,
            append: None,
            context_files: &[],
            skills: None,
            docs: None,
            date: NaiveDate::from_ymd_opt(2026, 3, 7).unwrap(),
            cwd: Path::new("/work/p"),
        }
    }

    const END: &str = "\nCurrent date: 2026-03-07\nCurrent working directory: /work/p";

    #[test]
    fn the_whole_prompt_in_its_order() {
        let guidelines = [
            " Read before you edit ".to_owned(),
            "Keep answers short".to_owned(),
        ];
        let tools = vec![
            PromptTool {
                snippet: Some("Read\n  files"),
                guidelines: &guidelines,
                ..tool("read")
            },
            PromptTool {
                snippet: Some("Run commands"),
                guidelines: &guidelines,
                ..tool("bash")
            },
            tool("secret"),
        ];
        let files = [ContextFile {
            path: "/p/AGENTS.md".into(),
            content: "be kind\n".into(),
        }];
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("docs")).unwrap();
        fs::write(dir.path().join("docs/rpc.md"), "").unwrap();
        let docs = Docs::find(dir.path()).unwrap();
        let built = SystemPrompt {
            append: Some("appended"),
            context_files: &files,
            skills: Some("SKILLS"),
            docs: Some(&docs),
            ..prompt(tools)
        }
        .build();
        let (identity, rest) = built.split_once("\n\n").unwrap();
        assert!(identity.contains("pi, a coding agent"), "{identity}");
        assert_eq!(
            rest,
            format!(
                "Available tools:\n- read: Read files\n- bash: Run commands\n\n\
                 The project or its extensions may give you more tools than these.\n\n\
                 Guidelines:\n- To explore files, use bash with ls, rg and find\n\
                 - Read before you edit\n- Keep answers short\n\
                 - Name the paths of the files you work with\n\n\
                 {}\n\nappended\n\n# Project Context\n\n\
                 Project-specific instructions and guidelines:\n\n## /p/AGENTS.md\n\n\
                 be kind\n\n\n\n\nSKILLS{END}",
                docs.block()
            )
        );
        let docs_dir = dir.path().join("docs");
        assert!(
            docs.block()
                .contains(&format!("\n- Documents: {}", docs_dir.display()))
        );
        assert!(docs.block().contains("rpc.md"));
    }

    #[test]
    fn without_a_docs_folder_there_is_no_block_about_documents() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Docs::find(dir.path()), None);
        let built = prompt(vec![]).build();
        assert!(!built.contains("Pi documentation"), "{built}");
    }

    #[test]
    fn a_custom_prompt_replaces_the_beginning_only() {
        let built = SystemPrompt {
            custom: Some("You are a pirate."),
            append: Some("Arr."),
            skills: Some("SKILLS"),
            ..prompt(vec![tool("read")])
        };
        assert_eq!(
            built.build(),
            format!("You are a pirate.\n\nArr.\n\nSKILLS{END}")
        );
    }

    #[test]
    fn without_the_read_tool_there_are_no_skills() {
        let built = SystemPrompt {
            custom: Some("C"),
            skills: Some("SKILLS"),
            ..prompt(vec![tool("bash")])
        };
        assert_eq!(built.build(), format!("C{END}"));
    }

    #[test]
    fn without_tools_the_list_says_so() {
        let built = prompt(vec![]).build();
        assert!(built.contains("Available tools:\n(none)\n"), "{built}");
        assert!(!built.contains("bash"), "{built}");
    }

    #[test]
    fn search_tools_are_preferred_when_there_are_any() {
        let built = prompt(vec![tool("bash"), tool("grep")]).build();
        assert!(
            built.contains("- To explore files, prefer the grep"),
            "{built}"
        );
    }
}
