//! Environment variables that tell the programs of a command that no person can answer. A command
//! has no terminal and an empty input, but editors and password windows need neither: the command
//! would wait for them until the time limit.

/// A command that fails. Git shows it, so that the model reads the advice in the comment.
const NO_EDITOR: &str = "false # no user can edit the text: give it with -m or -F, or keep \
                         what git proposes with GIT_EDITOR=true";

/// Takes precedence over the setting `sequence.editor`. Runs GIT_EDITOR, which a command may set.
const NO_SEQUENCE_EDITOR: &str = r#"sh -c "${GIT_EDITOR:-false} \"\$@\"" editor "$@" # no user can edit the list: name a program that does with GIT_SEQUENCE_EDITOR, or keep what git proposes with GIT_EDITOR=true"#;

const VARIABLES: [(&str, &str); 9] = [
    // Takes precedence over `core.editor`, VISUAL and EDITOR.
    ("GIT_EDITOR", NO_EDITOR),
    // Used by `git rebase -i`.
    ("GIT_SEQUENCE_EDITOR", NO_SEQUENCE_EDITOR),
    // These prevent prompts for a name or a password: at a terminal, and, since an empty program
    // counts as none, in the window of `core.askPass` or SSH_ASKPASS.
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ASKPASS", ""),
    ("GCM_INTERACTIVE", "never"),
    ("SSH_ASKPASS_REQUIRE", "never"),
    ("GIT_PAGER", "cat"),
    ("PAGER", "cat"),
    ("DEBIAN_FRONTEND", "noninteractive"),
];

/// Returns the variables that pi's own environment lacks: values that the user has set are kept.
pub(crate) fn variables() -> Vec<(&'static str, String)> {
    missing(|name| std::env::var_os(name).is_some())
}

fn missing(is_set: impl Fn(&str) -> bool) -> Vec<(&'static str, String)> {
    let missing = VARIABLES.iter().filter(|(name, _)| !is_set(name));
    missing
        .map(|(name, value)| (*name, (*value).to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_the_user_are_kept() {
        let set = ["GIT_EDITOR", "PAGER"];
        let names: Vec<_> = missing(|name| set.contains(&name))
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        assert_eq!(names.len(), VARIABLES.len() - set.len());
        assert!(!names.contains(&"GIT_EDITOR") && !names.contains(&"PAGER"));
        assert!(names.contains(&"GIT_PAGER"));
    }
}
