//! Reads assignments: the variables that a line sets, and what programs run because of them.

use tree_sitter::Node;

use super::simple_command::open_command;
use super::walk::{ScriptWalk, Stdin, check_index, children};
use super::word::{Piece, Word};
use super::wrappers::{Dialect, Inner};
use super::{Command, NotUnderstood, variables};

impl ScriptWalk<'_, '_, '_> {
    /// Adds what runs because of the variables that are set for the command, or by it.
    pub fn run_by_settings(&mut self, command: &mut Command) -> Result<(), NotUnderstood> {
        let mut settings = command.assignments.clone();
        let name = command.words[0].known().unwrap_or_default();
        if variables::DECLARING.contains(&name.as_str()) {
            self.walk.values.declare(&command.words[1..]);
            for word in &command.words[1..] {
                let start = word.known_prefix();
                if let Some((name, _)) = start.split_once('=') {
                    let value = word.without_prefix(name.len() + 1);
                    let name = name.trim_end_matches('+').split('[').next();
                    settings.push((name.unwrap_or_default().to_owned(), value));
                }
            }
        }
        for (name, value) in settings {
            let inner = self.run_by_variable(&name, &value)?;
            if !inner.is_empty() {
                command.inner.extend(inner);
                // A rule that names the program names the variables before it, too.
                command.inner_at.get_or_insert(0);
            }
        }
        Ok(())
    }

    /// Records the variables that an arithmetic expression sets.
    pub fn set_in_arithmetic(&mut self, text: &str) -> Result<(), NotUnderstood> {
        for name in variables::set_in_arithmetic(text) {
            self.set_variable(&name, &Word::open("?"), true)?;
            self.walk.values.add_unknown(&name);
        }
        Ok(())
    }

    /// Records a variable that the line sets for what follows, unless it is harmless. The value is
    /// unknown if `is_plain_name`.
    pub fn set_variable(
        &mut self,
        name: &str,
        value: &Word,
        is_plain_name: bool,
    ) -> Result<(), NotUnderstood> {
        if name == "HOME" || name == "PWD" {
            // `~` and `$HOME` are somewhere else from here on.
            self.walk.folders = None;
        }
        if variables::is_harmless(name) || variables::is_of_script(name) {
            return Ok(());
        }
        let value = match is_plain_name {
            true => &Word::default(),
            false => value,
        };
        let inner = self.run_by_variable(name, value)?;
        self.commands.push(Command {
            words: vec![variables::setting(name, value)],
            inner,
            ..Command::default()
        });
        Ok(())
    }

    /// Returns the commands that programs run because of the value of a variable.
    fn run_by_variable(&mut self, name: &str, value: &Word) -> Result<Vec<Command>, NotUnderstood> {
        if !variables::is_command(name) || value.known().is_some_and(|text| text.is_empty()) {
            return Ok(Vec::new());
        }
        if variables::is_text(name)
            && let Some(text) = value.known()
        {
            const END: &str = "END_OF_THE_VALUE";
            let script = format!(": <<{END}\n{text}\n{END}\n");
            let mut commands = self.walk.commands_of(&script, Dialect::Bash)?;
            commands.retain(|command| command.words != [Word::text(":")]);
            if name == "BASH_ENV" || name == "ENV" || text.contains(['$', '`']) {
                commands.push(open_command(value));
            }
            return Ok(commands);
        }
        let script = Inner::Script(value.clone());
        self.inner(script, &Stdin::Unknown, Dialect::Posix)
    }

    pub fn assignment_statement(&mut self, node: Node<'_>) -> Result<(), NotUnderstood> {
        let (name, value) = self.assignment(node)?;
        self.set_variable(&name, &value, false)
    }

    /// Reads an assignment. Returns the name and the value.
    pub fn assignment(&mut self, node: Node<'_>) -> Result<(String, Word), NotUnderstood> {
        let Some(name) = node.child_by_field_name("name") else {
            return Err(NotUnderstood::new("an assignment has no name"));
        };
        let text = self.text(name.byte_range()).split('[').next();
        let text = text.unwrap_or_default().to_owned();
        self.walk.variables.push(text.clone());
        if name.kind() == "subscript" {
            self.substitutions(name)?;
        }
        let children = children(node);
        let operator = children.iter().find(|it| matches!(it.kind(), "=" | "+="));
        let operator = operator.ok_or_else(|| NotUnderstood::new("an assignment has no value"))?;
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
                return Err(NotUnderstood::new("an assignment was not recognized"));
            }
            [first, ..] => {
                let end = values.last().map_or(first.end_byte(), Node::end_byte);
                self.word(operator.end_byte()..end, &values)?
            }
        };
        match operator.kind() {
            "=" => self.walk.values.add(&text, &value),
            _ => self.walk.values.add_unknown(&text),
        }
        // Arithmetic evaluates the value of a variable once more.
        for piece in &value.0 {
            if let Piece::Text(text) = piece {
                check_index(text)?;
            }
        }
        Ok((text, value))
    }

    pub fn for_statement(&mut self, node: Node<'_>, stdin: &Stdin) -> Result<(), NotUnderstood> {
        if let Some(name) = node.child_by_field_name("variable") {
            let name = self.text(name.byte_range()).to_owned();
            self.set_variable(&name, &Word::default(), true)?;
            match self.words_of_loop(node) {
                Some(words) => words
                    .iter()
                    .for_each(|word| self.walk.values.add(&name, word)),
                None => self.walk.values.add_unknown(&name),
            }
            self.walk.variables.push(name);
        }
        self.each_child(node, stdin)
    }

    /// Returns the words behind `in` of a loop; `None` for a loop over the arguments of the script.
    fn words_of_loop(&self, node: Node<'_>) -> Option<Vec<Word>> {
        let mut words: Option<Vec<Word>> = None;
        let mut end = 0;
        for child in children(node) {
            match child.kind() {
                "in" => words = Some(Vec::new()),
                "do_group" | "compound_statement" | ";" | "\n" => break,
                _ => {
                    let Some(words) = &mut words else { continue };
                    // Parts without a blank between them may be one word.
                    if child.start_byte() == end {
                        return None;
                    }
                    end = child.end_byte();
                    let Ok(word) = self.plain_word(child) else {
                        return None;
                    };
                    words.push(word);
                }
            }
        }
        words
    }
}
