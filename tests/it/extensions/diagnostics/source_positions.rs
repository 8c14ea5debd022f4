//! Errors lead their author to the source: names, positions, source lines, also through source maps
//! of compiled packages.

use std::fs;

use serde_json::{Value, json};

use crate::support::{DEMO_NO_SESSION, Home, Rpc};

async fn error(rpc: &mut Rpc, command: &str) -> Value {
    let prompt = json!({"type": "prompt", "message": command});
    rpc.send(&prompt.to_string()).await;
    let is_it = |line: &Value| line["type"] == "extension_error";
    let error = rpc.wait("an extension_error", is_it).await;
    assert_eq!(error["extensionPath"], format!("command:{}", &command[1..]));
    error
}

#[tokio::test]
async fn an_error_shows_its_line_and_extension() {
    let home = Home::bare();
    let folder = home.agent_dir().join("extensions/tool-box");
    fs::create_dir_all(folder.join("src")).unwrap();
    let manifest = json!({"name": "@me/tool-box", "version": "3.2.1",
        "pi": {"extensions": ["./src/main.ts"]}});
    fs::write(folder.join("package.json"), manifest.to_string()).unwrap();
    fs::write(
        folder.join("src/main.ts"),
        "import { fails } from \"dep\";\n\
         import { open } from \"old-dep\"; import { close } from \"cjs-dep\"; import { enter } from \"within-dep\";\n\
         interface Removed { byTheCompiler: boolean }\n\
         export default function (pi) {\n\
         \x20 const handler = async () => fails();\n\
         \x20 pi.registerCommand(\"esm\", { handler });\n\
         \x20 pi.registerCommand(\"old\", { handler: async () => { open(); } });\n\
         \x20 pi.registerCommand(\"cjs\", { handler: async () => { close(); } });\n\
         \x20 pi.registerCommand(\"within\", { handler: async () => { enter(); } });\n\
         }\n",
    )
    .unwrap();
    // Compiled code in which everything maps to line 4 of the source.
    let map = |source: &str| {
        json!({"version": 3, "sources": [source], "names": [], "mappings": "AAGA"}).to_string()
    };
    let dep = folder.join("node_modules/dep");
    fs::create_dir_all(dep.join("dist")).unwrap();
    fs::create_dir_all(dep.join("src")).unwrap();
    let manifest = json!({"name": "dep", "type": "module", "exports": "./dist/index.js"});
    fs::write(dep.join("package.json"), manifest.to_string()).unwrap();
    fs::write(
        dep.join("dist/index.js"),
        "export function fails() { throw new Error('in the package'); }\n\
         //# sourceMappingURL=index.js.map\n",
    )
    .unwrap();
    // A map in the form that `tsc` writes.
    let of_tsc = map("../src/index.ts").replace("\"names\"", "\"sourceRoot\":\"\",\"names\"");
    fs::write(dep.join("dist/index.js.map"), of_tsc).unwrap();
    fs::write(
        dep.join("src/index.ts"),
        "// 1\n// 2\n// 3\nexport function fails() {}\n",
    )
    .unwrap();
    // The sources were not published, so a position in them would lead nowhere.
    let old = folder.join("node_modules/old-dep");
    fs::create_dir_all(&old).unwrap();
    fs::write(
        old.join("package.json"),
        r#"{"name": "old-dep", "type": "module", "main": "index.js"}"#,
    )
    .unwrap();
    fs::write(
        old.join("index.js"),
        "export function open() { throw new Error('old'); }\n//# sourceMappingURL=index.js.map\n",
    )
    .unwrap();
    fs::write(old.join("index.js.map"), map("src/gone.ts")).unwrap();

    // The map contains the sources, as in most packages on npm.
    let within = folder.join("node_modules/within-dep");
    fs::create_dir_all(&within).unwrap();
    fs::write(
        within.join("package.json"),
        r#"{"name": "within-dep", "type": "module", "main": "index.js"}"#,
    )
    .unwrap();
    fs::write(
        within.join("index.js"),
        "export function enter() { throw new Error('within'); }\n//# sourceMappingURL=index.js.map\n",
    )
    .unwrap();
    let content = map("src/gone.ts").replace("\"names\"", "\"sourcesContent\":[\"\"],\"names\"");
    fs::write(within.join("index.js.map"), content).unwrap();

    // CommonJS with a map in another folder.
    let cjs = folder.join("node_modules/cjs-dep");
    fs::create_dir_all(cjs.join("src")).unwrap();
    fs::create_dir_all(cjs.join("dist/maps")).unwrap();
    let manifest = r#"{"name": "cjs-dep", "main": "dist/index.js"}"#;
    fs::write(cjs.join("package.json"), manifest).unwrap();
    fs::write(
        cjs.join("dist/index.js"),
        "exports.close = () => { throw new Error('closed'); };\n\
         //# sourceMappingURL=maps/index.js.map\n",
    )
    .unwrap();
    let elsewhere = map("index.ts").replace("\"names\"", "\"sourceRoot\":\"../../src/\",\"names\"");
    fs::write(cjs.join("dist/maps/index.js.map"), elsewhere).unwrap();
    fs::write(cjs.join("src/index.ts"), "\n\n\nexport const close = 1;\n").unwrap();

    let mut rpc = home.rpc(&DEMO_NO_SESSION);
    let esm = error(&mut rpc, "/esm").await;
    assert_eq!(
        esm["extension"],
        json!({"name": "@me/tool-box", "version": "3.2.1"})
    );
    let main = folder.join("src/main.ts");
    assert_eq!(
        esm["location"],
        json!({"file": main, "line": 5, "column": 31}),
        "{esm}"
    );
    assert_eq!(
        esm["codeFrame"],
        "  3 | interface Removed { byTheCompiler: boolean }\n\
         \x20 4 | export default function (pi) {\n\
         > 5 |   const handler = async () => fails();\n\
         \x20   |                               ^\n\
         \x20 6 |   pi.registerCommand(\"esm\", { handler });"
    );
    assert_eq!(esm["error"], "in the package");
    let text = esm["stack"].as_str().unwrap();
    let source = dep.join("src/index.ts:4:1");
    assert!(text.contains(source.to_str().unwrap()), "{text}");

    let gone = error(&mut rpc, "/old").await;
    assert_eq!(gone["error"], "old");
    let text = gone["stack"].as_str().unwrap();
    let compiled = old.join("index.js:1:");
    assert!(text.contains(compiled.to_str().unwrap()), "{text}");
    assert_eq!(gone["location"]["line"], 7, "{gone}");

    let within_map = error(&mut rpc, "/within").await;
    let text = within_map["stack"].as_str().unwrap();
    let source = within.join("src/gone.ts:4:1");
    assert!(text.contains(source.to_str().unwrap()), "{text}");

    let closed = error(&mut rpc, "/cjs").await;
    assert_eq!(closed["error"], "closed");
    let text = closed["stack"].as_str().unwrap();
    let source = cjs.join("src/index.ts:4:1");
    assert!(text.contains(source.to_str().unwrap()), "{text}");
    rpc.close().await;
}

/// The report had the position in the package and none in the author's code.
#[tokio::test]
async fn an_error_of_a_package_at_load_is_at_the_authors_line() {
    let home = Home::bare();
    let extensions = home.agent_dir().join("extensions");
    let dep = extensions.join("node_modules/dep");
    fs::create_dir_all(&dep).unwrap();
    fs::write(
        dep.join("package.json"),
        r#"{"name": "dep", "type": "module", "main": "index.js"}"#,
    )
    .unwrap();
    fs::write(
        dep.join("index.js"),
        "export function deep() { throw new RangeError('it said\\n    at other (/p/other.ts:1:1)'); }\n",
    )
    .unwrap();
    let module = home.extension(
        "module.ts",
        "import { deep } from \"dep\";\ndeep();\nexport default () => {};\n",
    );
    let factory = home.extension(
        "factory.ts",
        "import { deep } from \"dep\";\nexport default () => {\n  deep();\n};\n",
    );
    let mut rpc = home.rpc(&DEMO_NO_SESSION);
    for (file, line, column) in [(&factory, 3, 3), (&module, 2, 1)] {
        let error = rpc.event("extension_error").await;
        assert_eq!(error["event"], "load");
        let place = json!({"file": file, "line": line, "column": column});
        assert_eq!(error["location"], place, "{error}");
        let frame = error["codeFrame"].as_str().unwrap();
        assert!(frame.contains(&format!("> {line} | ")), "{error}");
        let text = "RangeError: it said\n    at other (/p/other.ts:1:1)";
        let place = format!(" ({}:{line}:{column})", file.display());
        assert_eq!(error["error"], format!("{text}{place}"));
        let stack = error["stack"].as_str().unwrap();
        let thrown = format!(
            "{text}\n    at deep ({}:1:32)\n",
            dep.join("index.js").display()
        );
        assert!(stack.starts_with(&thrown), "{stack}");
        assert!(
            stack.contains(&format!("{}:{line}:{column}", file.display())),
            "{stack}"
        );
    }
    rpc.close().await;
    for words in [
        &["ext", "check", factory.to_str().unwrap()][..],
        &["ext", "list"],
    ] {
        let output = home.run(words, "").await.stdout;
        let place = format!("{}:3:3)\n", factory.display());
        assert!(
            output.contains(&place) && output.contains("> 3 |   deep();"),
            "{output}"
        );
    }
}

#[tokio::test]
async fn missing_files_and_several_errors_have_positions() {
    let home = Home::bare();
    home.extension(
        "reader.ts",
        "import { readFile } from \"node:fs/promises\";\n\
         export default (pi) => pi.registerCommand(\"read\", {\n\
         \x20 handler: async () => { await readFile(\"/is/nowhere\"); },\n\
         });\n",
    );
    home.extension(
        "several.ts",
        "const failed = (text) => new Error(text);\n\
         export default (pi) => pi.registerCommand(\"several\", {\n\
         \x20 handler: () => { throw new AggregateError([failed(\"first\"), failed(\"second\")]); },\n\
         });\n",
    );
    let mut rpc = home.rpc(&DEMO_NO_SESSION);
    let failed = error(&mut rpc, "/read").await;
    assert_eq!(failed["location"]["line"], 3, "{failed}");
    assert_eq!(
        failed["error"],
        "ENOENT: no such file or directory, open '/is/nowhere'"
    );
    let several = error(&mut rpc, "/several").await;
    assert_eq!(several["error"], "first; second");
    assert_eq!(several["location"]["line"], 3, "{several}");
    let stack = several["stack"].as_str().unwrap();
    assert!(stack.contains("Error: first; Error: second"), "{stack}");
    rpc.close().await;
}

#[tokio::test]
async fn print_mode_shows_the_line() {
    let home = Home::bare();
    home.extension(
        "broken.ts",
        "export default () => {\n  nothing.here();\n};\n",
    );
    let words = ["-p", "hello"].iter().chain(&DEMO_NO_SESSION);
    let output = home
        .run(&words.copied().collect::<Vec<_>>(), "")
        .await
        .stderr;
    assert!(
        output.contains("> 2 |   nothing.here();\n    |   ^\n"),
        "{output}"
    );
}

#[tokio::test]
async fn missing_names_and_reports_have_positions() {
    let home = Home::bare();
    let lost = home.extension(
        "lost.ts",
        "import { x } from \"./nowhere.ts\";\nexport default () => x;\n",
    );
    let late = home.extension(
        "late.ts",
        "interface Removed { byTheCompiler: boolean }\n\
         export default (pi) => pi.registerCommand(\"late\", {\n\
         \x20 handler: async (_, ctx) => {\n\
         \x20   ctx.compact({ onError() { throw new Error(\"in the callback\"); } });\n\
         \x20 },\n\
         });\n",
    );
    let mut rpc = home.rpc(&DEMO_NO_SESSION);
    let is_error = |line: &Value| line["type"] == "extension_error";
    let error = rpc.wait("the error of lost.ts", is_error).await;
    let place = json!({"file": lost, "line": 1, "column": 19});
    assert_eq!(error["location"], place, "{error}");
    let frame = error["codeFrame"].as_str().unwrap();
    assert!(frame.starts_with("> 1 | import { x } from"), "{frame}");

    rpc.ok(json!({"type": "prompt", "message": "/late"})).await;
    let error = rpc.wait("the error of late.ts", is_error).await;
    assert_eq!(error["error"], "in the callback");
    let text = error["stack"].as_str().unwrap();
    assert!(text.starts_with("Error: in the callback\n"), "{text}");
    assert!(!text.contains("file:") && !text.contains("ext:"), "{text}");
    let place = json!({"file": late, "line": 4, "column": 37});
    assert_eq!(error["location"], place, "{error}");
    rpc.close().await;
}

/// The path was shown in the form of a URL and without the line.
#[tokio::test]
async fn a_folder_may_have_any_name() {
    let home = Home::bare();
    let folder = home.cwd().join("a b é%41#");
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("l.ts");
    fs::write(&file, "export default () => {\n  (null as any).x;\n};\n").unwrap();
    let path = file.to_str().unwrap();
    let mut rpc = home.rpc(&[&DEMO_NO_SESSION[..], &["-e", path]].concat());
    let error = rpc.event("extension_error").await;
    assert_eq!(error["location"]["file"], path, "{error}");
    assert_eq!(error["location"]["line"], 2, "{error}");
    let frame = error["codeFrame"].as_str().unwrap();
    assert!(frame.contains("> 2 |   (null as any).x;"), "{error}");
}

/// The error was `Unexpected token '='`, without the name of the file.
#[tokio::test]
async fn a_syntax_error_of_a_required_file_names_it() {
    let home = Home::bare();
    home.extension(
        "needs.ts",
        "import { createRequire } from 'node:module';\n\
         const require = createRequire(import.meta.url);\n\
         export default (pi) => pi.registerCommand('need', { handler: async () => require('./parts/bad.cjs') });\n",
    );
    let parts = home.agent_dir().join("extensions/parts");
    fs::create_dir_all(&parts).unwrap();
    fs::write(parts.join("bad.cjs"), "var a = 1;\nvar b = = 2;\n").unwrap();
    let mut rpc = home.rpc(&DEMO_NO_SESSION);
    let error = error(&mut rpc, "/need").await;
    let text = error["error"].as_str().unwrap();
    assert!(
        text.starts_with("Unexpected token '=' (/") && text.ends_with("parts/bad.cjs:2:9)"),
        "{text}"
    );
    // An imported file also had the position of the line that loads it.
    let path = parts.join("bad.cjs");
    let source = format!("import b from {path:?};\nexport default () => b;\n");
    let importing = home.file("imports.ts", &source);
    let output = home
        .run(&["ext", "check", importing.to_str().unwrap()], "")
        .await
        .stdout;
    assert!(
        output.contains("parts/bad.cjs:2:9)\n") && output.contains("> 2 | var b = = 2;"),
        "{output}"
    );
}

/// Lines and columns refer to the file, not to the wrapper around it.
#[tokio::test]
async fn a_syntax_error_of_imported_commonjs_is_in_its_file() {
    let home = Home::bare();
    for (name, source, place) in [
        (
            "first.js",
            "exports.a = 1; let b = 1; let b = 2;\n",
            (1, 31),
        ),
        (
            "later.js",
            "exports.a = 1;\n\n  let b = 1; let b = 2;\n",
            (3, 18),
        ),
        (
            "shebang.cjs",
            "#!/usr/bin/env node\nexports.a = 1;\n  foo bar;\n",
            (3, 7),
        ),
        (
            "typed.cts",
            "interface A {\n  b: string;\n}\nlet c = 1; let c = 2;\nexports.a = c;\n",
            (4, 16),
        ),
        (
            "regex.cjs",
            "exports.a = 1;\n\n   const b = /(/;\n",
            (3, 14),
        ),
        (
            "strict.cjs",
            "\"use strict\";\nexports.a = 1;\n with (exports) {}\n",
            (3, 2),
        ),
    ] {
        home.file(name, source);
        let stem = name.split('.').next().unwrap();
        let importer = format!("import b from \"./{name}\";\nexport default () => {{ b; }};\n");
        let importer = home.file(&format!("{stem}-importer.ts"), &importer);
        let mut rpc =
            home.rpc(&[&DEMO_NO_SESSION[..], &["-e", importer.to_str().unwrap()]].concat());
        let is_it = |line: &Value| line["type"] == "extension_error";
        let error = rpc.wait("an extension_error", is_it).await;
        let file = home.cwd().join(name).canonicalize().unwrap();
        let expected = json!({"file": file.to_str(), "line": place.0, "column": place.1});
        assert_eq!(error["location"], expected, "{name}: {error}");
        let frame = error["codeFrame"].as_str().unwrap();
        assert!(frame.contains(&format!("> {} | ", place.0)), "{frame}");
        rpc.ok(json!({"type": "get_state"})).await;
        rpc.close().await;
    }
}

/// Bundlers write a map of maps, beside the file or in it.
#[tokio::test]
async fn a_map_of_maps_leads_to_the_sources() {
    let home = Home::bare();
    let section = json!({"version": 3, "sources": ["webpack:///./src/a.ts"],
        "sourcesContent": ["1\n2\n3\nboom()\n"], "names": [], "mappings": "AAGA"});
    let map = json!({"version": 3, "sections": [
        {"offset": {"line": 0, "column": 0}, "map": section}]});
    let inline = format!(
        "data:application/json;charset=utf-8,{}",
        map.to_string().replace('"', "%22")
    );
    let package = |name: &str, kind: &str, code: &str, map: &str| {
        let folder = format!("ext/node_modules/{name}");
        let manifest = json!({"name": name, "type": kind, "main": "i.js"});
        home.extension(&format!("{folder}/package.json"), &manifest.to_string());
        let code = format!("{code}\n//# sourceMappingURL={map}\n");
        home.extension(&format!("{folder}/i.js"), &code);
    };
    let esm = "export function fails() { throw new Error('no'); }";
    let cjs = "exports.fails = () => { throw new Error('no'); };";
    package("esm", "module", esm, &inline);
    package("file", "module", esm, "i.js.map");
    package("cjs", "commonjs", cjs, &inline);
    home.extension("ext/node_modules/file/i.js.map", &map.to_string());
    home.extension(
        "ext/index.ts",
        r#"import * as esm from "esm"; import * as file from "file"; import * as cjs from "cjs";
        export default (pi: any) => {
            for (const [name, { fails }] of Object.entries({ esm, file, cjs }))
                pi.registerCommand(name, { handler: async () => fails() });
        };"#,
    );
    let mut rpc = home.rpc(&DEMO_NO_SESSION);
    for name in ["esm", "file", "cjs"] {
        let error = error(&mut rpc, &format!("/{name}")).await;
        let stack = error["stack"].as_str().unwrap_or_default();
        assert!(stack.contains("src/a.ts:4:1"), "{name}: {error}");
    }
}
