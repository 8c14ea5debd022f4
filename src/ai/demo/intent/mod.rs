//! Recognises plain requests with a few patterns.

use std::iter::once;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::Value;

use super::quotes::{Kind, Quoted, is_placeholder};

/// An action that the user asks for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Intent {
    List {
        path: String,
    },
    Read {
        path: String,
    },
    Run {
        command: String,
    },
    Edit {
        path: String,
        old: String,
        new: String,
    },
    Write {
        path: String,
        content: String,
    },
    Search {
        text: String,
        path: Option<String>,
    },
    FindFiles {
        pattern: String,
    },
    /// A call of any tool, by its name.
    Call {
        tool: String,
        arguments: Value,
    },
}

/// Texts of more bytes are treated as material, not as requests.
const MAX_REQUEST_BYTES: usize = 8_000;

macro_rules! pattern {
    ($name:ident, $($part:literal)+) => {
        static $name: LazyLock<Regex> = LazyLock::new(|| {
            Regex::new(concat!("(?is)", $($part),+))
                .expect("a fixed pattern; the tests of this module use all of them")
        });
    };
}

pattern!(FILES_GIVEN, r#"<file name="[^"]*">.*?</file>"#);
pattern!(
    SEPARATOR,
    r"\s*\n\s*|[.!?]\s+|,?\s+and\s+then\s+|,?\s+then\s+|,\s+and\s+|[,;:]\s+|\s+and\s+"
);
pattern!(
    POLITE,
    r"^\s*(?:(?:and|then|also|now|first|second|finally|next|please|kindly|hey|hi|hello|ok|okay|pi"
    r"|(?:can|could|would|will)\s+you|i\s+want\s+you\s+to|i'd\s+like\s+you\s+to|let's|let\s+us)[,:]?\s+)*"
);
pattern!(
    VERB,
    r"^(?:[$!]\s*\S|(?:list|ls|show|display|what|what's|which|read|cat|open|print|view|look|run|execute|exec"
    r"|replace|change|substitute|write|create|make|save|put|find|search|grep|where|call|use|invoke|edit|in"
    r"|tell|say|explain|give|report|summari[sz]e|describe)\b)"
);
pattern!(
    TAIL,
    r"(?:,?\s+(?:please|for\s+me|now|thanks|thank\s+you))+\s*$"
);

pattern!(
    RUN,
    r"^(?:(?:run|execute|exec):?\s+(?:(?:the\s+|this\s+)?(?:shell\s+|bash\s+)?command:?\s+)?|[$!]\s*)(.+)$"
);
pattern!(LS, r"^(?:ls|list)(?:\s+-\S+)*(?:\s+(\S+))?$");
pattern!(
    LIST,
    r"^(?:list|show|display|print)(?:\s+(?:me|all|the|every|of|our|my|your))*"
    r"(?:\s+(?:files?|folders?|subfolders?|director(?:y|ies)|contents?|entries|everything|and|or))+"
    r"(?:\s+(?:in|of|under|inside|at|from|the|this|current|working|my|our|folder|directory|here|project|repo|repository))*"
    r"(?:\s+(\S+?))??(?:\s+(?:folder|directory))?$"
);
pattern!(
    WHAT_FILES,
    r"^(?:what|which)\s+(?:files|folders|files\s+and\s+folders)\s+(?:are|exist|do\s+(?:we|you|i)\s+have)"
    r"(?:\s+(?:there|here|in|inside|under|the|this|current|folder|directory|project))*(?:\s+(\S+))?$"
);
pattern!(
    WHAT_IS_IN,
    r"^what(?:'s|\s+is)\s+(?:here|(?:in|inside)(?:\s+(?:the|this|current|file|folder|directory|project|here))*(?:\s+(\S+))?)$"
);
pattern!(
    READ,
    r"^(read|cat|open|view|print|display|show|look\s+at)(?:\s+(?:me|the|files?|contents?|of|in|my|our))*\s+(\S.*)$"
);
pattern!(READ_TARGETS, r"\s*,\s*(?:and\s+)?|\s+and\s+");
pattern!(
    EDIT,
    r"^(?:replace|change|substitute)\s+(?:(?:the|text|word|string)\s+)*(\S.*?)\s+(?:with|by|to|into)\s+(\S.*?)"
    r"(?:\s+in\s+(?:the\s+)?(?:file\s+)?(\S+))?$"
);
pattern!(ABOUT_FILE, r"^(?:in|edit)\s+(?:the\s+)?(?:file\s+)?(\S+)$");
pattern!(
    WRITE_FILE_WITH,
    r"^(?:write|create|make)\s+(?:(?:a|the|new|text|file|called|named)\s+)*(\S+)\s+"
    r"(?:with|containing|saying|that\s+(?:says|contains)):?\s+(?:(?:the|text|contents?|words?|line)\s+)*(\S.*)$"
);
pattern!(
    WRITE_TO_FILE,
    r"^(?:write|put|save)\s+(?:the\s+(?:text|words?|line)\s+)?(\S.*?)\s+(?:to|into|in)\s+"
    r"(?:(?:a|the|new|file|called|named)\s+)*(\S+)$"
);
pattern!(
    EMPTY_FILE,
    r"^(?:create|make)\s+(?:(?:an|a|the|new|empty|file|called|named)\s+)*(\S+)$"
);
pattern!(
    FIND_FILES,
    r"^(?:find|search\s+for|look\s+for|list)\s+(?:(?:all|the)\s+)*(?:files\s+(?:named|called|matching|like)\s+(\S+)|(\*\S+)(?:\s+files)?)$"
);
pattern!(
    SEARCH_PATH_FOR,
    r"^(?:search|grep)\s+(?:in\s+)?(\S+)\s+for\s+(?:(?:the|text|word|string)\s+)*(\S+)$"
);
pattern!(
    SEARCH,
    r"^(?:find|search|search\s+for|grep|grep\s+for|look\s+for|where\s+is)\s+(?:(?:the|text|word|string)\s+)*"
    r"(\S+)(?:\s+(?:used|mentioned|defined))?(?:\s+in(?:\s+(?:the|all|file|files|folder|here|this|project))*(?:\s+(\S+))?)?$"
);
pattern!(
    CALL,
    r"^(?:call|use|invoke)\s+(?:the\s+)?(?:tool\s+)?(\S+)(\s+tool)?(?:\s+with)?(?:\s+(?:the\s+)?arguments?)?:?\s*(\S)?$"
);

/// Returns the requests in the user's text, in order. `tools` are the names of the available
/// tools.
pub(super) fn parse_intents(text: &str, tools: &[&str]) -> Vec<Intent> {
    let text = FILES_GIVEN.replace_all(text, "\n");
    if text.len() > MAX_REQUEST_BYTES {
        return Vec::new();
    }
    let quoted = Quoted::new(&text);
    let mut parser = Parser {
        quoted: &quoted,
        tools,
        file: None,
    };
    let clauses = clauses(&quoted.text);
    let intents = clauses.iter().flat_map(|clause| parser.intents(clause));
    intents.collect()
}

/// Splits a sentence into the parts that start with a verb.
fn clauses(text: &str) -> Vec<String> {
    let mut clauses: Vec<String> = Vec::new();
    let mut start = 0;
    // End of the last part that was used.
    let mut used = 0;
    let ends = SEPARATOR.find_iter(text).map(|found| found.range());
    for end in ends.chain(once(text.len()..text.len())) {
        let part = &text[start..end.start];
        start = end.end;
        let spaced = format!("{part} ");
        let bare = POLITE.replace(&spaced, "");
        let bare = bare.trim();
        if bare.is_empty() {
            continue; // "Then," alone means nothing yet
        }
        match clauses.last_mut() {
            Some(last) if !VERB.is_match(bare) => last.push_str(&text[used..end.start]),
            _ => clauses.push(bare.to_owned()),
        }
        used = end.start;
    }
    for clause in &mut clauses {
        *clause = without_tail(clause).to_owned();
    }
    clauses
}

/// Removes "please" and a full stop at the end, but keeps the dot of `git add .`.
fn without_tail(clause: &str) -> &str {
    let mut clause = clause.trim();
    loop {
        let shorter = clause.trim_end_matches(['.', '!', '?', ',', ';', ':']);
        if !shorter.ends_with(char::is_whitespace) && !shorter.is_empty() {
            clause = shorter;
        }
        match TAIL.find(clause) {
            Some(tail) if tail.start() > 0 => clause = clause[..tail.start()].trim_end(),
            _ => return clause,
        }
    }
}

struct Parser<'a> {
    quoted: &'a Quoted,
    tools: &'a [&'a str],
    /// The last file that was mentioned.
    file: Option<String>,
}

impl Parser<'_> {
    fn intents(&mut self, clause: &str) -> Vec<Intent> {
        if let Some(found) = ABOUT_FILE.captures(clause) {
            self.file = Some(self.part(&found, 1));
            return Vec::new();
        }
        let intent = (self.call(clause))
            .or_else(|| self.run(clause))
            .or_else(|| self.find(clause))
            .or_else(|| self.write(clause))
            .or_else(|| self.edit(clause));
        let intents = match intent {
            Some(intent) => vec![intent],
            None => match self.read(clause) {
                intents if intents.is_empty() => self.list(clause).into_iter().collect(),
                intents => intents,
            },
        };
        if let Some(
            Intent::Read { path } | Intent::Write { path, .. } | Intent::Edit { path, .. },
        ) = intents.last()
        {
            self.file = Some(path.clone());
        }
        intents
    }

    fn part(&self, found: &Captures, number: usize) -> String {
        let part = found.get(number).map_or("", |part| part.as_str());
        self.quoted.meaning(part)
    }

    fn call(&self, clause: &str) -> Option<Intent> {
        let found = CALL.captures(clause)?;
        let tool = self.part(&found, 1);
        let said_tool = found.get(2).is_some() || clause.to_lowercase().contains(" tool ");
        if !said_tool && !self.tools.contains(&tool.as_str()) {
            return None;
        }
        let json = self.quoted.first(Kind::Json, clause).unwrap_or("{}");
        let arguments = serde_json::from_str(json).ok()?;
        Some(Intent::Call { tool, arguments })
    }

    fn run(&self, clause: &str) -> Option<Intent> {
        let found = RUN.captures(clause)?;
        let said = &found[1];
        let command = match self.quoted.first(Kind::Code, said) {
            Some(code) => code.trim().to_owned(),
            None if said.to_lowercase().starts_with("the ") => return None,
            None => self.quoted.meaning(said),
        };
        Some(Intent::Run { command })
    }

    fn find(&self, clause: &str) -> Option<Intent> {
        if let Some(found) = FIND_FILES.captures(clause) {
            let number = if found.get(1).is_some() { 1 } else { 2 };
            let pattern = self.part(&found, number);
            return Some(Intent::FindFiles { pattern });
        }
        if let Some(found) = SEARCH_PATH_FOR.captures(clause) {
            let path = Some(self.part(&found, 1));
            let text = self.part(&found, 2);
            return Some(Intent::Search { text, path });
        }
        let found = SEARCH.captures(clause)?;
        let path = found.get(2).map(|_| self.part(&found, 2));
        let text = self.part(&found, 1);
        Some(Intent::Search { text, path })
    }

    fn write(&self, clause: &str) -> Option<Intent> {
        if let Some(found) = WRITE_FILE_WITH.captures(clause)
            && is_file_like(&found[1])
        {
            let path = self.part(&found, 1);
            let content = as_file(self.part(&found, 2));
            return Some(Intent::Write { path, content });
        }
        if let Some(found) = WRITE_TO_FILE.captures(clause) {
            let path = self.part(&found, 2);
            let content = as_file(self.part(&found, 1));
            return Some(Intent::Write { path, content });
        }
        let found = EMPTY_FILE.captures(clause)?;
        is_file_like(&found[1]).then(|| Intent::Write {
            path: self.part(&found, 1),
            content: String::new(),
        })
    }

    fn edit(&self, clause: &str) -> Option<Intent> {
        let found = EDIT.captures(clause)?;
        let path = match found.get(3) {
            Some(_) => self.part(&found, 3),
            None => self.file.clone()?,
        };
        let (old, new) = (self.part(&found, 1), self.part(&found, 2));
        Some(Intent::Edit { path, old, new })
    }

    fn read(&self, clause: &str) -> Vec<Intent> {
        if let Some(found) = WHAT_IS_IN.captures(clause)
            && let Some(target) = found.get(1)
            && is_file(target.as_str())
        {
            let path = self.quoted.meaning(target.as_str());
            return vec![Intent::Read { path }];
        }
        let Some(found) = READ.captures(clause) else {
            return Vec::new();
        };
        let names_folder =
            |found: Captures| !found.get(1).is_some_and(|path| is_file(path.as_str()));
        if LIST.captures(clause).is_some_and(names_folder) {
            return Vec::new();
        }
        let certain = ["read", "cat"].contains(&found[1].to_lowercase().as_str());
        let targets = READ_TARGETS.split(found.get(2).map_or("", |rest| rest.as_str()));
        let path = |target: &str| -> Option<Intent> {
            let words: Vec<&str> = target.split_whitespace().collect();
            let word = match words.as_slice() {
                [word] if certain => Some(word),
                words => words.iter().find(|word| is_file_like(word)),
            }?;
            let path = self.quoted.meaning(word);
            Some(Intent::Read { path })
        };
        targets.filter_map(path).collect()
    }

    fn list(&self, clause: &str) -> Option<Intent> {
        let patterns = [&*LS, &*LIST, &*WHAT_FILES, &*WHAT_IS_IN];
        let found = patterns
            .iter()
            .find_map(|pattern| pattern.captures(clause))?;
        let path = match found.get(1).map(|path| path.as_str()) {
            None | Some("files" | "everything" | "here") => ".".to_owned(),
            Some(path) => self.quoted.meaning(path),
        };
        Some(Intent::List { path })
    }
}

/// Returns true if the word may be the name of a file.
fn is_file_like(word: &str) -> bool {
    word.contains(['.', '/']) || word.chars().all(is_placeholder)
}

/// Returns true if the path has a file name extension.
fn is_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    name.trim_start_matches('.').contains('.')
}

/// Adds the newline with which text files end.
fn as_file(mut text: String) -> String {
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests;
