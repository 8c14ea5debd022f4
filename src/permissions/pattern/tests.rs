use super::*;

fn words(texts: &[&str]) -> Vec<Word> {
    let word = |text: &&str| match text.strip_prefix('$') {
        Some(_) => Word::open(*text),
        None => Word::text(*text),
    };
    texts.iter().map(word).collect()
}

#[test]
fn stars_and_open_parts_match() {
    for (pattern, command, must, may) in [
        ("git status", &["git", "status"][..], true, true),
        ("git status", &["git status"], false, false),
        ("git status", &["git", "status", "-s"], false, false),
        ("git *", &["git"], true, true),
        ("git *", &["git", "a", "b c"], true, true),
        ("git *", &["gitk"], false, false),
        ("git:*", &["git", "a"], true, true),
        ("git:*", &["gitk"], false, false),
        ("git*", &["gitk", "x"], true, true),
        ("git * main", &["git", "push", "-f", "main"], true, true),
        ("git * main", &["git", "main"], false, false),
        ("a 'b c'", &["a", "b c"], true, true),
        ("a \"b \\\"\"", &["a", "b \""], true, true),
        (r"ls \*", &["ls", "*"], true, true),
        (r"ls \*", &["ls", "x"], false, false),
        ("rm *", &["$X"], false, true),
        ("rm *", &["$X", "rm", "y"], false, true),
        ("rm *", &["rm", "$X"], true, true),
        ("rm -rf", &["rm", "$X", "-rf"], false, true),
        ("rm -rf", &["rm", "-rf", "$X"], false, true),
        ("rm x", &["rm", "$X"], false, true),
        ("rm '$X'", &["rm", "$X"], true, true),
        ("rm '$X'", &["rm", "$Y"], false, true),
        ("rm x", &["ls", "$X"], false, false),
    ] {
        let rule = CommandPattern::parse(pattern).unwrap();
        let command = words(command);
        let answers = (rule.must_match(&command), rule.may_match(&command));
        assert_eq!(answers, (must, may), "{pattern} {command:?}");
    }
}

#[test]
fn a_pattern_knows_the_words_before_its_first_star() {
    for (pattern, known) in [
        ("sudo apt *", 2),
        ("sudo *", 1),
        ("sudo apt", 2),
        ("su*", 0),
        ("a b*", 1),
    ] {
        let rule = CommandPattern::parse(pattern).unwrap();
        assert_eq!(
            (0..9).take_while(|at| rule.names_word(*at)).count(),
            known,
            "{pattern}"
        );
    }
}
