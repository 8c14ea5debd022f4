//! Values of options in the arguments of a command: `-o value`, `-ovalue`, `--long=value`.

use super::word::Word;

/// The name of an option, with the forms in which a program takes it. All names are without dashes.
#[derive(Clone, Copy)]
pub(super) enum OptionName<'n> {
    /// A letter, also behind letters that take no value: `-o value`, `-ovalue`, `-xo value`.
    Letter(char),
    /// A letter behind the dash or behind these letters, which take no value: `-o value`,
    /// `-ovalue`, `-xo value`. An argument with another letter before it is another option, such as
    /// `-lfoo` of `gcc`.
    LetterAfter(&'n str, char),
    /// A name behind two dashes, or its beginning: `--long value`, `--long=value`, `--lo value`.
    Long(&'n str),
    /// A name behind two dashes that is never abbreviated: `--long value`, `--long=value`.
    Exact(&'n str),
    /// A name behind one dash, or behind two, where it may be abbreviated: `-long value`.
    AnyDashes(&'n str),
}

impl<'n> OptionName<'n> {
    /// Returns a letter for a name of one character, and otherwise a name with any dashes.
    pub fn of(name: &'n str) -> Self {
        let mut chars = name.chars();
        match (chars.next(), chars.as_str()) {
            (Some(letter), "") => Self::Letter(letter),
            _ => Self::AnyDashes(name),
        }
    }

    /// Returns the length of the option at the beginning of an argument, up to the value in the same
    /// argument; `None` if the argument is another option or none.
    fn length_in(self, start: &str) -> Option<usize> {
        let dashes = start.len() - start.trim_start_matches('-').len();
        let option_text = &start[dashes..];
        match self {
            Self::Letter(letter) if dashes == 1 => {
                (option_text.find(letter)).map(|at| dashes + at + letter.len_utf8())
            }
            Self::LetterAfter(flags, letter) if dashes == 1 => {
                let rest = option_text.trim_start_matches(|flag| flags.contains(flag));
                let value = rest.strip_prefix(letter)?;
                Some(start.len() - value.len())
            }
            Self::Letter(_) | Self::LetterAfter(..) => None,
            Self::Long(name) | Self::Exact(name) | Self::AnyDashes(name) => {
                let typed = option_text.split('=').next().unwrap_or_default();
                let is_beginning = typed.len() > 1 && name.starts_with(typed);
                let is_match = match (self, dashes) {
                    (Self::Exact(_), 2) | (Self::AnyDashes(_), 1) => typed == name,
                    (Self::Long(_) | Self::AnyDashes(_), 2) => typed == name || is_beginning,
                    _ => false,
                };
                is_match.then(|| start.len().min(dashes + typed.len() + "=".len()))
            }
        }
    }
}

/// Returns the value of the option at `index`, with the index of its word.
pub(super) fn value_at(
    args: &[Word],
    index: usize,
    option: OptionName<'_>,
) -> Option<(usize, Word)> {
    let word = &args[index];
    let start = word.known_prefix();
    let length = option.length_in(&start)?;
    let rest = word.without_prefix(length);
    let is_next = match option {
        OptionName::Letter(_) | OptionName::LetterAfter(..) => {
            rest.known().is_some_and(|text| text.is_empty())
        }
        _ => !start[..length].ends_with('='),
    };
    match is_next {
        true => args.get(index + 1).map(|value| (index + 1, value.clone())),
        false => Some((index, rest)),
    }
}

/// Returns the value of the first option with one of the names before `--`, with the index of its
/// word.
pub(super) fn first_value(args: &[Word], names: &[OptionName<'_>]) -> Option<(usize, Word)> {
    let is_end = |word: &Word| word.known().as_deref() == Some("--");
    let end = args.iter().position(is_end).unwrap_or(args.len());
    (0..end).find_map(|index| names.iter().find_map(|name| value_at(args, index, *name)))
}

/// Returns the values of all options with one of the names, also behind `--`, which does not end
/// the options of every program.
pub(super) fn all_values(args: &[Word], names: &[OptionName<'_>]) -> Vec<Word> {
    let values_at = |index| {
        names
            .iter()
            .find_map(move |name| value_at(args, index, *name))
    };
    (0..args.len())
        .filter_map(values_at)
        .map(|(_, value)| value)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::OptionName::{AnyDashes, Exact, Letter, LetterAfter, Long};
    use super::*;

    #[test]
    fn each_kind_of_name_has_its_forms() {
        let value = |option, line: &str| {
            let args: Vec<Word> = line.split(' ').map(Word::text).collect();
            value_at(&args, 0, option).map(|(index, value)| (index, value.known().unwrap()))
        };
        let next = || Some((1, "v".to_owned()));
        let same = || Some((0, "v".to_owned()));
        for (option, line, expected) in [
            (Letter('o'), "-o v", next()),
            (Letter('o'), "-ov x", same()),
            (Letter('o'), "-xo v", next()),
            (Letter('o'), "-xov x", same()),
            (Letter('o'), "-o", None),
            (Letter('o'), "--o v", None),
            (Letter('o'), "o v", None),
            (LetterAfter("xy", 'o'), "-o v", next()),
            (LetterAfter("xy", 'o'), "-ov x", same()),
            (LetterAfter("xy", 'o'), "-xyo v", next()),
            (LetterAfter("xy", 'o'), "-xyov x", same()),
            (LetterAfter("xy", 'o'), "-xzo v", None),
            (LetterAfter("xy", 'o'), "-x v", None),
            (LetterAfter("xy", 'o'), "--o v", None),
            (Long("output"), "--output v", next()),
            (Long("output"), "--output=v x", same()),
            (Long("output"), "--out v", next()),
            (Long("output"), "--out=v x", same()),
            (Long("output"), "--o v", None),
            (Long("output"), "--output-dir v", None),
            (Long("output"), "-output v", None),
            (Exact("output"), "--output=v x", same()),
            (Exact("output"), "--output v", next()),
            (Exact("output"), "--out v", None),
            (AnyDashes("exec"), "-exec v", next()),
            (AnyDashes("exec"), "-exec=v x", same()),
            (AnyDashes("exec"), "-ex v", None),
            (AnyDashes("exec"), "--ex v", next()),
            (AnyDashes("exec"), "---exec v", None),
        ] {
            assert_eq!(value(option, line), expected, "{line}");
        }
    }

    #[test]
    fn open_part_behind_a_letter_is_the_value() {
        let mut word = Word::text("-o");
        word.0.extend(Word::open("$file").0);
        let args = [word, Word::text("operand")];
        assert_eq!(
            value_at(&args, 0, Letter('o')),
            Some((0, Word::open("$file")))
        );
    }

    #[test]
    fn first_value_is_before_the_end_of_the_options() {
        let args = ["-a", "--", "-c", "v"].map(Word::text);
        let names = [Letter('c'), Long("command")];
        assert_eq!(first_value(&args, &names), None);
        assert_eq!(first_value(&args[2..], &names), Some((1, Word::text("v"))));
        assert_eq!(all_values(&args, &names), [Word::text("v")]);
    }
}
