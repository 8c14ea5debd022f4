//! Writes a diff in the unified format of `patch` and git.

use super::diff::{Changes, Kind, Run};

/// A row of the output: the kind of the line, and its text.
type Row<'a> = (Kind, &'a str);

/// Returns two headers with `path`, and one hunk for each group of changes. Changes are in
/// different groups if more than twice `context` lines separate them.
pub(crate) fn unified(path: &str, changes: &Changes<'_>, context: usize) -> String {
    let Changes {
        old: old_lines,
        new: new_lines,
        runs,
        ..
    } = changes;
    let mut patch = format!("--- {path}\n+++ {path}\n");
    let (mut old_at, mut new_at) = (0, 0);
    let mut hunk: Option<Hunk<'_>> = None;
    for (index, Run { kind, lines }) in runs.iter().copied().enumerate() {
        let same = &old_lines[old_at..];
        match kind {
            Kind::Same => {
                let is_last = index + 1 == runs.len();
                if let Some(open) = &mut hunk {
                    let shown = match !is_last && lines <= context * 2 {
                        true => lines,
                        false => lines.min(context),
                    };
                    open.add(kind, &same[..shown]);
                    if is_last || shown < lines {
                        open.print(&mut patch);
                        hunk = None;
                    }
                }
                if hunk.is_none() && !is_last {
                    let before = lines.min(context);
                    let mut next = Hunk::at(old_at + lines - before, new_at + lines - before);
                    next.add(kind, &same[lines - before..lines]);
                    hunk = Some(next);
                }
            }
            Kind::Removed => {
                let open = hunk.get_or_insert_with(|| Hunk::at(old_at, new_at));
                open.add(kind, &same[..lines]);
            }
            Kind::Added => {
                let open = hunk.get_or_insert_with(|| Hunk::at(old_at, new_at));
                open.add(kind, &new_lines[new_at..new_at + lines]);
            }
        }
        old_at += if kind == Kind::Added { 0 } else { lines };
        new_at += if kind == Kind::Removed { 0 } else { lines };
    }
    if let Some(open) = hunk {
        open.print(&mut patch);
    }
    patch
}

struct Hunk<'a> {
    old_at: usize,
    new_at: usize,
    rows: Vec<Row<'a>>,
}

impl<'a> Hunk<'a> {
    fn at(old_at: usize, new_at: usize) -> Self {
        Self {
            old_at,
            new_at,
            rows: Vec::new(),
        }
    }

    fn add(&mut self, kind: Kind, lines: &[&'a str]) {
        self.rows.extend(lines.iter().map(|line| (kind, *line)));
    }

    fn print(&self, patch: &mut String) {
        let count = |other: Kind| self.rows.iter().filter(|(kind, _)| *kind != other).count();
        // A hunk without lines on one side has the position of the line before.
        let place = |at: usize, lines: usize| format!("{},{lines}", at + usize::from(lines > 0));
        let old = place(self.old_at, count(Kind::Added));
        let new = place(self.new_at, count(Kind::Removed));
        *patch += &format!("@@ -{old} +{new} @@\n");
        for (kind, line) in &self.rows {
            patch.push(match kind {
                Kind::Same => ' ',
                Kind::Removed => '-',
                Kind::Added => '+',
            });
            *patch += line;
            if !line.ends_with('\n') {
                *patch += "\n\\ No newline at end of file\n";
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unified(path: &str, old: &str, new: &str, context: usize) -> String {
        Changes::between(old, new).patch(path, context)
    }

    #[test]
    fn changes_close_together_share_a_hunk() {
        let old: String = (1..=12).map(|line| format!("l{line}\n")).collect();
        let new = old.replace("l2\n", "L2\n").replace("l12\n", "l12");
        let near = "--- f\n+++ f\n@@ -1,3 +1,3 @@\n l1\n-l2\n+L2\n l3\n@@ -11,2 +11,2 @@\n l11\n-l12\n+l12\n\\ No newline at end of file\n";
        assert_eq!(unified("f", &old, &new, 1), near);
        assert_eq!(unified("f", &old, &new, 5).matches("@@ -").count(), 1);
    }

    #[test]
    fn an_empty_side_starts_at_line_0() {
        assert_eq!(
            unified("f", "", "a\n", 4),
            "--- f\n+++ f\n@@ -0,0 +1,1 @@\n+a\n"
        );
        assert_eq!(unified("f", "a\n", "a\n", 4), "--- f\n+++ f\n");
    }
}
