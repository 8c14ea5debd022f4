//! Syntax and paths that extensions may use, with jiti's results.

use std::time::Duration;

use js_runtime::LoadError;
use serde_json::{Value, json};

use crate::support::{Folder, Js, answering, handlers};

#[tokio::test]
async fn typescript_with_runtime_syntax_loads() {
    let folder = Folder::new(&[(
        "a.ts",
        r#"
enum Level { Low = 1, High }
namespace Box { export const size = 3; }
class Point { constructor(private x: number, readonly y = 2) {} sum() { return this.x + this.y; } }
function tag(target: any, key: string) { target.tagged = key; }
class Tagged { @tag name = ""; }
const wide = <T,>(x: T) => x satisfies T;
export default async function (pi: any) {
  await new Promise((resolve) => setTimeout(resolve, 1));
  pi.on("get", () => [Level.High, Level[1], Box.size, new Point(5).sum(), (Tagged.prototype as any).tagged, wide(7)!]);
}
"#,
    )]);
    let js = Js::start();
    let answer = js.get(&folder.path("a.ts")).await;
    assert_eq!(answer, json!([2, "Low", 3, 7, "name", 7]));
}

#[tokio::test]
async fn files_are_probed_as_by_jiti() {
    let folder = Folder::new(&[
        (
            "index.ts",
            &answering(
                "import a from './a';\nimport { b } from './b.js';\nimport { c } from './c';\n\
             import data, { version } from './data.json';\nimport typed from './data.json' with { type: 'json' };\n\
             import * as all from './data.json';",
                "[a, b, c, data.version, version, typed.version, all.version, (await import('./d')).default]",
            ),
        ),
        ("a.ts", "export default 'a';"),
        ("b.ts", "export const b = 'b';"),
        ("c/index.ts", "export const c = 'c';"),
        ("d.mts", "export default 'd';"),
        ("data.json", r#"{"version": 3}"#),
    ]);
    let js = Js::start();
    let answer = js.get(&folder.path("index.ts")).await;
    assert_eq!(answer, json!(["a", "b", "c", 3, 3, 3, 3, "d"]));
}

#[tokio::test]
async fn missing_imports_are_undefined() {
    let folder = Folder::new(&[
        (
            "index.ts",
            &answering(
                "import { Kind, real, type T2 } from './reexport';\nimport { gone } from './types';\n\
             import nothing from './types';\nexport { Kind };\nexport { Shape } from './types';",
                "[typeof Kind, real, typeof gone, typeof nothing]",
            ),
        ),
        (
            "reexport.ts",
            "export * from './types';\nexport { Shape as Kind } from './types';",
        ),
        (
            "types.ts",
            "export interface Shape { x: number }\nexport type T2 = Shape;\nexport const real = 1;",
        ),
    ]);
    let js = Js::start();
    let answer = js.get(&folder.path("index.ts")).await;
    // Without a default the import is the whole module, as in jiti.
    assert_eq!(answer, json!(["undefined", 1, "undefined", "object"]));
}

#[tokio::test]
async fn types_only_file_can_be_reexported() {
    let folder = Folder::new(&[
        (
            "index.ts",
            &answering(
                "import { f } from './lib';\nimport { Opts, Deep, T } from './lib';\nimport './global.d';\n\
                 export { T } from './lib/types.d.ts';",
                "[f(), typeof Opts, typeof Deep, typeof T]",
            ),
        ),
        (
            "lib/index.ts",
            "export { Opts } from './types';\nexport { f } from './f';\nexport * from './deep';\nexport * from './types.d';",
        ),
        (
            "lib/types.ts",
            "import { Deep } from './deep';\nexport interface Opts { deep: Deep }",
        ),
        ("lib/types.d.ts", "export interface T {}"),
        (
            "lib/deep.ts",
            "import { Opts } from './types';\nexport type Deep = Opts | string;\nexport { Opts as Same };",
        ),
        (
            "lib/f.ts",
            "import { Opts } from './types';\nexport const f = (_?: Opts) => 'f';",
        ),
        ("global.d.ts", "declare global { var x: number }"),
    ]);
    let answer = Js::start().get(&folder.path("index.ts")).await;
    assert_eq!(answer, json!(["f", "undefined", "undefined", "undefined"]));
}

#[tokio::test]
async fn enum_members_continue_after_a_computed_one() {
    let folder = Folder::new(&[
        (
            "index.ts",
            &answering(
                "import { BASE } from './base';\nconst own = 3;\n\
                 enum A { X = BASE, Y, Z = BASE + 10, W, 'a-b' = own, V }\n\
                 namespace N { export enum B { P = own, Q, R = 1 << 4, S } }\n\
                 enum C { M, N, O = 'o', L = 7, K }\n\
                 enum D { none = 0, new = own << 0, delete, in = own << 3, move, let = own, await }",
                "[A, N.B.Q, N.B.S, C.N, C.K, [D.new, D.delete, D.in, D.move, D.let, D.await]]",
            ),
        ),
        ("base.ts", "export const BASE = 100;"),
    ]);
    let answer = Js::start().get(&folder.path("index.ts")).await;
    let members = json!({
        "X": 100, "Y": 101, "Z": 110, "W": 111, "a-b": 3, "V": 4,
        "100": "X", "101": "Y", "110": "Z", "111": "W", "3": "a-b", "4": "V",
    });
    let keywords = [3, 4, 24, 25, 3, 4];
    assert_eq!(answer, json!([members, 4, 17, 1, 8, keywords]));
}

#[tokio::test]
async fn decorators_get_type_metadata() {
    let folder = Folder::new(&[
        (
            "index.ts",
            &answering(
                "import { Gone } from './gone';\nimport { RequestOptions } from 'node:http';\n\
             const seen: string[] = [];\n\
             (Reflect as any).metadata = (key: string, types: any[]) => () => { seen.push(key, ...[types].flat().map((t) => t.name)); };\n\
             const Injectable = (_: any) => {};\nclass Dep {}\n\
             @Injectable class S { constructor(private d: Dep, private n: string, g: Gone, o: RequestOptions) {} }",
                "seen",
            ),
        ),
        ("gone.ts", "export interface Gone {}"),
    ]);
    let answer = Js::start().get(&folder.path("index.ts")).await;
    let types = ["design:paramtypes", "Dep", "String", "Object", "Object"];
    assert_eq!(answer.as_array().unwrap()[..5], types);
}

#[tokio::test]
async fn commonjs_names_work_in_es_modules() {
    let folder = Folder::new(&[
        (
            "index.ts",
            &answering(
                "import { join } from 'path';\nconst { word } = require('./lib');\nconst os = require('node:os');",
                "[__filename, __dirname, word, typeof os.cpus, require('./data.json').n, \
              require.resolve('./lib') === join(__dirname, 'lib.ts'), import.meta.dirname === __dirname]",
            ),
        ),
        ("lib.ts", "export const word: string = 'lib';"),
        ("data.json", r#"{"n": 4}"#),
    ]);
    let js = Js::start();
    let path = folder.path("index.ts");
    let answer = js.get(&path).await;
    let dir = path.parent().unwrap();
    assert_eq!(answer, json!([path, dir, "lib", "function", 4, true, true]));
}

#[tokio::test]
async fn file_without_imports_may_be_commonjs() {
    let body =
        "(pi) => { pi.on('get', () => [typeof require, typeof module, __filename.length > 0]); }";
    let folder = Folder::new(&[
        (
            "typed.ts",
            &format!("const n: number = 1;\nmodule.exports = {body};"),
        ),
        ("property.ts", &format!("exports.default = {body};")),
        ("plain.js", &format!("module.exports = {body};")),
        ("named.cjs", &format!("module.exports = {body};")),
    ]);
    for name in ["typed.ts", "property.ts", "plain.js", "named.cjs"] {
        let js = Js::start();
        let answer = js.get(&folder.path(name)).await;
        assert_eq!(answer, json!(["function", "object", true]), "{name}");
    }
}

#[tokio::test]
async fn typescript_commonjs_syntax_works() {
    let body =
        "(pi: any) => { pi.on('get', () => [typeof fs.readFileSync, lib.word, helper.word]); }";
    let requires = "import fs = require('node:fs');\nimport type T = require('./none');\n";
    let folder = Folder::new(&[
        (
            "assigned.ts",
            &format!(
                "{requires}import lib = require('./lib');\nimport helper = require('./folder');\nexport = {body};"
            ),
        ),
        (
            "exported.ts",
            &format!(
                "{requires}import * as lib from './lib';\nimport helper = require('./folder');\nexport default {body};"
            ),
        ),
        (
            "plain.cjs",
            "const fs = require('fs'), lib = require('./lib'), helper = require('./folder');\n\
             exports.default = (pi) => { pi.on('get', () => [typeof fs.readFileSync, lib.word, helper.word]); };",
        ),
        ("lib.ts", "export const word: string = 'lib';"),
        (
            "folder/index.ts",
            "import { word as own } from '../lib.js';\nexport const word = own + '!';",
        ),
    ]);
    for name in ["assigned.ts", "exported.ts", "plain.cjs"] {
        let js = Js::start();
        let answer = js.get(&folder.path(name)).await;
        assert_eq!(answer, json!(["function", "lib", "lib!"]), "{name}");
    }
}

#[tokio::test]
async fn assigned_exports_are_imported_by_name() {
    let helpers = [
        "export = { k };",
        "module.exports = { k };",
        "exports.k = k;",
        "import { sep } from 'node:path';\nmodule.exports = { k: () => k() + sep.length - 1 };",
    ];
    for (number, helper) in helpers.into_iter().enumerate() {
        let folder = Folder::new(&[
            (
                "index.ts",
                &answering(
                    "import { k } from './o';\nimport * as o from './o';",
                    "[k(), o.k()]",
                ),
            ),
            (
                "o.ts",
                &format!("const k = (): number => {number};\n{helper}"),
            ),
        ]);
        let js = Js::start();
        let answer = js.get(&folder.path("index.ts")).await;
        assert_eq!(answer, json!([number, number]), "{helper}");
    }
}

#[tokio::test]
async fn module_with_exports_may_use_module_object() {
    let folder = Folder::new(&[
        (
            "index.ts",
            &answering(
                "import { p, main, c } from './h';",
                "[p.sep, main, c, typeof module, module.filename === import.meta.filename]",
            ),
        ),
        (
            "h.ts",
            "export import p = require('node:path');\nexports.b = 1;\nexport const c = 2;\n\
             export const main = require.main === module;",
        ),
    ]);
    let js = Js::start();
    let answer = js.get(&folder.path("index.ts")).await;
    assert_eq!(answer, json!(["/", false, 2, "object", true]));
}

#[tokio::test]
async fn import_cycles_load() {
    let folder = Folder::new(&[
        (
            "index.ts",
            &answering("import { even } from './even';", "[even(10), even(7)]"),
        ),
        (
            "even.ts",
            "import { odd } from './odd';\nexport function even(n: number): boolean { return n === 0 || odd(n - 1); }",
        ),
        (
            "odd.ts",
            "import { even, Absent } from './even';\nexport function odd(n: number): boolean { return n !== 0 && even(n - 1); }\nexport { Absent };",
        ),
    ]);
    let js = Js::start();
    assert_eq!(js.get(&folder.path("index.ts")).await, json!([true, false]));
}

#[tokio::test]
async fn shebang_and_byte_order_mark_are_skipped() {
    let folder = Folder::new(&[
        (
            "shebang.ts",
            &format!(
                "#!/usr/bin/env node\n{}",
                answering("", "__filename.endsWith('shebang.ts')")
            ),
        ),
        ("bom.ts", &format!("\u{feff}{}", answering("", "true"))),
    ]);
    for name in ["shebang.ts", "bom.ts"] {
        let js = Js::start();
        assert_eq!(js.get(&folder.path(name)).await, json!(true), "{name}");
    }
}

#[tokio::test]
async fn missing_builtin_export_throws_on_use() {
    let folder = Folder::new(&[(
        "index.ts",
        r#"
import { Text, NotThereYet } from "@mariozechner/pi-tui";
import { Other } from "@earendil-works/pi-tui";
export { Gone } from "@mariozechner/pi-tui";
const attempt = (what: () => unknown) => { try { what(); return "worked"; } catch (e: any) { return e.message; } };
export default (pi: any) => {
  pi.on("get", () => [
    typeof Text, typeof NotThereYet,
    attempt(() => NotThereYet()), attempt(() => new Other()), attempt(() => NotThereYet.member),
    attempt(() => class extends Other {}),
  ]);
};
"#,
    )]);
    let js = Js::start();
    let answer = js.get(&folder.path("index.ts")).await;
    let uses = answer.as_array().unwrap();
    assert_eq!(uses[..2], ["function", "function"]);
    let named = [
        ("NotThereYet", "@mariozechner/pi-tui"),
        ("Other", "@earendil-works/pi-tui"),
        ("NotThereYet", "@mariozechner/pi-tui"),
        ("Other", "@earendil-works/pi-tui"),
    ];
    for ((name, module), message) in named.iter().zip(&uses[2..]) {
        let message = message.as_str().unwrap();
        assert!(
            message.contains(name) && message.contains(module),
            "{message}"
        );
    }
}

#[tokio::test]
async fn builtin_modules_are_single_instances() {
    let folder = Folder::new(&[(
        "index.ts",
        &answering(
            "import * as a from '@mariozechner/pi-tui';\nimport * as b from '@earendil-works/pi-tui';\n\
             import { Type } from 'typebox';\nimport { createRequire } from 'node:module';\n\
             const c = require('@mariozechner/pi-tui');\nconst d = createRequire(import.meta.url)('@mariozechner/pi-tui');",
            "[a.Text === b.Text, a.Text === c.Text, a.Text === d.Text, Type.String().type]",
        ),
    )]);
    let js = Js::start();
    let answer = js.get(&folder.path("index.ts")).await;
    assert_eq!(answer, json!([true, true, true, "string"]));
}

#[tokio::test]
async fn extensions_share_globals_but_not_their_own_modules() {
    let entry = |name: &str| {
        answering(
            "import { count, here } from './shared';",
            &format!("['{name}', count(), here, globalThis.both = (globalThis.both ?? 0) + 1]"),
        )
        .replace("\"get\"", &format!("\"{name}\""))
    };
    let folder = Folder::new(&[
        ("a.ts", &entry("a")),
        ("b.ts", &entry("b")),
        (
            "shared.ts",
            "import { n } from './deep';\nexport const here = __filename;\nexport const count = () => ++n.value;",
        ),
        ("deep.ts", "export const n = { value: 0 };"),
    ]);
    let js = Js::start();
    js.load(1, &folder.path("a.ts")).await.unwrap();
    js.load(2, &folder.path("b.ts")).await.unwrap();
    let shared = folder.path("shared.ts");
    let mut answers = Vec::new();
    for name in ["a", "a", "b"] {
        answers.push(js.dispatch(name, Value::Null).await.unwrap());
    }
    assert_eq!(
        answers,
        [
            json!(["a", 1, shared, 1]),
            json!(["a", 2, shared, 2]),
            json!(["b", 1, shared, 3]),
        ]
    );
}

#[tokio::test]
async fn linked_extension_resolves_beside_file_and_link() {
    let folder = Folder::new(&[
        (
            "real/index.ts",
            &answering(
                "import { near } from './near';\nimport pkg from 'beside-link';",
                "[near, pkg]",
            ),
        ),
        ("real/near.ts", "export const near = 'near';"),
        (
            "links/node_modules/beside-link/package.json",
            r#"{"main": "i.js"}"#,
        ),
        (
            "links/node_modules/beside-link/i.js",
            "module.exports = 'package';",
        ),
    ]);
    std::os::unix::fs::symlink(folder.path("real/index.ts"), folder.path("links/e.ts")).unwrap();
    let js = Js::start();
    assert_eq!(
        js.get(&folder.path("links/e.ts")).await,
        json!(["near", "package"])
    );
}

#[tokio::test]
async fn linked_module_is_one_instance() {
    let folder = Folder::new(&[
        (
            "ext/index.ts",
            &answering(
                "import { a } from './ln';\nimport { b, n } from './shared/x';\nimport * as real from '../elsewhere/real/x';\n\
                 import * as again from './shared/x';\nconst required = require('./shared/x');",
                "[a, b, n, real === again, required.n === n && again.n === n]",
            ),
        ),
        (
            "elsewhere/y.ts",
            "import { d } from './dep';\nexport const a = d;",
        ),
        ("elsewhere/dep.ts", "export const d = 'beside';"),
        (
            "elsewhere/real/x.ts",
            "import pk from 'pk';\nimport { d } from '../dep';\n\
             export const b = pk + ' ' + d;\nexport const n = (globalThis as any).n = ((globalThis as any).n ?? 0) + 1;",
        ),
        (
            "elsewhere/node_modules/pk/index.js",
            "module.exports = 'pk';",
        ),
    ]);
    let link = |to: &str, from: &str| {
        std::os::unix::fs::symlink(folder.path(to), folder.path(from)).unwrap();
    };
    link("elsewhere/y.ts", "ext/ln.ts");
    link("elsewhere/real", "ext/shared");
    let js = Js::start();
    let answer = js.get(&folder.path("ext/index.ts")).await;
    assert_eq!(answer, json!(["beside", "pk beside", 1, true, true]));
    // Replacing the link by another file is a change as well.
    let known = js.runtime.imports().files_of(1);
    for file in ["ext/ln.ts", "elsewhere/y.ts", "ext/shared/x.ts"] {
        assert!(known.contains(&folder.path(file)), "{known:?}");
    }
}

#[tokio::test]
async fn folder_index_precedes_main() {
    let promised = "export default Promise.resolve((pi: any) => { pi.on('get', () => process.argv0 !== ''); });";
    let folder = Folder::new(&[
        ("package.json", r#"{"main": "./main.ts"}"#),
        ("main.ts", &answering("", "'main'")),
        ("index.ts", promised),
    ]);
    let answer = Js::start().get(&folder.path("")).await;
    assert_eq!(answer, json!(true));
}

#[tokio::test]
async fn the_process_looks_like_a_compiled_program() {
    let folder = Folder::new(&[(
        "index.ts",
        &answering(
            "",
            "[process.argv[1], process.argv.length, process.argv[0] === process.execPath, \
              typeof setTimeout(() => {}, 0).unref, Object.prototype.hasOwnProperty('__proto__'), typeof Buffer]",
        ),
    )]);
    let js = Js::start();
    let answer = js.get(&folder.path("index.ts")).await;
    assert_eq!(
        answer,
        json!(["/$bunfs/root/pi", 2, true, "function", true, "function"])
    );
}

#[tokio::test]
async fn host_errors_keep_their_class() {
    let folder = Folder::new(&[(
        "index.ts",
        r#"export default (pi: any) => {
  pi.on("get", async () => {
    const out: unknown[] = [];
    for (const what of [() => pi.getFlag("f"), () => pi.setLabel("a", "b"), () => pi.getSessionName(), () => pi.setModel({})]) {
      try { out.push(await what()); } catch (e: any) { out.push([e.constructor.name, e instanceof Error, e.message]); }
    }
    return out;
  });
};"#,
    )]);
    let js = Js::start();
    let answer = js.get(&folder.path("index.ts")).await;
    assert_eq!(
        answer,
        json!([
            ["RangeError", true, "no flag \"f\""],
            ["Error", true, "the test host has no pi.setLabel"],
            "a name",
            true
        ])
    );
}

#[tokio::test]
async fn runtimes_are_isolated() {
    let folder = Folder::new(&[(
        "index.ts",
        &handlers(&[(
            "get",
            "() => (globalThis as any).n = ((globalThis as any).n ?? 0) + 1",
        )]),
    )]);
    let path = folder.path("index.ts");
    let (a, b) = (Js::start(), Js::start());
    assert_eq!(a.get(&path).await, json!(1));
    assert_eq!(b.get(&path).await, json!(1));
    assert_eq!(a.dispatch("get", Value::Null).await, Ok(json!(2)));
    a.runtime.shutdown().await;
    assert_eq!(b.dispatch("get", Value::Null).await, Ok(json!(2)));
}

#[tokio::test]
async fn stalled_load_fails_without_affecting_others() {
    let folder = Folder::new(&[
        (
            "stuck.ts",
            "await new Promise(() => {});\nexport default () => {};",
        ),
        ("factory.ts", "export default () => new Promise(() => {});"),
        ("good.ts", &answering("", "1")),
    ]);
    let js = Js::start();
    match js.load(5, &folder.path("stuck.ts")).await {
        // No code is left that could settle the promise.
        Err(LoadError::Failed { message, .. }) => {
            assert!(message.contains("top-level `await`"), "{message}");
            assert!(message.contains("stuck.ts:1:"), "{message}");
        }
        other => panic!("{other:?}"),
    }
    let limit = Duration::from_secs(1);
    let loaded = js.runtime.load(5, &folder.path("factory.ts"), limit).await;
    assert_eq!(loaded, Err(LoadError::TimedOut(limit)));
    assert_eq!(js.get(&folder.path("good.ts")).await, json!(1));
}
