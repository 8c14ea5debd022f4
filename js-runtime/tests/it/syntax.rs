//! Checks of modules that cannot be loaded, before any code runs.

use js_runtime::{LoadError, SyntaxProblem, check_syntax};

use crate::support::{Folder, Js};

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

/// Such a file loaded, and both sides ran.
#[tokio::test]
async fn merge_conflict_does_not_load() {
    let conflict = "export default () => {\n\
        <<<<<<< HEAD\n  const side = 'mine';\n=======\n  const other = 'theirs';\n>>>>>>> feature\n};\n";
    let files = ["conflict.ts", "conflict.js", "helper.ts"];
    let folder = Folder::new(&[
        (files[0], conflict),
        (files[1], conflict),
        (files[2], "import './conflict';\nexport default () => {};"),
    ]);
    for name in files {
        if name != "helper.ts" {
            assert!(check_syntax(&folder.path(name)).is_err(), "{name}");
        }
        match Js::start().load(1, &folder.path(name)).await {
            Err(LoadError::Failed { message, .. }) => {
                assert!(message.contains("SyntaxError"), "{name}: {message}");
            }
            other => panic!("{name}: {other:?}"),
        }
    }
}

#[test]
fn deep_nesting_does_not_crash() {
    for depth in [2000, 300_000] {
        let folder = Folder::new(&[("deep.ts", &"[".repeat(depth))]);
        assert!(check_syntax(&folder.path("deep.ts")).is_err(), "{depth}");
    }
}
