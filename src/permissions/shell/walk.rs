//! Walks the syntax tree of a line in the order of execution.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

use tree_sitter::Node;

use super::lexer::read_word;
use super::values::Values;
use super::word::Word;
use super::wrappers::Dialect;
use super::{
    BaseFolders, Command, FileUse, Line, MAX_DEPTH, MAX_SCRIPTS, NotUnderstood, effects,
    syntax_tree, unnamed_reads,
};
use pi_base::normalize;

/// Nodes that are replaced by other text when the line runs.
const EXPANSIONS: [&str; 5] = [
    "arithmetic_expansion",
    "command_substitution",
    "expansion",
    "process_substitution",
    "simple_expansion",
];

/// Tests that evaluate both sides as arithmetic.
const ARITHMETIC_TESTS: [&str; 6] = ["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];

/// The state of the walk through a line and the scripts in it.
pub(super) struct Walk<'p> {
    pub line: Line,
    base_folders: &'p BaseFolders,
    /// The folders in which the next command may run; see [`FileUse::folders`].
    pub folders: Option<Vec<PathBuf>>,
    /// Functions that the line defines. Their bodies count when they are defined.
    pub functions: Vec<String>,
    /// Variables that the line sets.
    pub variables: Vec<String>,
    pub values: Values,
    /// The language of the script that is read.
    pub dialect: Dialect,
    pub depth: usize,
    scripts: usize,
}

/// The input of a command within the line.
#[derive(Clone)]
pub(super) enum Stdin {
    /// The input of the line, of a pipe or a file.
    Unknown,
    /// A heredoc or a herestring, and whether the shell changes it before.
    Text { text: String, is_expanded: bool },
}

impl<'p> Walk<'p> {
    pub fn new(base_folders: &'p BaseFolders) -> Self {
        Self {
            line: Line::default(),
            base_folders,
            folders: Some(vec![base_folders.cwd.clone()]),
            functions: Vec::new(),
            variables: Vec::new(),
            values: Values::default(),
            dialect: Dialect::Bash,
            depth: 0,
            scripts: 0,
        }
    }

    /// Adds the commands of a script.
    pub fn script(&mut self, source: &str) -> Result<(), NotUnderstood> {
        let commands = self.commands_of(source, Dialect::Bash)?;
        self.line.commands.extend(commands);
        Ok(())
    }

    /// Returns the line with the files that its variables stand for.
    pub fn finish(mut self) -> Line {
        for mut reads in std::mem::take(&mut self.line.unnamed_reads) {
            for word in reads.resolve(&self.values, self.base_folders) {
                self.line.files.push(FileUse {
                    word,
                    is_write: false,
                    is_redirection: false,
                    folders: reads.folders.clone(),
                });
            }
            if reads.reads_something() {
                self.line.unnamed_reads.push(reads);
            }
        }
        self.line
    }

    /// Returns the commands of a script, and adds its files to the line.
    pub fn commands_of(
        &mut self,
        source: &str,
        dialect: Dialect,
    ) -> Result<Vec<Command>, NotUnderstood> {
        if self.scripts >= MAX_SCRIPTS {
            return Err(NotUnderstood::new("scripts are nested too deep"));
        }
        self.scripts += 1;
        let tree = syntax_tree(source)?;
        let around = std::mem::replace(&mut self.dialect, dialect);
        // A function of the line around it is not known to a script.
        let functions = std::mem::take(&mut self.functions);
        let mut commands = Vec::new();
        let mut visit = ScriptWalk {
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
        self.functions = functions;
        self.dialect = around;
        self.scripts -= 1;
        result.map(|()| commands)
    }

    /// Adds a file that the line uses.
    pub fn file(&mut self, word: Word, is_write: bool, is_redirection: bool) {
        self.line.files.push(FileUse {
            word,
            is_write,
            is_redirection,
            folders: self.folders.clone(),
        });
    }

    /// Adds the files that a command visibly uses.
    pub fn files_of(&mut self, command: &Command) {
        for (word, is_write) in effects::file_arguments(&command.words) {
            self.file(word, is_write, false);
        }
        if let Some(mut reads) = unnamed_reads::unnamed_reads(command) {
            reads.folders.clone_from(&self.folders);
            self.line.unnamed_reads.push(reads);
        }
    }

    /// Follows `cd`. Its success is not known, so the folder before remains possible.
    pub fn change_folder(&mut self, words: &[Word]) {
        let target = words[1..]
            .iter()
            .find(|word| !word.known_prefix().starts_with('-') || word.is_open());
        let paths = match target {
            None => self.base_folders.home.clone().map(|home| vec![home]),
            Some(word) => FileUse {
                word: word.clone(),
                is_write: false,
                is_redirection: false,
                folders: self.folders.clone(),
            }
            .paths(self.base_folders),
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

/// The walk through one script, which adds its commands to a list.
pub(super) struct ScriptWalk<'w, 'p, 's> {
    pub walk: &'w mut Walk<'p>,
    pub source: &'s str,
    pub commands: &'w mut Vec<Command>,
}

/// Returns the children of a node, including tokens such as `>`.
pub(super) fn children<'t>(node: Node<'t>) -> Vec<Node<'t>> {
    let mut cursor = node.walk();
    node.children(&mut cursor).collect()
}

impl ScriptWalk<'_, '_, '_> {
    /// Returns a part of the script.
    pub fn text(&self, range: Range<usize>) -> &str {
        self.source.get(range).unwrap_or_default()
    }

    /// Visits a node. Fails if nodes are nested too deep.
    pub fn node(&mut self, node: Node<'_>, stdin: &Stdin) -> Result<(), NotUnderstood> {
        if self.walk.depth >= MAX_DEPTH {
            return Err(NotUnderstood::new("it is nested too deep"));
        }
        self.walk.depth += 1;
        let result = self.visit(node, stdin);
        self.walk.depth -= 1;
        result
    }

    fn visit(&mut self, node: Node<'_>, stdin: &Stdin) -> Result<(), NotUnderstood> {
        match node.kind() {
            "command" | "declaration_command" | "unset_command" => self.command(node, stdin),
            "redirected_statement" => self.redirected(node, stdin),
            "variable_assignment" => self.assignment_statement(node),
            "function_definition" => self.function(node),
            "arithmetic_expansion" | "c_style_for_statement" | "subscript" => {
                let text = self.text(node.byte_range()).to_owned();
                self.check_arithmetic(&text)?;
                self.set_in_arithmetic(&text)?;
                self.each_child(node, stdin)
            }
            "heredoc_body" => {
                let text = self.text(node.byte_range()).to_owned();
                if text.contains("$((") || text.contains("$[") {
                    self.check_arithmetic(&text)?;
                }
                self.each_child(node, stdin)
            }
            "for_statement" => self.for_statement(node, stdin),
            "expansion" => {
                let text = self.text(node.byte_range()).to_owned();
                self.walk.values.set_by_expansion(&text);
                self.each_child(node, stdin)
            }
            "compound_statement" | "test_command" => self.test(node, stdin),
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
    pub fn each_child(&mut self, node: Node<'_>, stdin: &Stdin) -> Result<(), NotUnderstood> {
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
    fn check_text(&self, range: Range<usize>) -> Result<(), NotUnderstood> {
        let mut chars = self.text(range).chars();
        while let Some(char) = chars.next() {
            let rest = chars.as_str();
            match char {
                '\\' => _ = chars.next(),
                '`' => return Err(NotUnderstood::new("a backquote was not recognized")),
                '$' | '<' | '>' if rest.starts_with('(') => {
                    return Err(NotUnderstood::new("a substitution was not recognized"));
                }
                '$' if rest.starts_with('{') => {
                    return Err(NotUnderstood::new("an expansion was not recognized"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Visits a group, or a test such as `[[ … ]]` and `(( … ))`.
    fn test(&mut self, node: Node<'_>, stdin: &Stdin) -> Result<(), NotUnderstood> {
        let text = self.text(node.byte_range()).to_owned();
        let is_arithmetic = text.starts_with("((");
        if self.walk.dialect == Dialect::Posix && (is_arithmetic || text.starts_with("[[")) {
            // Shells without these tests run `x` in `((x))` and in `[[ a || x ]]`.
            return Err(NotUnderstood::new("not every shell knows the test"));
        }
        let inside = text.trim_start_matches('[').trim_end_matches(']');
        if text.starts_with('[') && (inside.trim_start() == inside || inside.trim_end() == inside) {
            // Without blanks the bracket is a part of a word, and `||` joins commands.
            return Err(NotUnderstood::new("a bracket belongs to a word"));
        }
        let compares = || ARITHMETIC_TESTS.iter().any(|it| text.contains(it));
        if is_arithmetic || text.starts_with('[') && compares() {
            self.check_arithmetic(&text)?;
            self.set_in_arithmetic(&text)?;
        }
        self.each_child(node, stdin)
    }

    /// Fails if an expression has a quote and a substitution: the parser and the shell may disagree
    /// about where the quoted text ends.
    fn check_arithmetic(&self, text: &str) -> Result<(), NotUnderstood> {
        let has_substitution =
            text.matches("$(").count() > text.matches("$((").count() || text.contains('`');
        match text.contains('\'') && has_substitution {
            true => Err(NotUnderstood::new("an expression has a quote")),
            false => Ok(()),
        }
    }

    /// Checks that nothing but blanks is between two parts of a line.
    pub fn check_gap(&self, gap: Range<usize>, with_lines: bool) -> Result<(), NotUnderstood> {
        let text = self.text(gap).replace("\\\n", "");
        let is_blank = |char: char| matches!(char, ' ' | '\t') || with_lines && char == '\n';
        match text.chars().find(|char| !is_blank(*char)) {
            None => Ok(()),
            Some(char) => Err(NotUnderstood::new(format!("{char:?} was not recognized"))),
        }
    }

    /// Reads the word in a range, and visits the substitutions in it.
    pub fn word(&mut self, range: Range<usize>, nodes: &[Node<'_>]) -> Result<Word, NotUnderstood> {
        let mut expansions = BTreeMap::new();
        for node in nodes {
            find_expansions(*node, &mut expansions, 0)?;
            self.substitutions(*node)?;
        }
        let ends = &expansions;
        let is_bash = self.walk.dialect == Dialect::Bash;
        read_word(self.source, range.start, range.end, ends, is_bash)
    }

    /// Reads a word without visiting the substitutions in it.
    pub fn plain_word(&self, node: Node<'_>) -> Result<Word, NotUnderstood> {
        let mut expansions = BTreeMap::new();
        find_expansions(node, &mut expansions, 0)?;
        let is_bash = self.walk.dialect == Dialect::Bash;
        let (start, end) = (node.start_byte(), node.end_byte());
        read_word(self.source, start, end, &expansions, is_bash)
    }

    /// Visits the commands that run while a word or an expression is expanded.
    pub fn substitutions(&mut self, node: Node<'_>) -> Result<(), NotUnderstood> {
        self.node(node, &Stdin::Unknown)
    }

    fn function(&mut self, node: Node<'_>) -> Result<(), NotUnderstood> {
        self.each_child(node, &Stdin::Unknown)?;
        // Elsewhere the definition may not be reached, or hold in another shell only.
        let is_outermost = node
            .parent()
            .is_some_and(|parent| parent.kind() == "program");
        let next = node.next_sibling().map(|next| next.kind());
        if is_outermost
            && matches!(next, None | Some(";" | "\n"))
            && let Some(name) = node.child_by_field_name("name")
        {
            let name = self.text(name.byte_range()).to_owned();
            self.walk.functions.push(name);
        }
        Ok(())
    }

    /// Visits a pipe. The input of its commands is not known.
    fn pipeline(&mut self, node: Node<'_>) -> Result<(), NotUnderstood> {
        let folders = self.walk.folders.clone();
        self.each_child(node, &Stdin::Unknown)?;
        // Each command of a pipe runs in a shell of its own.
        self.walk.folders = folders;
        Ok(())
    }
}

/// Fails if arithmetic may take the text for an index with a substitution, such as `a[$(rm x)]`.
pub(super) fn check_index(text: &str) -> Result<(), NotUnderstood> {
    let index = text.split_once('[').map(|(_, index)| index);
    match index.is_some_and(|index| index.contains("$(") || index.contains('`')) {
        true => Err(NotUnderstood::new("an index may contain a substitution")),
        false => Ok(()),
    }
}

/// Finds the outermost expansions in a node.
fn find_expansions(
    node: Node<'_>,
    found: &mut BTreeMap<usize, usize>,
    depth: usize,
) -> Result<(), NotUnderstood> {
    if depth > MAX_DEPTH {
        return Err(NotUnderstood::new("it is nested too deep"));
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
