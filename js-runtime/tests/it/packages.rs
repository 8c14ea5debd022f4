//! npm packages: found from the extension's folder upwards, ES modules and CommonJS.

use serde_json::json;

use crate::support::{Folder, Js, answering};

#[tokio::test]
async fn packages_are_found_beside_and_above() {
    let folder = Folder::new(&[
        (
            "node_modules/above/package.json",
            r#"{"name": "above", "type": "module", "exports": {".": "./a.js", "./sub": "./sub/b.js"}}"#,
        ),
        (
            "node_modules/above/a.js",
            "export default 'above'; export const named = 1;",
        ),
        (
            "node_modules/above/sub/b.js",
            "import { helper } from '../helper.js'; export const sub = helper();",
        ),
        (
            "node_modules/above/helper.js",
            "export const helper = () => 'sub';",
        ),
        (
            "ext/node_modules/beside/package.json",
            r#"{"name": "beside", "main": "lib/main"}"#,
        ),
        (
            "ext/node_modules/beside/lib/main.js",
            "const { join } = require('path'); const other = require('./other'); module.exports = { joined: join('a', 'b'), other, dir: __dirname.endsWith('lib') };",
        ),
        (
            "ext/node_modules/beside/lib/other.js",
            "exports.x = require('above-cjs');",
        ),
        (
            "node_modules/above-cjs/index.js",
            "module.exports = function () { return 'called'; };",
        ),
        (
            "ext/index.ts",
            &answering(
                "import above, { named } from 'above';\nimport { sub } from 'above/sub';\nimport beside, { joined } from 'beside';\nimport call from 'above-cjs';",
                "[above, named, sub, joined, beside.other.x(), beside.dir, call(), require('beside').joined]",
            ),
        ),
    ]);
    let js = Js::start();
    let answer = js.get(&folder.path("ext/index.ts")).await;
    assert_eq!(
        answer,
        json!(["above", 1, "sub", "a/b", "called", true, "called", "a/b"])
    );
}

#[tokio::test]
async fn compiled_commonjs_gets_babel_interop() {
    let folder = Folder::new(&[
        (
            "node_modules/compiled/index.js",
            "Object.defineProperty(exports, '__esModule', { value: true }); exports.default = 'the default'; const all = { hidden: 1 }; for (const k in all) exports[k] = all[k];",
        ),
        (
            "node_modules/plain/index.js",
            "module.exports = { value: 5 };",
        ),
        (
            "index.ts",
            &answering(
                "import d, { hidden } from 'compiled';\nimport * as all from 'compiled';\nimport plain, { value } from 'plain';\nimport * as ns from 'plain';",
                "[d, hidden, all.default, all.hidden, plain.value, value, ns.value, ns.default.value]",
            ),
        ),
    ]);
    let js = Js::start();
    let answer = js.get(&folder.path("index.ts")).await;
    assert_eq!(
        answer,
        json!(["the default", 1, "the default", 1, 5, 5, 5, 5])
    );
}

#[tokio::test]
async fn packages_may_be_typescript() {
    let folder = Folder::new(&[
        (
            "node_modules/pi-pack/package.json",
            r#"{"name": "pi-pack", "type": "module", "main": "index.ts"}"#,
        ),
        (
            "node_modules/pi-pack/index.ts",
            "import type { A } from './types';\nimport { B, value } from './types';\nexport { B };\nexport const doubled: number = value * 2;",
        ),
        (
            "node_modules/pi-pack/types.ts",
            "export interface A {}\nexport interface B {}\nexport const value = 21;",
        ),
        (
            "index.ts",
            &answering(
                "import { doubled, B } from 'pi-pack';",
                "[doubled, typeof B]",
            ),
        ),
    ]);
    let js = Js::start();
    assert_eq!(
        js.get(&folder.path("index.ts")).await,
        json!([42, "undefined"])
    );
}

#[tokio::test]
async fn typescript_packages_need_no_main() {
    let folder = Folder::new(&[
        (
            "node_modules/bare/index.ts",
            "export { s } from 'bare/sub';\nexport const a: number = 1;",
        ),
        ("node_modules/bare/sub.ts", "export const s: string = 's';"),
        ("node_modules/named/package.json", r#"{"main": "index"}"#),
        ("node_modules/named/index.ts", "export const b: number = 2;"),
        (
            "index.ts",
            &answering(
                "import { a, s } from 'bare';\nimport { s as same } from 'bare/sub.js';\nimport { b } from 'named';",
                "[a, s, same, b, require('named').b]",
            ),
        ),
    ]);
    let answer = Js::start().get(&folder.path("index.ts")).await;
    assert_eq!(answer, json!([1, "s", "s", 2, 2]));
}

#[tokio::test]
async fn packages_get_builtin_modules() {
    let folder = Folder::new(&[
        (
            "node_modules/esm-user/package.json",
            r#"{"name": "esm-user", "type": "module", "main": "i.js"}"#,
        ),
        (
            "node_modules/esm-user/i.js",
            "import { Text, Absent } from '@mariozechner/pi-tui';\nexport { Text };\nexport const use = () => Absent();",
        ),
        (
            "node_modules/cjs-user/index.js",
            "const tui = require('@earendil-works/pi-tui'); exports.Text = tui.Text;",
        ),
        // An installed package of the same name is not used.
        (
            "node_modules/@mariozechner/pi-tui/index.js",
            "exports.Text = 'the wrong one';",
        ),
        (
            "index.ts",
            &answering(
                "import { Text } from '@mariozechner/pi-tui';\nimport * as esm from 'esm-user';\nimport * as cjs from 'cjs-user';\n\
             const attempt = () => { try { esm.use(); } catch (e: any) { return e.message; } };",
                "[typeof Text, esm.Text === Text, cjs.Text === Text, attempt().includes('\"Absent\"')]",
            ),
        ),
    ]);
    let js = Js::start();
    assert_eq!(
        js.get(&folder.path("index.ts")).await,
        json!(["function", true, true, true])
    );
}

#[tokio::test]
async fn node_condition_precedes_deno() {
    let folder = Folder::new(&[
        (
            "node_modules/both/package.json",
            r#"{"name": "both", "type": "module", "exports": {"deno": "./deno.js", "node": "./node.js"}}"#,
        ),
        ("node_modules/both/deno.js", "export default 'deno';"),
        ("node_modules/both/node.js", "export default 'node';"),
        ("index.ts", &answering("import both from 'both';", "both")),
    ]);
    let js = Js::start();
    assert_eq!(js.get(&folder.path("index.ts")).await, json!("node"));
}
