//! Imports that Node refuses or reads differently from jiti.

use serde_json::json;

use crate::support::{Folder, Js, answering};

const COMPILED: &str = "Object.defineProperty(exports, '__esModule', { value: true });\n\
    exports.default = function named() {}; exports.x = 1; for (const k of ['hidden']) exports[k] = 2;";
const MODULE: (&str, &str) = (
    "node_modules/esm/package.json",
    r#"{"type": "module", "main": "i.js"}"#,
);

#[tokio::test]
async fn types_are_reexported() {
    let folder = Folder::new(&[
        MODULE,
        (
            "node_modules/esm/i.js",
            "export const y = 1; export default 'd';",
        ),
        ("node_modules/cjs/index.js", COMPILED),
        (
            "index.ts",
            &answering(
                "import { T, y, U, V, x, d, f, hidden, Stats, RequestOptions } from './barrel';",
                "[typeof T, y, typeof U, typeof V, x, d, f.name, hidden, typeof Stats, typeof RequestOptions]",
            ),
        ),
        (
            "barrel.ts",
            "import { T, y } from 'esm';\nexport { T, y };\nexport { U, default as d } from 'esm';\n\
             export { V, x, hidden, default as f } from 'cjs';\nexport { RequestOptions } from 'http';\n\
             import { Stats } from 'node:fs';\nexport { Stats };\nexport * from 'esm';",
        ),
    ]);
    let answer = Js::start().get(&folder.path("index.ts")).await;
    let expected = json!([
        "undefined",
        1,
        "undefined",
        "undefined",
        1,
        "d",
        "named",
        2,
        "function",
        "undefined"
    ]);
    assert_eq!(answer, expected);
}

#[tokio::test]
async fn reexports_of_a_package_work_in_a_cycle() {
    let folder = Folder::new(&[
        MODULE,
        ("node_modules/esm/i.js", "export const y = 1;"),
        ("node_modules/cjs/index.js", COMPILED),
        (
            "index.ts",
            &answering("import { all } from './barrel';", "all"),
        ),
        (
            "barrel.ts",
            "export { y } from 'esm';\nimport { y as z } from 'esm';\nexport { z };\nexport { x, T } from 'cjs';\n\
             export { sep } from 'node:path';\nexport * from './inner';",
        ),
        (
            "inner.ts",
            "import { y, z, x, sep, T } from './barrel';\nexport const all = [y, z, x, sep, typeof T];",
        ),
    ]);
    let answer = Js::start().get(&folder.path("index.ts")).await;
    assert_eq!(answer, json!([1, 1, 1, "/", "undefined"]));
}

#[tokio::test]
async fn missing_default_import_is_the_module() {
    let folder = Folder::new(&[
        MODULE,
        (
            "node_modules/esm/i.js",
            "// by default there is none\nexport const y = 4; switch (y) { default: }",
        ),
        ("own.ts", "export const y = 5;"),
        (
            "index.ts",
            &answering(
                "import d, { y } from 'esm';\nimport own, * as all from './own';\nexport { default as again } from 'esm';",
                "[d.y, y, own.y, all === own, (await import('./index')).again.y, import.meta.env === process.env]",
            ),
        ),
    ]);
    let answer = Js::start().get(&folder.path("index.ts")).await;
    assert_eq!(answer, json!([4, 4, 5, true, 4, true]));
}

#[tokio::test]
async fn dynamic_import_equals_static_import() {
    let folder = Folder::new(&[
        MODULE,
        ("node_modules/esm/i.js", "export const y = 1;"),
        ("node_modules/compiled/index.js", COMPILED),
        (
            "node_modules/plain/index.js",
            "module.exports = { value: 5 }; for (const k of ['hidden']) module.exports[k] = 6;",
        ),
        ("data.json", r#"{"a": 7}"#),
        (
            "index.ts",
            &answering(
                "import * as esm from 'esm';\nconst { default: named, x } = await import('compiled');\n\
                 const plain: any = await import('plain'); const data: any = await import('./data.json');",
                "[named.name, x, plain.value, plain.hidden, plain.default.value, plain === await import('plain'), \
                  data.a, data.default.a, esm === await import('esm'), new Error().stack!.includes('index.ts:4:')]",
            ),
        ),
    ]);
    let answer = Js::start().get(&folder.path("index.ts")).await;
    assert_eq!(answer, json!(["named", 1, 5, 6, 5, true, 7, 7, true, true]));
}

#[tokio::test]
async fn import_errors_have_codes() {
    let specifiers = ["./bad", "./gone", "gone", "closed/x", "node:gone", "./half"];
    let folder = Folder::new(&[
        ("bad.ts", "const a: number = ;"),
        ("half.ts", "import 'inner';"),
        ("node_modules/closed/package.json", r#"{"exports": {}}"#),
        (
            "index.ts",
            &answering(
                &format!(
                    "const told = (e: any) => [e.constructor.name, e.code ?? '', e.message.split(/[ '\\n]/)[0], e.stack.startsWith(e.name + ': ')];\n\
                     const all = await Promise.all({specifiers:?}.map((one) => import(one).catch(told)));\n\
                     const required = (() => {{ try {{ require('closed/x'); }} catch (e) {{ return told(e); }} }})();"
                ),
                "[...all, required]",
            ),
        ),
    ]);
    let answer = Js::start().get(&folder.path("index.ts")).await;
    let none = "MODULE_NOT_FOUND";
    let closed = ["ERR_PACKAGE_PATH_NOT_EXPORTED", "Package"];
    assert_eq!(
        answer,
        json!([
            ["SyntaxError", "", "Expression", true],
            ["Error", none, "Cannot", true],
            ["Error", none, "Cannot", true],
            ["Error", closed[0], closed[1], true],
            ["Error", "ERR_UNKNOWN_BUILTIN_MODULE", "No", true],
            ["Error", none, "Cannot", true],
            ["Error", closed[0], closed[1], true],
        ])
    );
}

#[tokio::test]
async fn require_returns_assigned_exports() {
    let folder = Folder::new(&[
        ("package.json", r#"{"type": "module"}"#),
        ("y.js", "exports.x = 6;"),
        ("z.cts", "export const x = 7 as number;"),
        (
            "index.ts",
            &answering(
                "import z = require('./z.cts');",
                "[require('./y').x, z.x, require('./z.cts').x]",
            ),
        ),
    ]);
    let answer = Js::start().get(&folder.path("index.ts")).await;
    assert_eq!(answer, json!([6, 7, 7]));
}

/// Bundlers leave such files for other bundlers: only the content shows that it is an ES module.
#[tokio::test]
async fn undeclared_es_modules_have_require() {
    let folder = Folder::new(&[
        (
            "node_modules/mixed/index.js",
            "import fs from 'fs';\nimport { y } from './y.js';\nconst os = require('os');\n\
             export const all = [typeof fs.statSync, typeof os.homedir, y, __dirname.endsWith('mixed')];",
        ),
        (
            "node_modules/mixed/y.js",
            "export const y = typeof __filename;",
        ),
        ("node_modules/esm/package.json", MODULE.1),
        ("node_modules/esm/i.js", "export const y = typeof require;"),
        (
            "index.ts",
            &answering(
                "import { all } from 'mixed'; import { y } from 'esm';",
                "[...all, y]",
            ),
        ),
    ]);
    let answer = Js::start().get(&folder.path("index.ts")).await;
    let expected = json!(["function", "function", "string", true, "undefined"]);
    assert_eq!(answer, expected);
}

/// Packages export an instance of a class; its methods were `undefined`.
#[tokio::test]
async fn namespace_has_inherited_commonjs_exports() {
    let class = "class Log { constructor() { this.level = 1; } info(text) { return `info ${text}`; } \
        get live() { return this.level + 1; } }\nmodule.exports = new Log();";
    let folder = Folder::new(&[
        ("own.cjs", class),
        ("node_modules/dep/index.js", class),
        (
            "node_modules/made/index.js",
            "module.exports = Object.create({ hello: () => 'hello' }); module.exports.own = 1;",
        ),
        (
            "node_modules/called/index.js",
            "module.exports = function call() { return 'called'; }; module.exports.own = 2;",
        ),
        ("node_modules/plain/index.js", "module.exports = { a: 3 };"),
        ("node_modules/nothing/index.js", "module.exports = null;"),
        (
            "index.ts",
            &answering(
                "import * as own from './own.cjs';\nimport * as dep from 'dep';\nimport * as made from 'made';\n\
                 import * as called from 'called';\nimport * as plain from 'plain';\nimport * as nothing from 'nothing';",
                "[own.info('x'), dep.info('y'), dep.level, dep.live, made.hello(), made.own, called.default(), called.own, \
                  { ...plain }, nothing.default, 'toString' in plain]",
            ),
        ),
    ]);
    let answer = Js::start().get(&folder.path("index.ts")).await;
    let plain = json!({ "a": 3, "default": { "a": 3 } });
    assert_eq!(
        answer,
        json!([
            "info x", "info y", 1, 2, "hello", 1, "called", 2, plain, null, false
        ])
    );
}

/// The option was ignored.
#[tokio::test]
async fn require_resolve_uses_the_paths_option() {
    let folder = Folder::new(&[
        ("sub/node_modules/x/index.js", ""),
        ("sub/y.js", ""),
        ("y.js", ""),
        (
            "index.ts",
            &answering(
                "import { createRequire } from 'node:module';\nconst created = createRequire(import.meta.url);\n\
                 const paths = ['/nowhere', __dirname + '/sub'];\n\
                 const told = (find: () => string) => { try { return find().slice(__dirname.length + 1); } catch (e: any) { return e.code; } };\n\
                 const all = (given: any) => [told(() => given.resolve('x', { paths })), told(() => given.resolve('./y.js', { paths: [paths[1]] })), \
                   told(() => given.resolve('./y')), told(() => given.resolve('x')), typeof given.resolve.paths];",
                "[all(require), all(created)]",
            ),
        ),
    ]);
    let answer = Js::start().get(&folder.path("index.ts")).await;
    let expected = json!([
        "sub/node_modules/x/index.js",
        "sub/y.js",
        "y.js",
        "MODULE_NOT_FOUND",
        "function"
    ]);
    assert_eq!(answer, json!([expected, expected]));
}
