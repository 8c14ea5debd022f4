//! Walks the syntax tree of a line in the order of execution.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

use tree_sitter::Node;

use super::lexer::read_word;
use super::word::{Piece, Word};
use super::wrappers::{self, Inner};
use super::{Command, FileUse, GaveUp, Line, MAX_DEPTH, MAX_SCRIPTS, Place, effects, syntax_tree};
use crate::paths::normalize;

/// Variables that change nothing of what runs.
const HARMLESS_VARIABLES: [&str; 14] = [
    "CI",
    "COLUMNS",
    "FORCE_COLOR",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LINES",
    "NODE_ENV",
    "NO_COLOR",
    "PYTHONUNBUFFERED",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "TERM",
    "TZ",
];

/// Nodes that are replaced by other text when the line runs.
const EXPANSIONS: [&str; 5] = [
    "arithmetic_expansion",
    "command_substitution",
    "expansion",
    "process_substitution",
    "simple_expansion",
];

/// Words that begin no command where bash reads a name. The parser takes some of them for one, such
/// as the second `!` in `! ! rm`.
const RESERVED_WORDS: [&str; 20] = [
    "!", "[[", "]]", "case", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if",
    "in", "select", "then", "until", "while", "{", "}",
];

/// Commands that evaluate arguments as arithmetic, where an index may contain a substitution.
const ARITHMETIC_COMMANDS: [&str; 13] = [
    "[", "declare", "export", "let", "local", "mapfile", "printf", "read", "readonly", "test",
    "typeset", "unset", "wait",
];

pub(super) struct Walk<'p> {
    pub line: Line,
    place: &'p Place,
    /// See [`FileUse::folders`].
    folders: Option<Vec<PathBuf>>,
    /// Functions that the line defines. Their bodies count when they are defined.
    functions: Vec<String>,
    depth: usize,
    scripts: usize,
}

/// The input of a command within the line.
#[derive(Clone)]
enum Stdin {
    /// The input of the line, of a pipe or a file.
    Unknown,
    /// A heredoc or a herestring, and whether the shell changes it before.
    Text { text: String, is_expanded: bool },
}

impl<'p> Walk<'p> {
    pub fn new(place: &'p Place) -> Self {
        Self {
            line: Line::default(),
            place,
            folders: Some(vec![place.cwd.clone()]),
            functions: Vec::new(),
            depth: 0,
            scripts: 0,
        }
    }

    /// Adds the commands of a script.
    pub fn script(&mut self, source: &str) -> Result<(), GaveUp> {
        let commands = self.commands_of(source)?;
        self.line.commands.extend(commands);
        Ok(())
    }

    fn commands_of(&mut self, source: &str) -> Result<Vec<Command>, GaveUp> {
        if self.scripts >= MAX_SCRIPTS {
            return Err(GaveUp::new("scripts are nested too deep"));
        }
        self.scripts += 1;
        let tree = syntax_tree(source)?;
        let mut commands = Vec::new();
        let mut visit = Visit {
            walk: self,
            source,
            commands: &mut commands,
        };
        let root = tree.root_node();
        // The parser takes an escaped blank for a blank.
        let outside = visit
            .check_gap(0..root.start_byte(), true)
            .and_then(|()| visit.check_gap(root.end_byte()..source.len(), true));
        let result = outside.and_then(|()| visit.node(root, &Stdin::Unknown));
        self.scripts -= 1;
        result.map(|()| commands)
    }

    fn file(&mut self, word: Word, is_write: bool, is_redirection: bool) {
        self.line.files.push(FileUse {
            word,
            is_write,
            is_redirection,
            folders: self.folders.clone(),
        });
    }

    /// Follows `cd`. Its success is not known, so the folder before remains possible.
    fn change_folder(&mut self, words: &[Word]) {
        let target = words[1..]
            .iter()
            .find(|word| !word.known_prefix().starts_with('-') || word.is_open());
        let paths = match target {
            None => self.place.home.clone().map(|home| vec![home]),
            Some(word) => FileUse {
                word: word.clone(),
                is_write: false,
                is_redirection: false,
                folders: self.folders.clone(),
            }
            .paths(self.place),
        };
        let is_plain = words[0].known().as_deref() == Some("cd")
            && words[1..].iter().all(|word| word.known_prefix() != "-");
        match (&mut self.folders, paths.filter(|_| is_plain)) {
            (Some(folders), Some(paths)) => {
                for path in paths {
                    let path = normalize(&path);
                    if !folders.contains(&path) {
                        folders.push(path);
                    }
                }
                if folders.len() > 16 {
                    self.folders = None;
                }
            }
            _ => self.folders = None,
        }
    }
}

/// The walk through one script.
struct Visit<'w, 'p, 's> {
    walk: &'w mut Walk<'p>,
    source: &'s str,
    commands: &'w mut Vec<Command>,
}

fn children<'t>(node: Node<'t>) -> Vec<Node<'t>> {
    let mut cursor = node.walk();
    node.children(&mut cursor).collect()
}

impl Visit<'_, '_, '_> {
    fn text(&self, range: Range<usize>) -> &str {
        self.source.get(range).unwrap_or_default()
    }

    fn node(&mut self, node: Node<'_>, stdin: &Stdin) -> Result<(), GaveUp> {
        if self.walk.depth >= MAX_DEPTH {
            return Err(GaveUp::new("it is nested too deep"));
        }
        self.walk.depth += 1;
        let result = self.visit(node, stdin);
        self.walk.depth -= 1;
        result
    }

    fn visit(&mut self, node: Node<'_>, stdin: &Stdin) -> Result<(), GaveUp> {
        match node.kind() {
            "command" | "declaration_command" | "unset_command" => self.command(node, stdin),
            "redirected_statement" => self.redirected(node, stdin),
            "variable_assignment" => self.assignment_statement(node),
            "function_definition" => self.function(node),
            "for_statement" => self.for_statement(node, stdin),
            "pipeline" => self.pipeline(node),
            "subshell" | "command_substitution" | "process_substitution" => {
                let folders = self.walk.folders.clone();
                self.each_child(node, stdin)?;
                self.walk.folders = folders;
                Ok(())
            }
            _ => self.each_child(node, stdin),
        }
    }

    /// Visits the children. Text between them has to be blank: otherwise the parser has lost
    /// something.
    fn each_child(&mut self, node: Node<'_>, stdin: &Stdin) -> Result<(), GaveUp> {
        let children = children(node);
        let is_text = matches!(
            node.kind(),
            "string" | "heredoc_body" | "expansion" | "arithmetic_expansion"
        );
        let mut end = node.start_byte();
        for child in children {
            if is_text {
                self.check_text(end..child.start_byte())?;
            } else {
                self.check_gap(end..child.start_byte(), true)?;
            }
            end = child.end_byte();
            self.node(child, stdin)?;
        }
        match node.kind() {
            "test_command" => {
                self.check_gap(end..node.end_byte(), true)?;
                check_index(self.text(node.byte_range()).trim_start_matches('['))
            }
            _ if !is_text && node.child_count() > 0 => self.check_gap(end..node.end_byte(), true),
            "raw_string" | "ansi_c_string" | "comment" => Ok(()),
            // A token of the grammar, such as `$(`.
            _ if !node.is_named() => Ok(()),
            _ => self.check_text(end..node.end_byte()),
        }
    }

    /// Checks that the parser has not taken a substitution for text.
    fn check_text(&self, range: Range<usize>) -> Result<(), GaveUp> {
        let mut chars = self.text(range).chars();
        while let Some(char) = chars.next() {
            let rest = chars.as_str();
            match char {
                '\\' => _ = chars.next(),
                '`' => return Err(GaveUp::new("a backquote was not recognized")),
                '$' | '<' | '>' if rest.starts_with('(') => {
                    return Err(GaveUp::new("a substitution was not recognized"));
                }
                '$' if rest.starts_with('{') => {
                    return Err(GaveUp::new("an expansion was not recognized"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Checks that nothing but blanks is between two parts of a line.
    fn check_gap(&self, gap: Range<usize>, with_lines: bool) -> Result<(), GaveUp> {
        let text = self.text(gap).replace("\\\n", "");
        let is_blank = |char: char| matches!(char, ' ' | '\t') || with_lines && char == '\n';
        match text.chars().find(|char| !is_blank(*char)) {
            None => Ok(()),
            Some(char) => Err(GaveUp::new(format!("{char:?} was not recognized"))),
        }
    }

    /// Reads the word in a range, and visits the substitutions in it.
    fn word(&mut self, range: Range<usize>, nodes: &[Node<'_>]) -> Result<Word, GaveUp> {
        let mut expansions = BTreeMap::new();
        for node in nodes {
            find_expansions(*node, &mut expansions, 0)?;
            self.substitutions(*node)?;
        }
        let ends = &expansions;
        let is_bash = self.walk.scripts == 1;
        read_word(self.source, range.start, range.end, ends, is_bash)
    }

    /// Visits the commands that run while a word or an expression is expanded.
    fn substitutions(&mut self, node: Node<'_>) -> Result<(), GaveUp> {
        self.node(node, &Stdin::Unknown)
    }

    fn command(&mut self, node: Node<'_>, stdin: &Stdin) -> Result<(), GaveUp> {
        let mut command = Command::default();
        let mut stdin = stdin.clone();
        // Ranges of words, with their nodes. Parts without a blank between them are one word.
        let mut words: Vec<(Range<usize>, Vec<Node<'_>>)> = Vec::new();
        let mut end = node.start_byte();
        for child in children(node) {
            self.check_gap(end..child.start_byte(), false)?;
            // A line that goes on in the next one ends no word.
            let gap = self.text(end..child.start_byte());
            let touches = gap.replace("\\\n", "").is_empty();
            end = child.end_byte();
            match child.kind() {
                "file_redirect" => self.file_redirect(child)?,
                "herestring_redirect" => stdin = self.herestring(child)?,
                "variable_assignment" if words.is_empty() => {
                    let assignment = self.assignment(child)?;
                    command.assignments.push(assignment);
                }
                "subshell" | "heredoc_redirect" | "array" => {
                    return Err(GaveUp::new("a command has a part that was not recognized"));
                }
                _ => match words.last_mut() {
                    Some((range, nodes)) if touches => {
                        range.end = child.end_byte();
                        nodes.push(child);
                    }
                    _ => words.push((child.byte_range(), vec![child])),
                },
            }
        }
        for (range, nodes) in words {
            let word = self.word(range, &nodes)?;
            command.words.push(word);
        }
        if node.kind() == "declaration_command" {
            self.declaration(&mut command);
        }
        self.finish_command(command, &stdin)
    }

    /// Variables that `export` and the like set count like assignments.
    fn declaration(&mut self, command: &mut Command) {
        let is_harmless = command.words.iter().skip(1).all(|word| {
            let text = word.known_prefix();
            let (name, value) = text.split_once('=').unwrap_or((&text, ""));
            // A flag may make a reference to another variable.
            !text.starts_with('-') && HARMLESS_VARIABLES.contains(&name) && !value.is_empty()
        });
        command.is_transparent = is_harmless && command.words.len() > 1;
    }

    fn finish_command(&mut self, mut command: Command, stdin: &Stdin) -> Result<(), GaveUp> {
        if command.words.is_empty() {
            for (name, value) in std::mem::take(&mut command.assignments) {
                self.set_variable(&name, &value, false);
            }
            return Ok(());
        }
        let name = command.words[0].known().unwrap_or_default();
        if RESERVED_WORDS.contains(&name.as_str()) {
            return Err(GaveUp::new(format!("{name:?} was taken for a command")));
        }
        if ARITHMETIC_COMMANDS.contains(&name.as_str()) {
            for word in &command.words[1..] {
                check_index(&word.quoted())?;
            }
        }
        if self.walk.functions.contains(&name) {
            command.is_transparent = true;
        }
        if matches!(name.as_str(), "cd" | "pushd" | "popd") {
            self.walk.change_folder(&command.words);
        }
        self.unwrap(&mut command, stdin)?;
        command.is_transparent &= !command.has_settings();
        for (word, is_write) in effects::file_arguments(&command.words) {
            self.walk.file(word, is_write, false);
        }
        self.commands.push(command);
        Ok(())
    }

    /// Finds what a command runs in turn.
    fn unwrap(&mut self, command: &mut Command, stdin: &Stdin) -> Result<(), GaveUp> {
        if self.walk.depth >= MAX_DEPTH {
            return Err(GaveUp::new("commands are nested too deep"));
        }
        let Some(wrapped) = wrappers::unwrap(&command.words) else {
            return Ok(());
        };
        command.inner_at = wrapped.at;
        command.is_transparent = wrapped.is_transparent;
        self.walk.depth += 1;
        for inner in wrapped.inner {
            let found = self.inner(inner, stdin)?;
            command.inner.extend(found);
        }
        self.walk.depth -= 1;
        Ok(())
    }

    fn inner(&mut self, inner: Inner, stdin: &Stdin) -> Result<Vec<Command>, GaveUp> {
        match inner {
            Inner::Words { assignments, words } => {
                let mut commands = Vec::new();
                let command = Command {
                    assignments,
                    words,
                    ..Command::default()
                };
                let mut visit = Visit {
                    walk: &mut *self.walk,
                    source: self.source,
                    commands: &mut commands,
                };
                visit.finish_command(command, stdin)?;
                Ok(commands)
            }
            Inner::Script(word) => match word.known() {
                Some(script) => self.walk.commands_of(&script),
                None => {
                    // The open parts may be anything, but the known ones can be seen.
                    let seen = self.walk.commands_of(&as_script(&word));
                    let mut commands = seen.unwrap_or_default();
                    commands.push(open_command(&word));
                    Ok(commands)
                }
            },
            Inner::Stdin => match stdin {
                Stdin::Text {
                    text,
                    is_expanded: false,
                } => self.walk.commands_of(text),
                Stdin::Text { text, .. } => {
                    let mut commands = self.walk.commands_of(text)?;
                    commands.push(open_command(&Word::open("the text of a heredoc")));
                    Ok(commands)
                }
                Stdin::Unknown => Ok(vec![open_command(&Word::open("what stdin contains"))]),
            },
        }
    }

    /// Records a variable that the line sets for what follows, unless it is harmless.
    fn set_variable(&mut self, name: &str, value: &Word, is_plain_name: bool) {
        if name == "HOME" || name == "PWD" {
            // `~` and `$HOME` are somewhere else from here on.
            self.walk.folders = None;
        }
        if is_harmless_in_command(name) || is_shell_variable(name) {
            return;
        }
        let mut word = Word::text(format!("{name}="));
        if !is_plain_name {
            for piece in &value.0 {
                match piece {
                    Piece::Text(text) => word.push_text(text),
                    other => word.0.push(other.clone()),
                }
            }
        }
        self.commands.push(Command {
            words: vec![word],
            ..Command::default()
        });
    }

    fn assignment_statement(&mut self, node: Node<'_>) -> Result<(), GaveUp> {
        let (name, value) = self.assignment(node)?;
        self.set_variable(&name, &value, false);
        Ok(())
    }

    /// Reads an assignment: name, value.
    fn assignment(&mut self, node: Node<'_>) -> Result<(String, Word), GaveUp> {
        let Some(name) = node.child_by_field_name("name") else {
            return Err(GaveUp::new("an assignment has no name"));
        };
        if name.kind() == "subscript" {
            self.substitutions(name)?;
        }
        let text = self.text(name.byte_range()).to_owned();
        let text = text.split('[').next().unwrap_or_default().to_owned();
        let children = children(node);
        let operator = children.iter().find(|it| matches!(it.kind(), "=" | "+="));
        let operator = operator.ok_or_else(|| GaveUp::new("an assignment has no value"))?;
        let values: Vec<_> = (children.iter().copied())
            .filter(|it| it.start_byte() >= operator.end_byte())
            .collect();
        let value = match values.as_slice() {
            [] => Word::default(),
            [one] if one.kind() == "array" => {
                self.substitutions(*one)?;
                Word::open(self.text(one.byte_range()))
            }
            [first, .., last] if first.end_byte() != last.start_byte() || values.len() > 2 => {
                return Err(GaveUp::new("an assignment was not recognized"));
            }
            [first, ..] => {
                let end = values.last().map_or(first.end_byte(), Node::end_byte);
                self.word(operator.end_byte()..end, &values)?
            }
        };
        // Arithmetic evaluates the value of a variable once more.
        for piece in &value.0 {
            if let Piece::Text(text) = piece {
                check_index(text)?;
            }
        }
        Ok((text, value))
    }

    fn function(&mut self, node: Node<'_>) -> Result<(), GaveUp> {
        if let Some(name) = node.child_by_field_name("name") {
            let name = self.text(name.byte_range()).to_owned();
            self.walk.functions.push(name);
        }
        self.each_child(node, &Stdin::Unknown)
    }

    fn for_statement(&mut self, node: Node<'_>, stdin: &Stdin) -> Result<(), GaveUp> {
        if let Some(name) = node.child_by_field_name("variable") {
            let name = self.text(name.byte_range()).to_owned();
            self.set_variable(&name, &Word::default(), true);
        }
        self.each_child(node, stdin)
    }

    /// The input of all commands but the first is what another one writes.
    fn pipeline(&mut self, node: Node<'_>) -> Result<(), GaveUp> {
        let folders = self.walk.folders.clone();
        self.each_child(node, &Stdin::Unknown)?;
        // Each command of a pipe runs in a shell of its own.
        self.walk.folders = folders;
        Ok(())
    }

    fn redirected(&mut self, node: Node<'_>, stdin: &Stdin) -> Result<(), GaveUp> {
        let mut stdin = stdin.clone();
        let mut bodies = Vec::new();
        let mut later = Vec::new();
        let mut end = node.start_byte();
        for child in children(node) {
            self.check_gap(end..child.start_byte(), false)?;
            end = child.end_byte();
            match child.kind() {
                "file_redirect" => {
                    self.file_redirect(child)?;
                    if self.text(child.byte_range()).trim_start().starts_with('<') {
                        stdin = Stdin::Unknown;
                    }
                }
                "herestring_redirect" => stdin = self.herestring(child)?,
                "heredoc_redirect" => stdin = self.heredoc(child, &mut later)?,
                _ => bodies.push(child),
            }
        }
        for body in bodies {
            self.node(body, &stdin)?;
        }
        for (range, nodes) in later {
            // More arguments of the command, after the name of the heredoc.
            let word = self.word(range, &nodes)?;
            let command = self.commands.last_mut();
            let command = command.ok_or_else(|| GaveUp::new("a heredoc has no command"))?;
            if !command.inner.is_empty() || wrappers::unwrap(&command.words).is_some() {
                return Err(GaveUp::new("arguments follow a heredoc"));
            }
            command.words.push(word);
            let words = command.words.clone();
            for (word, is_write) in effects::file_arguments(&words) {
                self.walk.file(word, is_write, false);
            }
        }
        Ok(())
    }

    fn file_redirect(&mut self, node: Node<'_>) -> Result<(), GaveUp> {
        let children = children(node);
        let operator = (children.iter()).find(|it| it.kind().contains(['<', '>']));
        let Some(operator) = operator else {
            return Err(GaveUp::new("a redirection was not recognized"));
        };
        let targets: Vec<_> = (children.iter().copied())
            .filter(|it| it.start_byte() >= operator.end_byte())
            .collect();
        let Some((first, rest)) = targets.split_first() else {
            return Ok(());
        };
        self.check_gap(operator.end_byte()..first.start_byte(), false)?;
        if !rest.is_empty() {
            // The grammar takes the words behind the target for further targets.
            return Err(GaveUp::new("words follow a redirection"));
        }
        let word = self.word(first.byte_range(), &[*first])?;
        let is_descriptor = word.known().is_some_and(|text| {
            let text = text.strip_suffix('-').unwrap_or(&text);
            text.bytes().all(|byte| byte.is_ascii_digit())
        });
        let is_write = match operator.kind() {
            "<" => false,
            ">&" | "<&" | "<&-" | ">&-" if is_descriptor => return Ok(()),
            "<&" => false,
            _ => true,
        };
        self.walk.file(word, is_write, true);
        Ok(())
    }

    fn herestring(&mut self, node: Node<'_>) -> Result<Stdin, GaveUp> {
        let children = children(node);
        let Some(value) = children.last() else {
            return Ok(Stdin::Unknown);
        };
        let word = self.word(value.byte_range(), &[*value])?;
        Ok(match word.known() {
            Some(text) => Stdin::Text {
                text,
                is_expanded: false,
            },
            None => Stdin::Unknown,
        })
    }

    /// Reads a heredoc. Other commands and redirections of its first line are inside its node.
    fn heredoc<'t>(
        &mut self,
        node: Node<'t>,
        later: &mut Vec<(Range<usize>, Vec<Node<'t>>)>,
    ) -> Result<Stdin, GaveUp> {
        let mut stdin = Stdin::Unknown;
        let mut is_quoted = false;
        let mut end = None;
        for child in children(node) {
            match child.kind() {
                "heredoc_start" => {
                    let start = self.text(child.byte_range());
                    is_quoted = start.contains(['\'', '"', '\\']);
                    end = Some(child.end_byte());
                    continue;
                }
                "heredoc_body" => {
                    if !is_quoted {
                        self.substitutions(child)?;
                    }
                    let text = self.text(child.byte_range()).to_owned();
                    let is_expanded = !is_quoted && text.contains(['$', '`', '\\']);
                    stdin = Stdin::Text { text, is_expanded };
                    end = None;
                    continue;
                }
                "heredoc_end" | "file_descriptor" | "<<" | "<<-" => continue,
                "file_redirect" => self.file_redirect(child)?,
                "herestring_redirect" => {
                    return Err(GaveUp::new("a command has two inputs"));
                }
                kind if node
                    .children_by_field_name("argument", &mut node.walk())
                    .any(|argument| argument == child) =>
                {
                    if kind == "array" {
                        return Err(GaveUp::new("an argument was not recognized"));
                    }
                    later.push((child.byte_range(), vec![child]));
                }
                _ => self.node(child, &Stdin::Unknown)?,
            }
            if let Some(end) = end.replace(child.end_byte()) {
                self.check_gap(end..child.start_byte(), false)?;
            }
        }
        Ok(stdin)
    }
}

/// Refuses a text that arithmetic would take for an index with a substitution, such as
/// `a[$(rm x)]`.
fn check_index(text: &str) -> Result<(), GaveUp> {
    let index = text.split_once('[').map(|(_, index)| index);
    match index.is_some_and(|index| index.contains("$(") || index.contains('`')) {
        true => Err(GaveUp::new("an index may contain a substitution")),
        false => Ok(()),
    }
}

/// Returns a script in a word, with a variable in the place of each open part.
fn as_script(word: &Word) -> String {
    let text = |piece: &Piece| match piece {
        Piece::Text(text) => text.clone(),
        Piece::Tilde => "~".to_owned(),
        Piece::Home(_) => "${HOME}".to_owned(),
        Piece::Open(_) => "${_}".to_owned(),
    };
    word.0.iter().map(text).collect()
}

fn open_command(word: &Word) -> Command {
    Command {
        words: vec![Word::open(word.quoted())],
        ..Command::default()
    }
}

/// Returns whether setting the variable for one command changes nothing of what it runs.
pub(super) fn is_harmless_in_command(name: &str) -> bool {
    HARMLESS_VARIABLES.contains(&name)
}

/// Returns whether the variable is one of the script, which programs do not read: a name in small
/// letters that no well-known program reads.
fn is_shell_variable(name: &str) -> bool {
    const READ_BY_PROGRAMS: [&str; 7] = [
        "all_proxy",
        "ftp_proxy",
        "http_proxy",
        "https_proxy",
        "no_proxy",
        "npm_",
        "pnpm_",
    ];
    let is_small = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    !name.is_empty()
        && name.bytes().all(is_small)
        && !READ_BY_PROGRAMS.iter().any(|it| name.starts_with(it))
}

/// Finds the outermost expansions in a node.
fn find_expansions(
    node: Node<'_>,
    found: &mut BTreeMap<usize, usize>,
    depth: usize,
) -> Result<(), GaveUp> {
    if depth > MAX_DEPTH {
        return Err(GaveUp::new("it is nested too deep"));
    }
    if EXPANSIONS.contains(&node.kind()) {
        found.insert(node.start_byte(), node.end_byte());
        return Ok(());
    }
    for child in children(node) {
        find_expansions(child, found, depth + 1)?;
    }
    Ok(())
}
