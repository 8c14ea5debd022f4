//! Errors name the file, the line and the column of the source.

use std::time::Duration;

use js_runtime::{CallError, LoadError};
use serde_json::Value;

use crate::support::{Folder, Js, handlers};

async fn load_error(folder: &Folder, name: &str) -> (String, String) {
    match Js::start().load(1, &folder.path(name)).await {
        Err(LoadError::Failed { message, stack }) => (message, stack),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn syntax_errors_have_positions() {
    let folder = Folder::new(&[
        (
            "a.ts",
            "const x: number = 1;\nexport default (pi) => {\n  const = 2;\n};\n",
        ),
        ("b.ts", "import './a';\nexport default () => {};"),
        ("c.js", "export default () => {\n  let y y;\n};\n"),
    ]);
    for name in ["a.ts", "b.ts"] {
        let (message, _) = load_error(&folder, name).await;
        let place = format!("{}:3:9", folder.path("a.ts").display());
        assert!(message.contains(&place), "{message}");
        assert!(!message.contains("file://"), "{message}");
    }
    let (message, _) = load_error(&folder, "c.js").await;
    let place = format!("{}:2:9", folder.path("c.js").display());
    assert!(message.contains(&place), "{message}");
}

#[tokio::test]
async fn missing_module_names_the_import() {
    let folder = Folder::new(&[
        (
            "file.ts",
            "\nimport x from './nowhere';\nexport default () => x;",
        ),
        (
            "package.ts",
            "import fs from 'node:fs';\n\n  export * from 'not-installed';\nexport default () => fs;",
        ),
        (
            "dynamic.ts",
            "export default async () => {\n  await import('./later');\n};",
        ),
        ("inner.ts", "import './file';\nexport default () => {};"),
    ]);
    for (name, wanted, place) in [
        ("file.ts", "Cannot find module './nowhere'", "file.ts:2:15"),
        ("inner.ts", "Cannot find module './nowhere'", "file.ts:2:15"),
        ("package.ts", "not-installed", "package.ts:3:17"),
        (
            "dynamic.ts",
            "Cannot find module './later'",
            "dynamic.ts:2:16",
        ),
    ] {
        let (message, _) = load_error(&folder, name).await;
        assert!(message.contains(wanted), "{name}: {message}");
        let place = format!(
            "{}/{place}",
            folder.path("").display().to_string().trim_end_matches('/')
        );
        assert!(message.contains(&place), "{name}: {message} lacks {place}");
    }
    let (message, _) = load_error(&folder, "absent.ts").await;
    assert!(message.contains("absent.ts does not exist"), "{message}");
}

#[tokio::test]
async fn load_exception_has_mapped_position_and_stack() {
    let folder = Folder::new(&[
        (
            "top.ts",
            "interface Long {\n  a: string;\n}\nimport { boom } from './boom';\nboom();\nexport default () => {};",
        ),
        (
            "boom.ts",
            "type A = 1;\ntype B = 2;\nexport function boom(): never {\n  throw new TypeError('bad thing');\n}",
        ),
        (
            "factory.ts",
            "type A = 1;\nexport default async () => {\n  await null;\n  throw new Error('in the factory', { cause: new Error('deep') });\n};",
        ),
        ("none.ts", "export const x = 1;"),
    ]);
    let (message, stack) = load_error(&folder, "top.ts").await;
    let place = format!("{}:4:9", folder.path("boom.ts").display());
    assert_eq!(message, format!("TypeError: bad thing ({place})"));
    let caller = format!("{}:5:1", folder.path("top.ts").display());
    assert!(stack.contains(&place) && stack.contains(&caller), "{stack}");
    assert!(!stack.contains("ext:"), "{stack}");

    let (message, stack) = load_error(&folder, "factory.ts").await;
    let place = format!("{}:4:9", folder.path("factory.ts").display());
    assert_eq!(
        message,
        format!("Error: in the factory: Error: deep ({place})")
    );
    assert!(stack.contains("caused by"), "{stack}");

    let (message, _) = load_error(&folder, "none.ts").await;
    assert!(message.contains("valid factory function"), "{message}");
}

#[tokio::test]
async fn handler_exception_is_mapped_with_and_without_cache() {
    let folder = Folder::new(&[(
        "a.ts",
        &format!(
            "type A = 1;\n{}",
            handlers(&[
                ("now", "() => { throw new RangeError('now') }"),
                ("later", "async () => { await null; throw 'text' }")
            ])
        ),
    )]);
    for _ in 0..2 {
        let mut options = crate::support::options();
        options.cache_dir = Some(folder.path("cache"));
        let js = Js::with(options);
        js.load(1, &folder.path("a.ts")).await.unwrap();
        let Err(CallError::Thrown {
            message,
            plain,
            stack,
        }) = js.dispatch("now", Value::Null).await
        else {
            panic!("it did not throw");
        };
        assert_eq!(message, "RangeError: now");
        assert_eq!(plain, "now");
        let place = format!("{}:3:", folder.path("a.ts").display());
        assert!(stack.contains(&place), "{stack}");
        let later = js.dispatch("later", Value::Null).await;
        assert_eq!(
            later,
            Err(CallError::Thrown {
                message:
                    "\"text\" was thrown, which is no error and has no line: write `throw new \
                          Error(\"...\")`"
                        .into(),
                plain: "text".into(),
                stack: String::new()
            })
        );
        let unknown = js.runtime.call("nothing", "{}".into()).await;
        let message = "the bridge has no function \"nothing\"".to_string();
        assert_eq!(
            unknown,
            Err(CallError::Thrown {
                plain: message.clone(),
                message,
                stack: String::new()
            })
        );
        js.runtime.shutdown().await;
    }
}

/// Such a load flooded the host with reports until the program ended.
#[tokio::test]
async fn load_failure_is_reported_once() {
    let folder = Folder::new(&[
        (
            "for_ever.ts",
            "await new Promise(() => {}); export default () => {};",
        ),
        ("throws.ts", "throw new Error('boo');"),
        (
            "rejects.ts",
            "await Promise.reject(new Error('boo')); export default () => {};",
        ),
        ("good.ts", "export default () => {};"),
    ]);
    let js = Js::start();
    for (id, (name, what)) in [
        ("for_ever.ts", "top-level `await`"),
        ("throws.ts", "boo"),
        ("rejects.ts", "boo"),
    ]
    .into_iter()
    .enumerate()
    {
        match js.load(id as u32 + 1, &folder.path(name)).await {
            Err(LoadError::Failed { message, .. }) => assert!(message.contains(what), "{message}"),
            other => panic!("{name}: {other:?}"),
        }
    }
    js.load(9, &folder.path("good.ts")).await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(js.host.faults(), []);
}
