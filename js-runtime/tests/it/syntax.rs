//! What is said of modules that cannot be loaded, before anything runs.

use js_runtime::{SyntaxProblem, check_syntax};

use crate::support::Folder;

#[test]
fn modules_of_all_kinds() {
    let folder = Folder::new(&[
        ("a.ts", "const x: number = 1; export default () => x;"),
        ("a.js", "module.exports = () => {};"),
        ("b.ts", "export default (\n  => {};"),
        ("c.js", "export {}; const x = 010;"),
    ]);
    let check = |name: &str| check_syntax(&folder.path(name));
    assert_eq!(check("a.ts"), Ok(()));
    assert_eq!(check("a.js"), Ok(()));
    match check("b.ts") {
        Err(SyntaxProblem::Fatal(text)) => {
            assert!(text.starts_with("line 2, column 3: "), "{text}");
        }
        other => panic!("{other:?}"),
    }
    let doubtful = check("c.js");
    assert!(
        matches!(doubtful, Err(SyntaxProblem::Doubtful(_))),
        "{doubtful:?}"
    );
    assert!(check("gone.ts").is_err());
}

#[test]
fn nesting_without_end_is_survived() {
    for depth in [2000, 300_000] {
        let folder = Folder::new(&[("deep.ts", &"[".repeat(depth))]);
        assert!(check_syntax(&folder.path("deep.ts")).is_err(), "{depth}");
    }
}
