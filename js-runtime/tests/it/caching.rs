//! Caches of modules on the disk, and of lookups while extensions are loaded.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use deno_core::sourcemap::SourceMapBuilder;
use js_runtime::MemoryCache;
use serde_json::{Value, json};
use twox_hash::XxHash64;

use crate::support::{Folder, Js, answering, options};

/// Returns the checksum of a cache file, computed from its name and content.
fn checksum(path: &Path, content: &[u8]) -> [u8; 8] {
    let name = path.file_name().unwrap().as_encoded_bytes();
    XxHash64::oneshot(XxHash64::oneshot(0, name), content).to_le_bytes()
}

/// Writes a cache file with its checksum.
fn write_cached(path: &Path, content: &str) {
    let mut file = content.as_bytes().to_vec();
    file.extend(checksum(path, content.as_bytes()));
    std::fs::write(path, file).unwrap();
}

/// Replaces the code of the only compiled file that contains `text`; returns whether there is one.
fn replace_cached(cache: &Path, text: &str, code: &str) -> bool {
    let entries = std::fs::read_dir(cache).unwrap();
    let mut files = entries.map(|entry| entry.unwrap().path());
    let found = files.find(|path| {
        path.extension().is_some_and(|extension| extension == "js")
            && String::from_utf8_lossy(&std::fs::read(path).unwrap()).contains(text)
    });
    found.is_some_and(|path| {
        write_cached(&path, code);
        true
    })
}

/// Waits until `is_written` returns true. Files are written in the background, and an isolate that
/// ends leaves out those that take too long.
async fn wait_until(is_written: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_written() {
        assert!(Instant::now() < deadline, "the cache is not written");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn cache_is_used_and_notices_changes() {
    let folder = Folder::new(&[
        (
            "index.ts",
            &answering("import { Kind, n } from './lib';", "[typeof Kind, n]"),
        ),
        ("lib.ts", "export interface Kind {}\nexport const n = 1;"),
    ]);
    let (path, cache) = (folder.path("index.ts"), folder.path("cache"));
    let answer = async || {
        let mut options = options();
        options.cache_dir = Some(cache.clone());
        let js = Js::with(options);
        let answer = js.get(&path).await;
        wait_until(|| {
            let written = ["js", "map", "deps"].map(|ending| sizes(&cache, ending).len());
            written.iter().all(|&files| files >= 2)
        })
        .await;
        js.runtime.shutdown().await;
        answer
    };
    assert_eq!(answer().await, json!(["undefined", 1]));

    // A marked copy shows that the cached file is used.
    let code = "export const n = 'cached';";
    assert!(replace_cached(&cache, "export const n = 1", code));
    assert_eq!(answer().await, json!(["undefined", "cached"]));

    // The importing file is the same, but its dependency has changed.
    folder.write("lib.ts", "export class Kind {}\nexport const n = 2;");
    assert_eq!(answer().await, json!(["function", 2]));
    folder.write("lib.js", "export const n = 'found first';");
    assert_eq!(answer().await, json!(["undefined", "found first"]));
}

/// Returns the files of `folder` with this ending, and their sizes.
fn sizes(folder: &Path, ending: &str) -> HashMap<PathBuf, u64> {
    let entries = std::fs::read_dir(folder).unwrap();
    let files = entries.map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|found| found == ending));
    let size = |path: &PathBuf| std::fs::metadata(path).unwrap().len();
    files.map(|path| (path.clone(), size(&path))).collect()
}

#[tokio::test]
async fn builtin_modules_are_compiled_once() {
    let imports = "import { Compile } from 'typebox/compile';";
    let folder = Folder::new(&[("index.ts", &answering(imports, "typeof Compile"))]);
    let (path, cache) = (folder.path("index.ts"), folder.path("cache"));
    let mut options = options();
    options.cache_dir = Some(cache.clone());
    let js = Js::with(options);
    assert_eq!(js.get(&path).await, json!("function"));
    // The compiled file of the extension is smaller in any case.
    wait_until(|| sizes(&cache, "v8").values().any(|&size| size > 50_000)).await;
}

#[tokio::test]
async fn idle_isolate_makes_caches_of_functions_that_ran() {
    let lazy = "function lazy() { const all = []; all.push(1); all.push(2); return all; }";
    let required = "const made = require('./required.cjs')();";
    let imports = format!("import 'node:zlib';\n{lazy}\n{required}\nlazy();");
    let folder = Folder::new(&[
        ("index.ts", &answering(&imports, "made")),
        ("required.cjs", &format!("{lazy}\nmodule.exports = lazy;")),
    ]);
    let (path, cache) = (folder.path("index.ts"), folder.path("cache"));
    let start = async || {
        let mut options = options();
        options.cache_dir = Some(cache.clone());
        let js = Js::with(options);
        assert_eq!(js.get(&path).await, json!([1, 2]));
        js
    };
    // Caches of Node's modules got further functions, too.
    let is_larger = |(path, size): (PathBuf, u64)| {
        let first = std::fs::metadata(path.with_extension("v8"));
        first.is_ok_and(|first| first.len() < size)
    };
    let js = start().await;
    let made = || {
        sizes(&cache, "hot")
            .into_iter()
            .filter(|one| is_larger(one.clone()))
    };
    let deadline = Instant::now() + Duration::from_secs(60);
    while made().count() < 3 {
        assert!(Instant::now() < deadline, "{:?}", sizes(&cache, "hot"));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    js.runtime.shutdown().await;
    let made = sizes(&cache, "hot");

    // The caches are used; those that V8 rejects are deleted. Others may be written late.
    for path in made.keys() {
        write_cached(path, "of another V8");
    }
    start().await.runtime.shutdown().await;
    let kept: Vec<_> = made.keys().filter(|path| path.exists()).collect();
    assert!(kept.is_empty(), "{kept:?}");
}

#[tokio::test]
async fn damaged_cache_is_made_again() {
    let imports = "import { n } from './lib';\nimport made from './made.cjs';";
    let folder = Folder::new(&[
        ("index.ts", &answering(imports, "n + made")),
        ("lib.ts", "export const n: number = 1;"),
        ("made.cjs", "module.exports = 2;"),
    ]);
    let (path, cache) = (folder.path("index.ts"), folder.path("cache"));
    let start = async |is_written: &dyn Fn() -> bool| {
        let mut options = options();
        options.cache_dir = Some(cache.clone());
        let js = Js::with(options);
        assert_eq!(js.get(&path).await, json!(3));
        wait_until(is_written).await;
        js.runtime.shutdown().await;
    };
    let written = || ["js", "map", "deps", "cjs", "v8"].map(|ending| sizes(&cache, ending));
    start(&|| written().iter().all(|files| !files.is_empty())).await;
    let made = written();
    for damage in [
        |file: &mut Vec<u8>| file.clear(),
        |file: &mut Vec<u8>| file.truncate(file.len() / 2),
        |file: &mut Vec<u8>| {
            let middle = file.len() / 2;
            file[middle] ^= 1;
        },
    ] {
        let made = || made.iter().flat_map(HashMap::keys);
        for path in made() {
            let mut file = std::fs::read(path).unwrap();
            damage(&mut file);
            std::fs::write(path, file).unwrap();
        }
        let is_intact = |path: &PathBuf| {
            let file = std::fs::read(path).unwrap_or_default();
            let parts = file.split_last_chunk();
            parts.is_some_and(|(data, sum)| checksum(path, data) == *sum)
        };
        start(&|| made().all(is_intact)).await;
    }
}

#[tokio::test]
async fn entries_are_compiled_before_they_load() {
    let folder = Folder::new(&[
        (
            "index.ts",
            &answering("import { n } from './inner/lib';\nimport './broken';", "n"),
        ),
        ("inner/lib.ts", "export const n: number = 1;"),
        ("broken.ts", "export const = 1;"),
    ]);
    let path = folder.path("index.ts");
    let cache = folder.path("cache");
    let start = || {
        let mut options = options();
        options.cache_dir = Some(cache.clone());
        options.entries = vec![(1, folder.path("nowhere.ts")), (2, path.clone())];
        Js::with(options)
    };
    // No load is requested.
    let js = start();
    let code = "export const n = 'ahead';";
    while !replace_cached(&cache, "export const n = 1", code) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let error = js.load(2, &path).await.unwrap_err().to_string();
    assert!(error.contains("broken.ts:1:14"), "{error}");
    js.runtime.shutdown().await;

    folder.write("broken.ts", "export {};");
    let js = start();
    js.load(2, &path).await.unwrap();
    assert_eq!(js.dispatch("get", Value::Null).await, Ok(json!("ahead")));
}

/// The lookups that are remembered while extensions are loaded must not hide new files.
#[tokio::test]
async fn files_created_while_loading_are_found() {
    let imports = "import { mkdirSync, writeFileSync } from 'node:fs';\n\
        const own = import.meta.dirname;\n\
        const tried = await import('late').catch(() => 'not there');\n\
        mkdirSync(own + '/node_modules/late', { recursive: true });\n\
        writeFileSync(own + '/node_modules/late/package.json', '{\"type\":\"module\",\"exports\":\"./m.js\"}');\n\
        writeFileSync(own + '/node_modules/late/m.js', 'export const n = 1;');\n\
        const late = await import('late');\n\
        writeFileSync(own + '/made.ts', 'export const n: number = 2;');\n\
        const made = await import('./made');\n\
        writeFileSync(own + '/made.ts', 'export const n: number = 3;');\n\
        const again = await import('./made.ts?v=2');";
    let folder = Folder::new(&[(
        "index.ts",
        &answering(imports, "[tried, late.n, made.n, again.n]"),
    )]);
    let js = Js::start();
    let answer = js.get(&folder.path("index.ts")).await;
    assert_eq!(answer, json!(["not there", 1, 2, 3]));
}

/// Waits until the cache has such a file, other than `known`.
async fn comes(cache: &Path, ending: &str, known: &HashMap<PathBuf, u64>) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while sizes(cache, ending)
        .keys()
        .all(|path| known.contains_key(path))
    {
        assert!(Instant::now() < deadline, "no {ending}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn unchanged_modules_are_prefetched() {
    let imports = "import { n } from './lib';\nimport 'a';\nimport 'node:zlib';\nconst made = require('./made.cjs');\n\
         ['b', 'a'].sort((a, b) => a.localeCompare(b));";
    let folder = Folder::new(&[
        ("index.ts", &answering(imports, "[n, made]")),
        ("lib.ts", "export const n: any = 1;"),
        ("made.cjs", "module.exports = 1;"),
        ("node_modules/a/index.mjs", ""),
        ("node_modules/a/package.json", r#"{"main": "index.mjs"}"#),
    ]);
    let (path, cache) = (folder.path("index.ts"), folder.path("cache"));
    let start = || {
        let mut options = options();
        options.cache_dir = Some(cache.clone());
        options.entries = vec![(1, path.clone())];
        Js::with(options)
    };
    let answer = async |js: &Js| {
        js.load(1, &path).await.unwrap();
        js.dispatch("get", Value::Null).await.unwrap()
    };
    let mut hot = HashMap::new();
    for code in [None, Some("export const n = 'ahead';")] {
        if let Some(code) = code {
            assert!(replace_cached(&cache, "export const n = 1", code));
        }
        let js = start();
        answer(&js).await;
        comes(&cache, "hot", &hot).await;
        comes(&cache, "trail", &HashMap::new()).await;
        js.runtime.shutdown().await;
        hot = sizes(&cache, "hot");
    }
    let trail = sizes(&cache, "trail").into_keys().next().unwrap();
    let trail = String::from_utf8_lossy(&std::fs::read(trail).unwrap()).into_owned();
    for step in [
        "/index.ts\"",
        "/lib.ts\"",
        "/lib\"}",
        "{\"Package\":{\"name\":\"a\",",
        "{\"Text\":",
        "/made.cjs\"",
        "{\"CompiledCode\":",
        "{\"Builtin\":\"node:zlib\"}",
        "{\"Locales\":\"Collation\"}",
    ] {
        assert!(trail.contains(step), "{step}: {trail}");
    }

    // Changes of the cache have no effect meanwhile.
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut pause = Duration::from_millis(50);
    loop {
        let js = start();
        tokio::time::sleep(pause).await;
        assert!(replace_cached(
            &cache,
            "'ahead'",
            "export const n = 'later';"
        ));
        let found = answer(&js).await;
        js.runtime.shutdown().await;
        assert!(replace_cached(
            &cache,
            "'later'",
            "export const n = 'ahead';"
        ));
        if found == json!(["ahead", 1]) {
            break;
        }
        assert_eq!(found, json!(["later", 1]));
        assert!(Instant::now() < deadline, "it is never read before");
        pause *= 2;
    }

    // Changes of the files have.
    let js = start();
    tokio::time::sleep(pause).await;
    folder.write("lib.ts", "export const n: any = 2;");
    folder.write("made.cjs", "module.exports = 2;");
    assert_eq!(answer(&js).await, json!([2, 2]));
}

/// Replaces a text by another of the same length and keeps the time of the file, so that the change
/// cannot be noticed.
fn replace_unseen(path: &Path, from: &str, to: &str) {
    let modified = std::fs::metadata(path).unwrap().modified().unwrap();
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.contains(from) && from.len() == to.len());
    std::fs::write(path, text.replace(from, to)).unwrap();
    let file = std::fs::File::options().append(true).open(path).unwrap();
    file.set_modified(modified).unwrap();
}

#[tokio::test]
async fn next_isolate_reads_only_changed_files() {
    let imports =
        "import { n } from './lib';\nimport { p } from 'a';\nconst made = require('./made.cjs');";
    let folder = Folder::new(&[
        ("index.ts", &answering(imports, "[n, made, p]")),
        ("lib.ts", "export const n: any = 1;"),
        ("made.cjs", "module.exports = 1;"),
        ("node_modules/a/package.json", r#"{"main": "1.mjs"}"#),
        ("node_modules/a/1.mjs", "export const p = 1;"),
        ("node_modules/a/2.mjs", "export const p = 2;"),
    ]);
    let (path, cache) = (folder.path("index.ts"), folder.path("cache"));
    let start = |memory_cache: &MemoryCache| {
        let mut options = options();
        // A host process shares no memory cache.
        options.process = None;
        options.cache_dir = Some(cache.clone());
        options.entries = vec![(1, path.clone())];
        options.memory_cache = memory_cache.clone();
        Js::with(options)
    };
    let answer = async |js: &Js| {
        js.load(1, &path).await.unwrap();
        js.dispatch("get", Value::Null).await.unwrap()
    };
    // The files were changed long ago.
    let old = SystemTime::now() - Duration::from_secs(60);
    let files = [
        "index.ts",
        "lib.ts",
        "made.cjs",
        "node_modules/a/package.json",
    ];
    for file in files.into_iter().chain(["node_modules/a/1.mjs"]) {
        let file = std::fs::File::options()
            .append(true)
            .open(folder.path(file));
        file.unwrap().set_modified(old).unwrap();
    }
    let js = start(&MemoryCache::default());
    assert_eq!(answer(&js).await, json!([1, 1, 1]));
    comes(&cache, "trail", &HashMap::new()).await;
    js.runtime.shutdown().await;

    // The first isolate that prefetches fills the memory cache.
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut pause = Duration::from_millis(50);
    let memory_cache = loop {
        let memory_cache = MemoryCache::default();
        for _ in 0..2 {
            let js = start(&memory_cache);
            tokio::time::sleep(pause).await;
            assert_eq!(answer(&js).await, json!([1, 1, 1]));
            js.runtime.shutdown().await;
        }
        replace_unseen(&folder.path("lib.ts"), "= 1", "= 2");
        replace_unseen(&folder.path("made.cjs"), "= 1", "= 2");
        replace_unseen(&folder.path("node_modules/a/package.json"), "1.", "2.");
        let js = start(&memory_cache);
        tokio::time::sleep(pause).await;
        let found = answer(&js).await;
        js.runtime.shutdown().await;
        if found == json!([1, 1, 1]) {
            break memory_cache;
        }
        assert!(Instant::now() < deadline, "it is read again: {found}");
        replace_unseen(&folder.path("lib.ts"), "= 2", "= 1");
        replace_unseen(&folder.path("made.cjs"), "= 2", "= 1");
        replace_unseen(&folder.path("node_modules/a/package.json"), "2.", "1.");
        pause *= 2;
    };

    // An isolate without that memory cache reads the file, and every isolate reads what has
    // changed.
    let js = start(&MemoryCache::default());
    tokio::time::sleep(pause).await;
    assert_eq!(answer(&js).await, json!([2, 2, 2]));
    js.runtime.shutdown().await;
    folder.write("lib.ts", "export const n: any = 3;");
    folder.write("made.cjs", "module.exports = 3;");
    folder.write("node_modules/a/package.json", r#"{"main": "./2.mjs"}"#);
    let js = start(&memory_cache);
    tokio::time::sleep(pause).await;
    assert_eq!(answer(&js).await, json!([3, 3, 2]));
}

#[tokio::test]
async fn ascii_packages_keep_their_source_positions() {
    let plain = "(() => { /* \u{2013} */ return 1; }).toString()";
    let place = "new Error().stack.match(/[^/]*:\\d+:\\d+/)[0]";
    let strings = format!(
        "said = (() => '\u{2013}').toString(), pattern = /\u{2013}\\/\"/u, at = () => ['\u{1f600}', {place}]"
    );
    let column = |text: &str| {
        text[..text.find("new Error").unwrap()]
            .encode_utf16()
            .count()
    };
    let (esm, cjs) = (
        format!("export const {strings};"),
        format!("const {strings};"),
    );
    let mut map = SourceMapBuilder::new(None);
    let column_of_mapped = u32::try_from(column(&esm)).unwrap();
    map.add(0, column_of_mapped, 6, 2, Some("mapped.ts"), None, false);
    let mut written = Vec::new();
    map.into_sourcemap().to_writer(&mut written).unwrap();
    let folder = Folder::new(&[
        (
            "index.ts",
            &answering(
                "import { esm, at } from 'a';\nimport * as b from 'a/strings.js';\n\
                 import * as mapped from 'a/mapped.js';\n\
                 const cjs = require('a/made.cjs');\nconst c = require('a/strings.cjs');",
                "[esm, cjs, at(), ...[b, c, mapped].map((it) => \
                 [it.said, it.pattern.source, it.pattern.flags, it.at()])]",
            ),
        ),
        ("node_modules/a/package.json", r#"{"type": "module"}"#),
        (
            "node_modules/a/index.js",
            &format!(
                "// \u{1f600}\nexport const esm = {plain};\n/* \u{2013} */ export const at = () => {place};"
            ),
        ),
        (
            "node_modules/a/made.cjs",
            &format!("module.exports = {plain};"),
        ),
        ("node_modules/a/strings.js", &esm),
        (
            "node_modules/a/strings.cjs",
            &format!("{cjs}\nmodule.exports = {{ said, pattern, at }};"),
        ),
        (
            "node_modules/a/mapped.js",
            &format!("{esm}\n//# sourceMappingURL=mapped.js.map"),
        ),
        (
            "node_modules/a/mapped.js.map",
            std::str::from_utf8(&written).unwrap(),
        ),
        ("node_modules/a/mapped.ts", ""),
    ]);
    let (path, cache) = (folder.path("index.ts"), folder.path("cache"));
    let start = || {
        let mut options = options();
        options.cache_dir = Some(cache.clone());
        options.entries = vec![(1, path.clone())];
        Js::with(options)
    };
    let answer = async |js: &Js| {
        js.load(1, &path).await.unwrap();
        js.dispatch("get", Value::Null).await.unwrap()
    };
    let expected = |in_comment: &str, in_text: &str| {
        let plain = format!("() => {{ /* {in_comment} */ return 1; }}");
        let strings = |place: String| {
            let output = format!("() => '{in_text}'");
            json!([output, "\u{2013}\\/\"", "u", ["\u{1f600}", place]])
        };
        json!([
            plain,
            plain,
            "index.js:3:33",
            strings(format!("strings.js:1:{}", column(&esm) + 1)),
            strings(format!("strings.cjs:1:{}", column(&cjs) + 1)),
            strings("mapped.ts:7:3".into()),
        ])
    };
    let at_rest = async |js: Js, files: usize| {
        let deadline = Instant::now() + Duration::from_secs(60);
        while sizes(&cache, "ascii").len() < files {
            assert!(Instant::now() < deadline, "{:?}", sizes(&cache, "ascii"));
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        js.runtime.shutdown().await;
    };
    let js = start();
    assert_eq!(answer(&js).await, expected("\u{2013}", "\u{2013}"));
    at_rest(js, 5).await;
    let compiled = sizes(&cache, "hot");

    // V8 compiles the new text first, and has its cache afterwards.
    let js = start();
    assert_eq!(answer(&js).await, expected("?", "\\u2013"));
    comes(&cache, "hot", &compiled).await;
    at_rest(js, 5).await;
    let mut pause = Duration::from_millis(50);
    while pause < Duration::from_secs(1) {
        let js = start();
        tokio::time::sleep(pause).await;
        assert_eq!(answer(&js).await, expected("?", "\\u2013"));
        js.runtime.shutdown().await;
        pause *= 4;
    }
}
