//! The texts that each program sends to the model in its own words: the system prompt and the
//! descriptions of tools. pi does not copy them from the original, so each program is asked for its
//! own without extensions, and the transcripts contain names in their place. Changes by extensions
//! remain visible.

use std::collections::{BTreeMap, BTreeSet};

use model_server::{Answer, Api, ModelServer};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::normal::Names;
use super::program::Program;
use super::side::{in_lines, root};
use crate::support::{Home, finish};

#[derive(Default)]
pub(super) struct Words {
    /// Lines of the system prompt.
    lines: BTreeSet<String>,
    /// Texts about tools, with what they describe.
    texts: BTreeMap<String, String>,
}

impl Words {
    /// The words of a program, which is started once for this.
    pub async fn for_program(program: &Program) -> &'static Self {
        static OURS: OnceCell<Words> = OnceCell::const_new();
        static ORIGINAL: OnceCell<Words> = OnceCell::const_new();
        static NEWEST: OnceCell<Words> = OnceCell::const_new();
        let place = match program {
            Program::Ours(_) => &OURS,
            Program::Original { node, .. } if node.as_os_str() == "node" => &ORIGINAL,
            Program::Original { .. } => &NEWEST,
        };
        place.get_or_init(|| Self::request(program)).await
    }

    async fn request(program: &Program) -> Self {
        let mut words = Self::default();
        for tools in ["read,bash,edit,write", "read,bash,edit,write,grep,find,ls"] {
            let server = ModelServer::start().await;
            server.push(Answer::text("Hello."));
            let home = Home::with_api(&server, Api::AnthropicMessages);
            // A skill makes the program send its text about skills.
            let skill = home.agent_dir().join("skills/whittling/SKILL.md");
            std::fs::create_dir_all(skill.parent().expect("below a folder")).unwrap();
            std::fs::write(
                &skill,
                "---\nname: whittling\ndescription: Whittles.\n---\n",
            )
            .unwrap();
            let mut command = program.command(&home);
            command.args(["--mode", "json", "--tools", tools, "hello"]);
            finish(command, "").await.ok();
            let names = Names::new(&root(&home), &server.url());
            let mut body = server.last_request().body;
            in_lines(&mut body["system"]);
            words.learn(&names.value(&body));
        }
        words
    }

    fn learn(&mut self, body: &Value) {
        for block in body["system"].as_array().into_iter().flatten() {
            let lines = block["text"].as_array().into_iter().flatten();
            let lines = lines.filter_map(Value::as_str).map(str::to_owned);
            self.lines.extend(lines);
        }
        for tool in body["tools"].as_array().into_iter().flatten() {
            let name = tool["name"].as_str().expect("tools have names");
            self.learn_texts(name, tool);
        }
    }

    fn learn_texts(&mut self, at: &str, value: &Value) {
        for (name, member) in value.as_object().into_iter().flatten() {
            let at = format!("{at}.{name}");
            match member.as_str() {
                Some(text) if name == "description" => {
                    let known = self.texts.entry(text.to_owned());
                    known.or_insert_with(|| format!("$WORDS {at}"));
                }
                _ => self.learn_texts(&at, member),
            }
        }
    }

    /// Replaces the program's own words in a request.
    pub fn name(&self, request: &mut Value) {
        let body = &mut request["body"];
        for block in body["system"].as_array_mut().into_iter().flatten() {
            if let Some(lines) = block["text"].as_array() {
                let lines: Vec<Value> = lines.iter().filter_map(|line| self.line(line)).collect();
                block["text"] = json!(lines);
            }
        }
        for tool in body["tools"].as_array_mut().into_iter().flatten() {
            self.name_texts(tool);
        }
    }

    /// The tools that the prompt lists matter; its paragraphs do not.
    fn line(&self, line: &Value) -> Option<Value> {
        let text = line.as_str()?;
        if text.is_empty() {
            return None;
        }
        if !self.lines.contains(text) {
            return Some(line.clone());
        }
        let (tool, _) = text.strip_prefix("- ")?.split_once(": ")?;
        let is_name = tool.chars().all(|sign| sign.is_ascii_lowercase());
        is_name.then(|| json!(format!("- {tool}: $WORDS")))
    }

    fn name_texts(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Some(name) = self.texts.get(text) {
                    name.clone_into(text);
                }
            }
            Value::Array(elements) => elements.iter_mut().for_each(|one| self.name_texts(one)),
            Value::Object(members) => members.values_mut().for_each(|one| self.name_texts(one)),
            _ => {}
        }
    }
}
