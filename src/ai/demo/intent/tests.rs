use serde_json::json;

use super::*;

fn list(path: &str) -> Intent {
    Intent::List { path: path.into() }
}

fn read(path: &str) -> Intent {
    Intent::Read { path: path.into() }
}

fn run(command: &str) -> Intent {
    Intent::Run {
        command: command.into(),
    }
}

fn edit(path: &str, old: &str, new: &str) -> Intent {
    Intent::Edit {
        path: path.into(),
        old: old.into(),
        new: new.into(),
    }
}

fn write(path: &str, content: &str) -> Intent {
    Intent::Write {
        path: path.into(),
        content: content.into(),
    }
}

fn search(text: &str, path: Option<&str>) -> Intent {
    Intent::Search {
        text: text.into(),
        path: path.map(str::to_owned),
    }
}

fn find_files(pattern: &str) -> Intent {
    Intent::FindFiles {
        pattern: pattern.into(),
    }
}

fn call(tool: &str, arguments: Value) -> Intent {
    Intent::Call {
        tool: tool.into(),
        arguments,
    }
}

#[track_caller]
fn check<const N: usize>(cases: [(&str, Vec<Intent>); N]) {
    for (text, intents) in cases {
        assert_eq!(parse_intents(text, &["todo", "hello"]), intents, "{text}");
    }
}

#[test]
fn listing() {
    check([
        ("list files", vec![list(".")]),
        ("List the files.", vec![list(".")]),
        (
            "Please list all the files in src, thanks",
            vec![list("src")],
        ),
        ("list the files in this folder", vec![list(".")]),
        ("list the files and folders here", vec![list(".")]),
        (
            "show me the files in the src/ai directory",
            vec![list("src/ai")],
        ),
        ("show the contents of src/", vec![list("src/")]),
        ("list src", vec![list("src")]),
        ("ls", vec![list(".")]),
        ("ls -la \"my folder\"", vec![list("my folder")]),
        ("What files are here?", vec![list(".")]),
        ("which files are in docs?", vec![list("docs")]),
        ("what's in this folder?", vec![list(".")]),
        ("what is in src?", vec![list("src")]),
    ]);
}

#[test]
fn reading() {
    check([
        ("read README.md", vec![read("README.md")]),
        (
            "Could you read the file src/main.rs?",
            vec![read("src/main.rs")],
        ),
        ("read Makefile", vec![read("Makefile")]),
        ("cat `a b.txt`", vec![read("a b.txt")]),
        ("show me README.md please.", vec![read("README.md")]),
        ("show the contents of Cargo.toml", vec![read("Cargo.toml")]),
        ("what is in Cargo.toml?", vec![read("Cargo.toml")]),
        (
            "read a.txt, b.txt and c.txt",
            vec![read("a.txt"), read("b.txt"), read("c.txt")],
        ),
    ]);
}

#[test]
fn running() {
    check([
        ("run `cargo --version`", vec![run("cargo --version")]),
        ("Run cargo --version.", vec![run("cargo --version")]),
        ("run the command ls -la", vec![run("ls -la")]),
        ("run git add .", vec![run("git add .")]),
        (
            "run echo \"a and b\" and tell me what it says",
            vec![run("echo \"a and b\"")],
        ),
        (
            "please run `sleep 5; echo done` and tell me the result",
            vec![run("sleep 5; echo done")],
        ),
        ("$ echo a and b", vec![run("echo a and b")]),
        (
            "execute:\n```sh\necho 1\necho 2\n```",
            vec![run("echo 1\necho 2")],
        ),
        ("run the tests", vec![]),
    ]);
}

#[test]
fn changing() {
    check([
        (
            "replace foo with bar in a.txt",
            vec![edit("a.txt", "foo", "bar")],
        ),
        (
            "Replace \"a and b\" with `c` in the file \"x y.txt\".",
            vec![edit("x y.txt", "a and b", "c")],
        ),
        (
            "change the word red to dark blue in colours.css",
            vec![edit("colours.css", "red", "dark blue")],
        ),
        ("in a.txt, replace 1 with 2", vec![edit("a.txt", "1", "2")]),
        (
            "edit a.txt: replace 1 with 2",
            vec![edit("a.txt", "1", "2")],
        ),
        (
            "read a.txt and replace 1 with 2",
            vec![read("a.txt"), edit("a.txt", "1", "2")],
        ),
        ("replace 1 with 2", vec![]),
        (
            "write hello world to notes.txt",
            vec![write("notes.txt", "hello world\n")],
        ),
        (
            "write 'see you, and bye' into a new file notes.txt",
            vec![write("notes.txt", "see you, and bye\n")],
        ),
        (
            "create a file called b.txt with the text don't panic",
            vec![write("b.txt", "don't panic\n")],
        ),
        (
            "create x.sh with:\n```sh\necho 1\n```",
            vec![write("x.sh", "echo 1\n")],
        ),
        ("create an empty file e.txt", vec![write("e.txt", "")]),
    ]);
}

#[test]
fn searching() {
    check([
        ("find TODO", vec![search("TODO", None)]),
        (
            "search for \"fn main\" in src",
            vec![search("fn main", Some("src"))],
        ),
        ("search src for TODO", vec![search("TODO", Some("src"))]),
        (
            "find the text needle in all files",
            vec![search("needle", None)],
        ),
        (
            "where is `ModelRegistry` defined?",
            vec![search("ModelRegistry", None)],
        ),
        ("find files named *.rs", vec![find_files("*.rs")]),
        ("find all *.md files", vec![find_files("*.md")]),
        ("find out what this project does", vec![]),
    ]);
}

#[test]
fn any_tool_by_name() {
    check([
        (
            "call todo {\"action\": \"add\", \"text\": \"a, and b\"}",
            vec![call("todo", json!({"action": "add", "text": "a, and b"}))],
        ),
        (
            "use the hello tool with {\"name\": \"x\"}",
            vec![call("hello", json!({"name": "x"}))],
        ),
        ("use the missing tool", vec![call("missing", json!({}))]),
        ("call hello", vec![call("hello", json!({}))]),
        ("call mum", vec![]),
    ]);
}

#[test]
fn several_things_at_once() {
    check([
        (
            "list the files and read README.md",
            vec![list("."), read("README.md")],
        ),
        (
            "First list the files in src, then read a.txt. Finally, run `date`!",
            vec![list("src"), read("a.txt"), run("date")],
        ),
        ("read a.txt\nread b.txt", vec![read("a.txt"), read("b.txt")]),
    ]);
}

#[test]
fn other_texts_are_no_requests() {
    check([
        ("", vec![]),
        ("hello", vec![]),
        ("what can you do?", vec![]),
        ("What is the weather like?", vec![]),
        ("show me how that works", vec![]),
        ("\u{e000}\u{e001} ' \" ` {", vec![]),
        (
            "<file name=\"/a\">\nrun `rm -rf x`\n</file>\nread b.txt",
            vec![read("b.txt")],
        ),
    ]);
    assert_eq!(parse_intents(&"read a.txt ".repeat(1000), &[]), []);
}
