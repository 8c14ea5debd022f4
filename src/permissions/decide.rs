//! Decides about one call: deny wins, then ask, then allow.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::paths::PathPattern;
use crate::pattern::CommandPattern;
use crate::rule::{self, Rule, RuleError, Subject};
use crate::shell::{self, BaseFolders, Command, FileUse, Word};

/// A statement of the rules about a call, from the mildest to the strictest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    #[default]
    Allow,
    Ask,
    Deny,
}

/// The part of a call that rules about shell lines and files look at.
#[derive(Clone, Debug)]
pub enum Access {
    /// A line for the shell.
    Bash(String),
    /// Absolute paths that a built-in tool reads.
    Read(Vec<PathBuf>),
    /// Absolute paths that a built-in tool changes.
    Write(Vec<PathBuf>),
    /// The input of an extension's tool, whose use of files is unknown.
    Other,
}

/// A call of a tool.
#[derive(Clone, Debug)]
pub struct Call<'a> {
    pub tool: &'a str,
    pub input: &'a Value,
    pub access: &'a Access,
}

/// A decision with its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    pub verdict: Verdict,
    /// The rule that decided.
    pub rule: Option<String>,
    /// Why, in words for the user and the model. Empty if no rule concerned the call.
    pub reason: String,
    /// Rules that would allow the call; empty if none can.
    pub remember: Vec<String>,
}

impl Decision {
    pub(crate) fn new(verdict: Verdict, rule: Option<&Rule>, reason: impl Into<String>) -> Self {
        Self {
            verdict,
            rule: rule.map(ToString::to_string),
            reason: reason.into(),
            remember: Vec::new(),
        }
    }
}

/// A rule that matches, or may match if an open part of the call becomes such a text.
#[derive(Clone, Copy)]
struct RuleMatch<'r> {
    rule: &'r Rule,
    is_sure: bool,
}

impl<'r> RuleMatch<'r> {
    fn sure(rule: &'r Rule) -> Self {
        Self {
            rule,
            is_sure: true,
        }
    }
}

/// The rules that match a part of a call: a command, a file, an input.
#[derive(Default)]
struct Matches<'r> {
    deny: Option<RuleMatch<'r>>,
    ask: Option<RuleMatch<'r>>,
    allow: Option<&'r Rule>,
    /// Whether the part runs although no rule allows it.
    is_harmless: bool,
    /// The rule that would allow exactly this part.
    exact_rule: Option<String>,
}

/// The decision about all parts of a call.
#[derive(Default)]
struct Sum {
    worst: Option<Decision>,
    remember: Vec<String>,
    /// Whether a part is asked about that no rule can allow.
    has_part_without_rule: bool,
}

impl Sum {
    fn add(&mut self, mut decision: Decision) {
        if decision.verdict == Verdict::Ask {
            self.has_part_without_rule |= decision.remember.is_empty();
            for rule in std::mem::take(&mut decision.remember) {
                if !self.remember.contains(&rule) {
                    self.remember.push(rule);
                }
            }
        }
        let is_worse = (self.worst.as_ref()).is_none_or(|worst| decision.verdict > worst.verdict);
        if is_worse {
            self.worst = Some(decision);
        }
    }

    fn finish(self) -> Option<Decision> {
        let mut decision = self.worst?;
        if decision.verdict == Verdict::Ask && !self.has_part_without_rule {
            decision.remember = self.remember;
        }
        Some(decision)
    }
}

/// All rules that hold.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    pub deny: Vec<Rule>,
    pub ask: Vec<Rule>,
    pub allow: Vec<Rule>,
    /// The verdict where no rule matches.
    pub default: Verdict,
}

impl Rules {
    /// Parses the rules to allow, to ask and to deny, in this order. Returns an error for each rule
    /// that cannot be used, beside the rules that can.
    pub fn parse(texts: [&[String]; 3], default: Verdict) -> (Self, Vec<RuleError>) {
        let mut errors = Vec::new();
        let [allow, ask, deny] = texts.map(|texts| {
            let mut rules = Vec::new();
            for text in texts {
                match Rule::parse(text) {
                    Ok(rule) => rules.push(rule),
                    Err(error) => errors.push(error),
                }
            }
            rules
        });
        let rules = Self {
            deny,
            ask,
            allow,
            default,
        };
        (rules, errors)
    }

    /// Returns whether every call runs without a question.
    pub fn allow_everything(&self) -> bool {
        self.deny.is_empty() && self.ask.is_empty() && self.default == Verdict::Allow
    }

    /// Decides about a call. Its relative paths start from `base_folders`.
    pub fn decide(&self, call: &Call<'_>, base_folders: &BaseFolders) -> Decision {
        if self.allow_everything() {
            return Decision::new(Verdict::Allow, None, "");
        }
        if let Some(rule) = by_name(&self.deny, call.tool) {
            let reason = format!("the rule {rule} denies it");
            return Decision::new(Verdict::Deny, Some(rule), reason);
        }
        if self.concerns_unread_input(call) {
            let reason = format!("the input of {} was not understood", call.tool);
            let verdict = self.default.max(Verdict::Ask);
            return Decision::new(verdict, by_name(&self.ask, call.tool), reason);
        }
        match call.access {
            Access::Bash(line) => self.decide_line(call.tool, line, base_folders),
            Access::Read(paths) => self.decide_files(call.tool, paths, false, base_folders),
            Access::Write(paths) => self.decide_files(call.tool, paths, true, base_folders),
            Access::Other => self.decide_input(call),
        }
    }

    /// Returns whether rules about lines or files may concern a call of a built-in tool whose input
    /// names none. An extension may have replaced the tool.
    fn concerns_unread_input(&self, call: &Call<'_>) -> bool {
        let is_unread = match call.access {
            Access::Bash(_) => false,
            Access::Read(paths) | Access::Write(paths) => paths.is_empty(),
            Access::Other => rule::is_built_in(call.tool),
        };
        is_unread && self.deny.iter().chain(&self.ask).any(is_about_lines)
    }

    /// Combines what matches a part: deny, then ask, then allow. A rule to allow without a wildcard
    /// overrides a rule to ask with one.
    fn combine(&self, matches: Matches<'_>, what: &str) -> Decision {
        if let Some(RuleMatch { rule, is_sure }) = matches.deny {
            return match is_sure {
                true => {
                    let reason = format!("the rule {rule} denies {what}");
                    Decision::new(Verdict::Deny, Some(rule), reason)
                }
                false => {
                    let reason = format!("{what} may become what the rule {rule} denies");
                    Decision::new(Verdict::Ask, Some(rule), reason)
                }
            };
        }
        let remember = matches.exact_rule.into_iter().collect();
        if let Some(RuleMatch { rule, is_sure }) = matches.ask {
            let is_answered = |allow: &Rule| allow.is_exact() && !rule.is_exact() && is_sure;
            if !matches.allow.is_some_and(is_answered) {
                let reason = match is_sure {
                    true => format!("the rule {rule} asks about {what}"),
                    false => format!("{what} may become what the rule {rule} asks about"),
                };
                let remember = match rule.is_exact() || !is_sure {
                    true => Vec::new(),
                    false => remember,
                };
                return Decision {
                    remember,
                    ..Decision::new(Verdict::Ask, Some(rule), reason)
                };
            }
        }
        if let Some(rule) = matches.allow {
            let reason = format!("the rule {rule} allows it");
            return Decision::new(Verdict::Allow, Some(rule), reason);
        }
        if matches.is_harmless || self.default == Verdict::Allow {
            return Decision::new(Verdict::Allow, None, "");
        }
        Decision {
            remember,
            ..Decision::new(self.default, None, format!("no rule allows {what}"))
        }
    }

    /// Decides about a tool by its name alone.
    fn decide_name(&self, tool: &str) -> Decision {
        let matches = Matches {
            ask: by_name(&self.ask, tool).map(RuleMatch::sure),
            allow: by_name(&self.allow, tool),
            ..Matches::default()
        };
        self.combine(matches, &format!("the tool {tool}"))
    }

    /// Decides about the files that a built-in tool reads or changes.
    fn decide_files(
        &self,
        tool: &str,
        paths: &[PathBuf],
        is_write: bool,
        base_folders: &BaseFolders,
    ) -> Decision {
        let mut sum = Sum::default();
        for path in paths {
            let may = |rule: &&Rule| {
                file_pattern(rule, is_write).is_some_and(|it| it.may_match(path, base_folders))
            };
            let must = |rule: &&Rule| {
                file_pattern(rule, is_write).is_some_and(|it| it.must_match(path, base_folders))
            };
            let by_path = self.ask.iter().find(may);
            let matches = Matches {
                deny: self.deny.iter().find(may).map(RuleMatch::sure),
                ask: by_path
                    .or_else(|| by_name(&self.ask, tool))
                    .map(RuleMatch::sure),
                allow: prefer_exact(self.allow.iter().filter(must))
                    .or_else(|| by_name(&self.allow, tool)),
                is_harmless: false,
                exact_rule: exact_file_rule(path, is_write),
            };
            sum.add(self.combine(matches, &path.display().to_string()));
        }
        sum.finish().unwrap_or_else(|| self.decide_name(tool))
    }

    /// Decides about a tool of an extension by the members of its input.
    fn decide_input(&self, call: &Call<'_>) -> Decision {
        let find = |rules: &'_ [Rule], all: bool| {
            rules.iter().position(|rule| match &rule.subject {
                Subject::Member {
                    tool,
                    member,
                    pattern,
                } => {
                    rule::name_matches(tool, call.tool)
                        && input_matches(call.input, member.as_deref(), pattern, all)
                }
                _ => false,
            })
        };
        let ask = find(&self.ask, false).map(|at| &self.ask[at]);
        let allow = find(&self.allow, true).map(|at| &self.allow[at]);
        let matches = Matches {
            deny: find(&self.deny, false).map(|at| RuleMatch::sure(&self.deny[at])),
            ask: ask
                .or_else(|| by_name(&self.ask, call.tool))
                .map(RuleMatch::sure),
            allow: allow.or_else(|| by_name(&self.allow, call.tool)),
            is_harmless: false,
            exact_rule: exact_input_rule(call),
        };
        self.combine(matches, &format!("this call of {}", call.tool))
    }

    /// Decides about a shell line by its commands and files.
    fn decide_line(&self, tool: &str, line: &str, base_folders: &BaseFolders) -> Decision {
        let named_allow = by_name(&self.allow, tool);
        let has_patterns = (self.deny.iter().chain(&self.ask)).any(is_about_lines);
        let is_asked = by_name(&self.ask, tool).is_some();
        let is_allowed = named_allow.is_some() || self.default == Verdict::Allow;
        if !has_patterns && !is_asked && is_allowed {
            return self.decide_name(tool);
        }
        let parsed = match shell::parse(line, base_folders) {
            Ok(parsed) => parsed,
            Err(reason) => {
                let verdict = match is_allowed {
                    true => Verdict::Ask,
                    false => self.default.max(Verdict::Ask),
                };
                let rule = by_name(&self.ask, tool);
                let reason = format!("the line was not understood: {reason}");
                return Decision::new(verdict, rule, reason);
            }
        };
        let mut sum = Sum::default();
        for command in &parsed.commands {
            self.judge_command(tool, command, false, &mut sum);
        }
        for file in &parsed.files {
            self.judge_file(file, tool, base_folders, &mut sum);
        }
        for reads in &parsed.unnamed_reads {
            if let Some(decision) = self.decide_unnamed(reads, base_folders) {
                sum.add(decision);
            }
        }
        // A line without a command or a file does nothing.
        let nothing = Matches {
            ask: by_name(&self.ask, tool).map(RuleMatch::sure),
            allow: named_allow,
            is_harmless: true,
            ..Matches::default()
        };
        (sum.finish()).unwrap_or_else(|| self.combine(nothing, "the line"))
    }

    /// Decides about a command of a line and about the commands that it runs. `is_covered` says that
    /// a rule to allow the command around it names this command, too.
    fn judge_command(&self, tool: &str, command: &Command, is_covered: bool, sum: &mut Sum) {
        let forms = Forms::new(command);
        let search = |rules: &'_ [Rule]| {
            let sure = rules.iter().position(|rule| {
                command_pattern(rule).is_some_and(|it| forms.any(|words| it.must_match(words)))
            });
            let open = || {
                rules.iter().position(|rule| {
                    command_pattern(rule).is_some_and(|it| forms.any(|words| it.may_match(words)))
                })
            };
            match sure {
                Some(at) => Some((at, true)),
                None => open().map(|at| (at, false)),
            }
        };
        let deny = search(&self.deny).map(|(at, is_sure)| RuleMatch {
            rule: &self.deny[at],
            is_sure,
        });
        let ask = search(&self.ask).map(|(at, is_sure)| RuleMatch {
            rule: &self.ask[at],
            is_sure,
        });
        let as_written = forms.as_written();
        let allowing = self.allow.iter().filter(|rule| {
            command_pattern(rule).is_some_and(|it| {
                it.must_match(&as_written) || it.must_match(&forms.with_assignments)
            })
        });
        let allow = prefer_exact(allowing.clone());
        let named_allow = by_name(&self.allow, tool);
        // A rule with a wildcard in the place of the inner command does not allow that command.
        let shift = command.assignments.len();
        let means_inner = allowing.clone().any(|rule| {
            command_pattern(rule).is_some_and(|it| {
                it.is_exact() || command.inner_at.is_some_and(|at| it.names_word(at + shift))
            })
        });
        let named_ask = by_name(&self.ask, tool).map(RuleMatch::sure);
        let matches = Matches {
            deny,
            ask: ask.or(named_ask),
            allow: allow.or(named_allow),
            is_harmless: command.is_transparent || is_covered,
            exact_rule: forms.exact_rule(),
        };
        sum.add(self.combine(matches, &forms.display()));
        for inner in &command.inner {
            // Rules to deny and to ask hold for the inner command in any case.
            self.judge_command(tool, inner, is_covered || means_inner, sum);
        }
    }

    /// Decides about a file that a line visibly uses.
    fn judge_file(&self, file: &FileUse, tool: &str, base_folders: &BaseFolders, sum: &mut Sum) {
        let rules = |rules: &'_ [Rule]| {
            rules
                .iter()
                .any(|rule| file_pattern(rule, file.is_write).is_some())
        };
        let what = format!("the file {}", file.word.quoted());
        let Some(paths) = file.paths(base_folders) else {
            let is_open_write = file.is_write || file.is_redirection;
            let first = |list: &'_ [Rule]| {
                list.iter()
                    .position(|rule| file_pattern(rule, file.is_write).is_some())
            };
            if is_open_write && (rules(&self.deny) || rules(&self.ask)) {
                let rule = match first(&self.deny) {
                    Some(at) => &self.deny[at],
                    None => &self.ask[first(&self.ask).unwrap_or_default()],
                };
                let reason = format!("the rule {rule} may be about {what}");
                sum.add(Decision::new(Verdict::Ask, Some(rule), reason));
            } else if file.is_redirection {
                let matches = Matches {
                    allow: by_name(&self.allow, tool),
                    ..Matches::default()
                };
                sum.add(self.combine(matches, &what));
            }
            return;
        };
        for path in &paths {
            let may = |rule: &&Rule| {
                file_pattern(rule, file.is_write).is_some_and(|it| it.may_match(path, base_folders))
            };
            let must = |rule: &&Rule| {
                file_pattern(rule, file.is_write)
                    .is_some_and(|it| it.must_match(path, base_folders))
            };
            let tools: &[&str] = if file.is_write {
                &["write", "edit"]
            } else {
                &["read"]
            };
            let by_tool = tools.iter().find_map(|tool| by_name(&self.allow, tool));
            let matches = Matches {
                deny: self.deny.iter().find(may).map(RuleMatch::sure),
                ask: self.ask.iter().find(may).map(RuleMatch::sure),
                allow: prefer_exact(self.allow.iter().filter(must))
                    .or(by_tool)
                    .or_else(|| by_name(&self.allow, tool)),
                // A rule for the command allows the files in its arguments.
                is_harmless: !file.is_redirection || is_harmless_device(path),
                exact_rule: exact_file_rule(path, file.is_write),
            };
            sum.add(self.combine(matches, &what));
        }
    }
}

/// The forms of a command that rules are compared with.
struct Forms {
    words: Vec<Word>,
    /// The command with the variables that are set for it.
    with_assignments: Vec<Word>,
    /// The command without the folder of its program.
    by_base_name: Vec<Word>,
    /// Whether variables are set that may change what the command does.
    has_settings: bool,
}

impl Forms {
    fn new(command: &Command) -> Self {
        let words = command.words.clone();
        let mut with_assignments: Vec<Word> = (command.assignments.iter())
            .map(|(name, value)| {
                let mut word = vec![crate::shell::Piece::Text(format!("{name}="))];
                word.extend(value.0.iter().cloned());
                Word(word)
            })
            .collect();
        with_assignments.extend(words.iter().cloned());
        let mut by_base_name = words.clone();
        if let Some(first) = by_base_name.first_mut() {
            *first = first.base_name();
        }
        Self {
            has_settings: command.has_settings(),
            words,
            with_assignments,
            by_base_name,
        }
    }

    fn any(&self, test: impl Fn(&[Word]) -> bool) -> bool {
        test(&self.words) || test(&self.by_base_name) || test(&self.with_assignments)
    }

    /// Returns what a rule to allow has to match. Harmless variables do not count.
    fn as_written(&self) -> Vec<Word> {
        match self.has_settings {
            true => self.with_assignments.clone(),
            false => self.words.clone(),
        }
    }

    fn display(&self) -> String {
        let words: Vec<String> = self.as_written().iter().map(Word::quoted).collect();
        words.join(" ")
    }

    /// Returns the rule that allows exactly this command.
    fn exact_rule(&self) -> Option<String> {
        let words = self.as_written();
        // The program of a line such as `$X a` may be another one the next time.
        words
            .first()
            .filter(|word| !word.known_prefix().is_empty())?;
        let texts: Vec<String> = words.iter().map(Word::as_pattern).collect();
        let text = format!("bash({})", texts.join(" "));
        let rule = Rule::parse(&text).ok()?;
        let means_it = command_pattern(&rule)?.must_match(&words) && rule.is_exact();
        means_it.then_some(text)
    }
}

fn command_pattern(rule: &Rule) -> Option<&CommandPattern> {
    match &rule.subject {
        Subject::Command(pattern) => Some(pattern),
        _ => None,
    }
}

pub(crate) fn file_pattern(rule: &Rule, is_write: bool) -> Option<&PathPattern> {
    match &rule.subject {
        Subject::Write(pattern) if is_write => Some(pattern),
        Subject::Read(pattern) if !is_write => Some(pattern),
        _ => None,
    }
}

fn is_about_lines(rule: &Rule) -> bool {
    matches!(
        rule.subject,
        Subject::Command(_) | Subject::Read(_) | Subject::Write(_)
    )
}

fn by_name<'r>(rules: &'r [Rule], tool: &str) -> Option<&'r Rule> {
    rules.iter().find(|rule| match &rule.subject {
        Subject::Tool(name) => rule::name_matches(name, tool),
        _ => false,
    })
}

/// Returns the first rule without a wildcard, or else the first rule.
fn prefer_exact<'r>(rules: impl Iterator<Item = &'r Rule>) -> Option<&'r Rule> {
    let mut first = None;
    for rule in rules {
        if rule.is_exact() {
            return Some(rule);
        }
        first = first.or(Some(rule));
    }
    first
}

/// Returns the rule that allows exactly this file.
fn exact_file_rule(path: &Path, is_write: bool) -> Option<String> {
    let path = pi_base::follow_links(path)?;
    let mut text = String::new();
    for char in path.to_str()?.chars() {
        if "*?[]{}\\".contains(char) {
            text.push('\\');
        }
        text.push(char);
    }
    let tool = if is_write { "edit" } else { "read" };
    Some(format!("{tool}({text})"))
}

/// Returns the rule that allows calls with this input. `None` unless the input is one member with a
/// text: a rule names one member, and others may matter.
fn exact_input_rule(call: &Call<'_>) -> Option<String> {
    let members = call.input.as_object()?;
    let (name, value) = members.iter().next()?;
    let text = value.as_str().filter(|_| members.len() == 1)?;
    let rule = format!("{}({name}:{})", call.tool, rule::escape(text));
    Rule::parse(&rule).ok().map(|_| rule)
}

fn is_harmless_device(path: &Path) -> bool {
    let text = path.to_str().unwrap_or_default();
    matches!(
        text,
        "/dev/null" | "/dev/stdout" | "/dev/stderr" | "/dev/stdin" | "/dev/tty" | "/dev/zero"
    ) || text
        .strip_prefix("/dev/fd/")
        .is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Compares the input of a call with a pattern. With `all`, every value at the member has to
/// match, and without a member the input must have nothing else.
fn input_matches(input: &Value, member: Option<&str>, pattern: &str, all: bool) -> bool {
    match member {
        Some(member) => {
            let mut values = vec![input];
            for name in member.split('.') {
                values = values
                    .into_iter()
                    .flat_map(items)
                    .filter_map(|value| value.get(name))
                    .collect();
            }
            let texts: Vec<String> = values.into_iter().flat_map(items).map(value_text).collect();
            let matches = |text: &String| rule::text_matches(pattern, text);
            match all {
                true => !texts.is_empty() && texts.iter().all(matches),
                false => texts.iter().any(matches),
            }
        }
        None if all => {
            let members = input.as_object().filter(|members| members.len() == 1);
            let only = members.and_then(|members| members.values().next());
            only.and_then(Value::as_str)
                .is_some_and(|text| rule::text_matches(pattern, text))
        }
        None => any_text(input, &|text| rule::text_matches(pattern, text)),
    }
}

fn items(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        other => vec![other],
    }
}

fn value_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn any_text(value: &Value, test: &dyn Fn(&str) -> bool) -> bool {
    let mut left = vec![value];
    while let Some(value) = left.pop() {
        match value {
            Value::String(text) if test(text) => return true,
            Value::Array(items) => left.extend(items),
            Value::Object(members) => left.extend(members.values()),
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests;
