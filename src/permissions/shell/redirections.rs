//! Reads redirections: the files of a command, herestrings and heredocs.

use std::ops::Range;

use tree_sitter::Node;

use super::walk::{ScriptWalk, Stdin, children};
use super::{NotUnderstood, wrappers};

impl ScriptWalk<'_, '_, '_> {
    /// Visits a command with its redirections.
    pub fn redirected(&mut self, node: Node<'_>, stdin: &Stdin) -> Result<(), NotUnderstood> {
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
            // Words after the name of the heredoc are arguments of the command.
            let word = self.word(range, &nodes)?;
            let command = self.commands.last_mut();
            let command = command.ok_or_else(|| NotUnderstood::new("a heredoc has no command"))?;
            if !command.inner.is_empty()
                || wrappers::unwrap_command(&command.words, &|_| true).is_some()
            {
                return Err(NotUnderstood::new("arguments follow a heredoc"));
            }
            command.words.push(word);
            let command = command.clone();
            self.walk.files_of(&command);
        }
        Ok(())
    }

    /// Reads a redirection such as `>file` or `2>&1`.
    pub fn file_redirect(&mut self, node: Node<'_>) -> Result<(), NotUnderstood> {
        let children = children(node);
        let operator = (children.iter()).find(|it| it.kind().contains(['<', '>']));
        let Some(operator) = operator else {
            return Err(NotUnderstood::new("a redirection was not recognized"));
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
            return Err(NotUnderstood::new("words follow a redirection"));
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

    /// Reads a herestring such as `<<<text`.
    pub fn herestring(&mut self, node: Node<'_>) -> Result<Stdin, NotUnderstood> {
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
    ) -> Result<Stdin, NotUnderstood> {
        let mut stdin = Stdin::Unknown;
        let mut is_quoted = false;
        let mut end = None;
        let mut start_end = None;
        for child in children(node) {
            match child.kind() {
                "heredoc_start" => {
                    let start = self.text(child.byte_range());
                    is_quoted = start.contains(['\'', '"', '\\']);
                    end = Some(child.end_byte());
                    start_end = end;
                    continue;
                }
                "heredoc_body" => {
                    let line = start_end.map_or("", |start| self.text(start..child.start_byte()));
                    if line.contains('`') || line.trim_end_matches('\n').contains('\n') {
                        // The shell reads the text of the heredoc elsewhere.
                        return Err(NotUnderstood::new("more than words follows a heredoc"));
                    }
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
                    return Err(NotUnderstood::new("a command has two inputs"));
                }
                kind if node
                    .children_by_field_name("argument", &mut node.walk())
                    .any(|argument| argument == child) =>
                {
                    if kind == "array" {
                        return Err(NotUnderstood::new("an argument was not recognized"));
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
