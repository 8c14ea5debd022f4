//! The diff of an edit for users and extensions: numbered lines with some context, without long
//! unchanged parts.

use std::collections::HashMap;

use similar::{Algorithm, DiffOp};

use super::unified_diff::unified;

/// Number of unchanged lines that are shown around a change.
pub(crate) const DIFF_CONTEXT: usize = 4;
/// Number of changed lines up to which lines are compared as texts. For more, each text gets a
/// number first, which takes time and memory for all lines of the file.
const FEW_CHANGES: usize = 100;
/// Number of changed lines above which a heuristic replaces the exact search, whose cost grows
/// with the square of the changes.
const MAX_EXACT_CHANGES: usize = 3000;

#[derive(Clone, Debug, PartialEq)]
pub struct DisplayDiff {
    pub text: String,
    /// Line number in the new text; `None` if nothing changed.
    pub first_changed_line: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Same,
    Removed,
    Added,
}

/// A number of consecutive lines that are all kept, removed or added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub kind: Kind,
    pub lines: usize,
}

/// The changes that turn one text into another, line by line. Of several equally short scripts
/// this is the one of jsdiff's `diffLines`, because sessions and extensions store such diffs and
/// compare with them.
pub struct Changes<'a> {
    pub(crate) old: Vec<&'a str>,
    pub(crate) new: Vec<&'a str>,
    pub(crate) runs: Vec<Run>,
    /// Width of the largest line number.
    width: usize,
}

impl<'a> Changes<'a> {
    pub fn between(old: &'a str, new: &'a str) -> Self {
        let old_lines: Vec<&str> = old.split_inclusive('\n').collect();
        let new_lines: Vec<&str> = new.split_inclusive('\n').collect();
        let runs = shortest_script(&old_lines, &new_lines, FEW_CHANGES).unwrap_or_else(|| {
            let (old_ids, new_ids) = intern(&old_lines, &new_lines);
            shortest_script(&old_ids, &new_ids, MAX_EXACT_CHANGES)
                .unwrap_or_else(|| heuristic_script(&old_ids, &new_ids))
        });
        Self {
            old: old_lines,
            new: new_lines,
            runs,
            width: line_count(old).max(line_count(new)).to_string().len(),
        }
    }

    /// Returns numbered lines with `context` unchanged lines around each change.
    pub fn display(&self, context: usize) -> DisplayDiff {
        Printer {
            old: &self.old,
            new: &self.new,
            context,
            width: self.width,
            old_at: 0,
            new_at: 0,
            first_changed_line: None,
            rows: Vec::new(),
        }
        .print(&self.runs)
    }

    /// Returns the changes in the format of `patch` and git.
    pub fn patch(&self, path: &str, context: usize) -> String {
        unified(path, self, context)
    }
}

fn line_count(text: &str) -> usize {
    super::truncate::count_lines(text)
}

fn intern<'a>(old: &[&'a str], new: &[&'a str]) -> (Vec<usize>, Vec<usize>) {
    let mut known: HashMap<&'a str, usize> = HashMap::new();
    let mut ids = |lines: &[&'a str]| -> Vec<usize> {
        lines
            .iter()
            .map(|line| {
                let next = known.len();
                *known.entry(line).or_insert(next)
            })
            .collect()
    };
    let old = ids(old);
    (old, ids(new))
}

/// Myers' greedy search, forward only. `similar` searches from both ends and cleans up
/// afterwards, and so finds other scripts of the same length. Returns `None` if more than
/// `max_changes` are needed.
fn shortest_script<T: PartialEq>(old: &[T], new: &[T], max_changes: usize) -> Option<Vec<Run>> {
    let common = |old_at: usize, new_at: usize| {
        old[old_at..]
            .iter()
            .zip(&new[new_at..])
            .take_while(|(left, right)| left == right)
            .count()
    };
    let start = common(0, 0);
    // rounds[d]: the furthest position in `old` on each diagonal (old - new) that d changes
    // reach.
    let mut rounds = vec![Round::first(start)];
    let mut end = (start == old.len() && start == new.len()).then_some(0);
    let (mut lowest, mut highest) = (isize::MIN, isize::MAX);
    while end.is_none() {
        let changes = rounds.len();
        if changes > max_changes {
            return None;
        }
        let reach = changes as isize;
        let previous = &rounds[changes - 1];
        let mut round = Round::empty(changes);
        // Diagonals beyond one that has reached an edge of the grid cannot be reached.
        let mut diagonal = raise(lowest.max(-reach), reach);
        while diagonal <= highest.min(reach) {
            if let Some((_, mut old_at)) = previous.step(diagonal, old.len(), new.len()) {
                let new_at = (old_at as isize - diagonal) as usize;
                let run = common(old_at, new_at);
                old_at += run;
                let new_at = new_at + run;
                round.set(diagonal, old_at);
                if old_at == old.len() && new_at == new.len() {
                    end = Some(diagonal);
                    break;
                }
                if old_at == old.len() {
                    highest = highest.min(diagonal - 1);
                }
                if new_at == new.len() {
                    lowest = lowest.max(diagonal + 1);
                }
            }
            diagonal += 2;
        }
        rounds.push(round);
    }

    let mut changes = Vec::new();
    let mut diagonal = end?;
    for pair in rounds.windows(2).rev() {
        let (kind, after) = pair[0].step(diagonal, old.len(), new.len())?;
        changes.push((kind, pair[1].get(diagonal)? - after));
        diagonal += match kind {
            Kind::Added => 1,
            _ => -1,
        };
    }
    let mut script = Script::default();
    script.add(Kind::Same, start);
    for (kind, same) in changes.into_iter().rev() {
        script.add(kind, 1);
        script.add(Kind::Same, same);
    }
    Some(script.0)
}

/// Returns the smallest value that is at least `from` and has the parity of `like`.
fn raise(from: isize, like: isize) -> isize {
    from + ((from - like) & 1)
}

/// Positions by diagonal, from `-changes` to `changes`.
struct Round {
    changes: isize,
    reached: Vec<Option<u32>>,
}

impl Round {
    fn empty(changes: usize) -> Self {
        Self {
            changes: changes as isize,
            reached: vec![None; changes + 1],
        }
    }

    fn first(old_at: usize) -> Self {
        let mut round = Self::empty(0);
        round.set(0, old_at);
        round
    }

    /// Only every second diagonal is reachable.
    fn index(&self, diagonal: isize) -> Option<usize> {
        (diagonal.abs() <= self.changes).then_some(((diagonal + self.changes) / 2) as usize)
    }

    fn get(&self, diagonal: isize) -> Option<usize> {
        self.reached[self.index(diagonal)?].map(|old_at| old_at as usize)
    }

    fn set(&mut self, diagonal: isize, old_at: usize) {
        if let (Some(index), Ok(old_at)) = (self.index(diagonal), u32::try_from(old_at)) {
            self.reached[index] = Some(old_at);
        }
    }

    /// Returns the change that leads from this round furthest along `diagonal`, and the position
    /// in the old text after it. A removal wins over an addition that reaches as far.
    fn step(&self, diagonal: isize, old_len: usize, new_len: usize) -> Option<(Kind, usize)> {
        let remove = self.get(diagonal - 1).filter(|old_at| *old_at < old_len);
        let add = self
            .get(diagonal + 1)
            .filter(|old_at| (0..new_len as isize).contains(&(*old_at as isize - diagonal - 1)));
        match (remove, add) {
            (Some(remove), Some(add)) if remove < add => Some((Kind::Added, add)),
            (Some(remove), _) => Some((Kind::Removed, remove + 1)),
            (None, Some(add)) => Some((Kind::Added, add)),
            (None, None) => None,
        }
    }
}

fn heuristic_script(old: &[usize], new: &[usize]) -> Vec<Run> {
    let mut script = Script::default();
    for op in similar::capture_diff_slices(Algorithm::Myers, old, new) {
        match op {
            DiffOp::Equal { len, .. } => script.add(Kind::Same, len),
            DiffOp::Delete { old_len, .. } => script.add(Kind::Removed, old_len),
            DiffOp::Insert { new_len, .. } => script.add(Kind::Added, new_len),
            DiffOp::Replace {
                old_len, new_len, ..
            } => {
                script.add(Kind::Removed, old_len);
                script.add(Kind::Added, new_len);
            }
        }
    }
    script.0
}

#[derive(Default)]
struct Script(Vec<Run>);

impl Script {
    fn add(&mut self, kind: Kind, lines: usize) {
        match self.0.last_mut() {
            Some(last) if last.kind == kind => last.lines += lines,
            _ if lines > 0 => self.0.push(Run { kind, lines }),
            _ => {}
        }
    }
}

struct Printer<'a> {
    old: &'a [&'a str],
    new: &'a [&'a str],
    context: usize,
    width: usize,
    old_at: usize,
    new_at: usize,
    first_changed_line: Option<usize>,
    rows: Vec<String>,
}

impl Printer<'_> {
    fn print(mut self, runs: &[Run]) -> DisplayDiff {
        for (index, run) in runs.iter().enumerate() {
            if run.kind == Kind::Same && runs.len() > 1 {
                let before = if index > 0 { self.context } else { 0 };
                let after = if index + 1 < runs.len() {
                    self.context
                } else {
                    0
                };
                self.unchanged(run.lines, before, after);
            } else if run.kind != Kind::Same {
                self.first_changed_line.get_or_insert(self.new_at + 1);
                (0..run.lines).for_each(|_| self.line(run.kind));
            }
        }
        DisplayDiff {
            text: self.rows.join("\n"),
            first_changed_line: self.first_changed_line,
        }
    }

    /// Shows `before` lines after the change above, and `after` lines ahead of the change below.
    fn unchanged(&mut self, lines: usize, before: usize, after: usize) {
        if lines <= before + after {
            (0..lines).for_each(|_| self.line(Kind::Same));
            return;
        }
        (0..before).for_each(|_| self.line(Kind::Same));
        self.rows
            .push(format!(" {:width$} ...", "", width = self.width));
        let skipped = lines - before - after;
        self.old_at += skipped;
        self.new_at += skipped;
        (0..after).for_each(|_| self.line(Kind::Same));
    }

    fn line(&mut self, kind: Kind) {
        let (sign, line, number) = match kind {
            Kind::Same => (' ', self.old[self.old_at], self.old_at + 1),
            Kind::Removed => ('-', self.old[self.old_at], self.old_at + 1),
            Kind::Added => ('+', self.new[self.new_at], self.new_at + 1),
        };
        let line = line.strip_suffix('\n').unwrap_or(line);
        let width = self.width;
        self.rows.push(format!("{sign}{number:>width$} {line}"));
        self.old_at += usize::from(kind != Kind::Added);
        self.new_at += usize::from(kind != Kind::Removed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn display_diff(old: &str, new: &str) -> DisplayDiff {
        Changes::between(old, new).display(DIFF_CONTEXT)
    }

    fn numbered(lines: std::ops::RangeInclusive<usize>) -> String {
        lines.map(|line| format!("l{line}\n")).collect()
    }

    #[test]
    fn a_change_with_context_on_both_sides() {
        let old = numbered(1..=12);
        let diff = display_diff(&old, &old.replace("l6\n", "new\n"));
        assert_eq!(
            diff,
            DisplayDiff {
                text:
                    "    ...\n  2 l2\n  3 l3\n  4 l4\n  5 l5\n- 6 l6\n+ 6 new\n  7 l7\n  8 l8\n  9 \
                       l9\n 10 l10\n    ..."
                        .to_owned(),
                first_changed_line: Some(6),
            }
        );
    }

    #[test]
    fn the_middle_between_two_changes_is_skipped() {
        let old = numbered(1..=12);
        let new = old
            .replace("l1\n", "a\n")
            .replace("l12\n", "b\n")
            .replace("al", "l");
        let diff = display_diff(&old, &new);
        assert_eq!(
            diff.text,
            "- 1 l1\n+ 1 a\n  2 l2\n  3 l3\n  4 l4\n  5 l5\n    ...\n  8 l8\n  9 l9\n 10 l10\n 11 \
             l11\n-12 l12\n+12 b"
        );
        assert_eq!(diff.first_changed_line, Some(1));
    }

    #[test]
    fn a_missing_newline_at_the_end_is_a_change() {
        let diff = display_diff("a\nb", "a\nb\n");
        assert_eq!(diff.text, " 1 a\n-2 b\n+2 b");
        assert_eq!(display_diff("a\n", "a\n").first_changed_line, None);
        assert_eq!(display_diff("", "a\n").text, "+1 a");
        assert_eq!(display_diff("a", "").text, "-1 a");
    }

    /// The expected scripts come from jsdiff 8.0.4.
    #[test]
    fn ambiguous_scripts_are_those_of_jsdiff() {
        let lines = |text: &str| -> String { text.chars().map(|c| format!("{c}\n")).collect() };
        let cases = [
            (
                "abcabba",
                "cbabac",
                "-1 a\n-2 b\n 3 c\n+2 b\n 4 a\n 5 b\n-6 b\n 7 a\n+6 c",
            ),
            ("aab", "aba", " 1 a\n-2 a\n 3 b\n+3 a"),
        ];
        for (old, new, expected) in cases {
            assert_eq!(display_diff(&lines(old), &lines(new)).text, expected);
        }
    }

    #[test]
    fn both_searches_turn_old_into_new() {
        let old: Vec<usize> = (0..200).map(|n| (n * n) % 7).collect();
        let new: Vec<usize> = (0..180).map(|n| (n * 3 + n / 5) % 7).collect();
        for runs in [
            shortest_script(&old, &new, usize::MAX).unwrap(),
            heuristic_script(&old, &new),
        ] {
            let (mut built, mut old_at, mut new_at) = (Vec::new(), 0, 0);
            for run in runs {
                if run.kind == Kind::Added {
                    built.extend_from_slice(&new[new_at..new_at + run.lines]);
                } else if run.kind == Kind::Same {
                    built.extend_from_slice(&old[old_at..old_at + run.lines]);
                }
                old_at += if run.kind == Kind::Added {
                    0
                } else {
                    run.lines
                };
                new_at += if run.kind == Kind::Removed {
                    0
                } else {
                    run.lines
                };
            }
            assert_eq!((built.as_slice(), old_at), (new.as_slice(), old.len()));
        }
        assert_eq!(shortest_script(&old, &new, 3), None);
    }
}
