//! Modules of pi inside V8: text functions through the ops, components, TypeBox with its sub-paths,
//! YAML, errors of missing names.

use serde_json::json;
use tokio::sync::Mutex;

use crate::support::{Folder, Js, answering};

#[tokio::test]
async fn text_functions_and_components_render() {
    let folder = Folder::new(&[(
        "index.ts",
        &answering(
            "import { Box, Input, Key, matchesKey, SelectList, Text, truncateToWidth, visibleWidth, wrapTextWithAnsi } from '@mariozechner/pi-tui';\n\
             import { DynamicBorder, getSelectListTheme, initTheme, keyHint } from '@mariozechner/pi-coding-agent';\n\
             const box = new Box(1, 0); box.addChild(new Text('日本語 text', 0, 0));\n\
             const input = new Input(); for (const key of ['h', 'ö', '\\x7f', 'i']) input.handleInput(key);\n\
             initTheme('dark');\n\
             const list = new SelectList([{ value: 'a', label: 'A' }], 3, getSelectListTheme());",
            "[visibleWidth('日本語'), truncateToWidth('日本語', 4, '…'), wrapTextWithAnsi('日本 語', 4), box.render(8), \
              input.getValue(), input.render(6), matchesKey('\\x1b[1;5A', Key.ctrl('up')), \
              new DynamicBorder((s) => s).render(2), list.render(20).length, keyHint('app.tools.expand', 'x').includes('ctrl+o')]",
        ),
    )]);
    let answer = Js::start().get(&folder.path("index.ts")).await;
    assert_eq!(
        answer,
        json!([
            6,
            "日\u{1b}[0m…\u{1b}[0m",
            ["日本", "語"],
            [" 日本語 ", " text   "],
            "hi",
            ["> hi\u{1b}[7m \u{1b}[27m "],
            true,
            ["──"],
            1,
            true
        ])
    );
}

#[tokio::test]
async fn typebox_subpaths_share_registries() {
    let folder = Folder::new(&[(
        "index.ts",
        &answering(
            "import { FormatRegistry, Type } from '@sinclair/typebox';\n\
             import { Value } from '@sinclair/typebox/value';\n\
             import { TypeCompiler } from '@sinclair/typebox/compiler';\n\
             import { Type as Type1 } from 'typebox';\n\
             import { Compile } from 'typebox/compile';\n\
             import { StringEnum, Type as Type2 } from '@earendil-works/pi-ai/compat';\n\
             const old = require('@sinclair/typebox/value');\n\
             FormatRegistry.Set('even', (text) => text.length % 2 === 0);\n\
             const schema = Type.Object({ a: Type.String({ format: 'even' }), b: Type.Optional(Type.Literal('x')) });\n\
             const newer = Compile(Type1.Object({ a: Type1.String() }));",
            "[Value.Check(schema, { a: 'xx' }), Value.Check(schema, { a: 'x' }), TypeCompiler.Compile(schema).Check({ a: 'xx' }), \
              newer.Check({ a: '' }), newer.Check({}), Type === Type2, old.Value === Value, StringEnum(['x']), schema]",
        ),
    )]);
    let answer = Js::start().get(&folder.path("index.ts")).await;
    assert_eq!(
        answer,
        json!([true, false, true, true, false, true, true, { "type": "string", "enum": ["x"] }, {
            "type": "object",
            "required": ["a"],
            "properties": {
                "a": { "type": "string", "format": "even" },
                "b": { "const": "x", "type": "string" },
            },
        }])
    );
}

/// Held by a test while its code changes environment variables, which all tests of this program
/// share.
static ENVIRONMENT: Mutex<()> = Mutex::const_new(());

#[tokio::test]
async fn helpers_work_and_missing_ones_throw() {
    let _changes = ENVIRONMENT.lock().await;
    let folder = Folder::new(&[(
        "index.ts",
        &answering(
            "import { createEventBus, getAgentDir, parseFrontmatter, InteractiveMode, truncateTail, VERSION } from '@mariozechner/pi-coding-agent';\n\
             import { main, VERSION as NEWER } from '@earendil-works/pi-coding-agent';\n\
             import { Agent } from '@mariozechner/pi-agent-core';\n\
             process.env.PI_CODING_AGENT_DIR = '~/x';\n\
             const heard: unknown[] = []; const bus = createEventBus(); bus.on('c', (data) => heard.push(data)); bus.emit('c', 1);\n\
             const error = (use: () => unknown) => { try { return use(); } catch (e: any) { return e.message.split(/\\.( |$)/)[0]; } };",
            "[parseFrontmatter('---\\na: [1, x]\\n---\\nbody'), truncateTail('a\\nb\\nc', { maxLines: 1 }).content, VERSION, NEWER, \
              getAgentDir().endsWith('/x'), heard, error(() => new InteractiveMode()), error(() => main()), new Agent().state.messages]",
        ),
    )]);
    let answer = Js::start().get(&folder.path("index.ts")).await;
    let missing = |name: &str, why: &str| {
        format!(
            "\"{name}\" of @mariozechner/pi-coding-agent is not available in this version of pi: {why}"
        )
    };
    assert_eq!(
        answer,
        json!([
            { "frontmatter": { "a": [1, "x"] }, "body": "body" },
            "c",
            pi_base::VERSION,
            pi_base::VERSION,
            true,
            [1],
            missing(
                "InteractiveMode",
                "the terminal belongs to the program; use ctx.ui, or RpcClient for another pi"
            ),
            missing(
                "main",
                "pi is running already; start another one as a child process (RpcClient, or process.execPath)"
            ),
            [],
        ])
    );
}

#[tokio::test]
async fn newer_exports_exist() {
    let _changes = ENVIRONMENT.lock().await;
    let folder = Folder::new(&[
        (
            "agent/auth.json",
            r#"{ "p": { "type": "api_key", "key": "k" } }"#,
        ),
        (
            "index.ts",
            &answering(
                r#"import { getDocsPath, getPackageDir, getReadmePath, readStoredCredential } from '@earendil-works/pi-coding-agent';
                import { SettingsList, sliceByColumn, stripTerminalSequences } from '@earendil-works/pi-tui';
                import { hasApi } from '@earendil-works/pi-ai';
                const here = import.meta.dirname;
                const line = '\x1b[31mab日本\x1b]8;;http://x\x07c\x1b[0md';
                const cut = [sliceByColumn(line, 1, 3), sliceByColumn(line, 1, 2), sliceByColumn(line, 1, 2, true),
                    sliceByColumn(line, -1, 2), sliceByColumn(line, 3, 0), stripTerminalSequences(line)];
                process.env.PI_PACKAGE_DIR = '/p/k';
                const paths = [getPackageDir(), getDocsPath(), getReadmePath()];
                process.env.PI_CODING_AGENT_DIR = here + '/agent';
                const credentials = [readStoredCredential('p')?.key, readStoredCredential('q') ?? null, readStoredCredential('p', '/none') ?? null];
                const plain = (text: string) => text;
                const items = [{ id: 'a', label: 'one two', currentValue: 'x', values: ['x', 'y'] }];
                const list = new SettingsList(items, 5, { label: plain, value: plain, description: plain, cursor: '>', hint: plain },
                    () => {}, () => {}, { enableSearch: true });
                const values = [' ', 'e', ' ', 't'].map((key) => (list.handleInput(key), items[0].currentValue));"#,
                "[cut, paths, credentials, [values, list.render(40)[0].includes('e t')], [hasApi({ api: 'a' }, 'a'), hasApi({ api: 'a' }, 'b')]]",
            ),
        ),
    ]);
    let answer = Js::start().get(&folder.path("index.ts")).await;
    let red = |text: &str| format!("\x1b[31m{text}");
    assert_eq!(
        answer,
        json!([
            [red("b日"), red("b日"), red("b"), red("a"), "", "ab日本cd"],
            ["/p/k", "/p/k/docs", "/p/k/README.md"],
            ["k", null, null],
            [["y", "y", "y", "y"], true],
            [true, false],
        ])
    );
}

/// Half of Node's API comes from the snapshot, where a function is compiled on its first call. A
/// function whose module was loaded in the wrong way has the text of another (`js/node/preload.ts`).
#[tokio::test]
async fn every_module_loads_while_code_runs() {
    // deno_core panicked for imports of modules that were not loaded yet.
    for ask in ["await import(name)", "require(name)"] {
        let given =
            format!("const name = '@mariozechner/pi-coding-agent/test';\nconst found = {ask};");
        let folder = Folder::new(&[("index.ts", &answering(&given, "typeof found.test"))]);
        let answer = Js::start().get(&folder.path("index.ts")).await;
        assert_eq!(answer, json!("function"), "{ask}");
    }
}

#[tokio::test]
async fn node_functions_have_their_own_text() {
    let folder = Folder::new(&[(
        "index.ts",
        &answering(
            r#"import { builtinModules } from "node:module";
            const wrong = [];
            const seen = new Set();
            const parses = (text) => ["(" + text + ")", "({" + text + "})", "(class { " + text + " })",
                "(class extends Object { " + text + " })", "({ async " + text + " })"]
                .some((code) => { try { new Function(code); return true; } catch { return false; } });
            const look = (name, value, depth) => {
                if (value === null || !["object", "function"].includes(typeof value)) return;
                if (seen.has(value) || depth > 4) return;
                seen.add(value);
                if (typeof value === "function") {
                    // A private name is not valid outside its class.
                    const text = Function.prototype.toString.call(value).replace(/#(?=\w)/g, " own_");
                    if (!text.includes("[native code]") && !parses(text)) wrong.push(name + ": " + text.slice(0, 60));
                }
                for (const [key, own] of Object.entries(Object.getOwnPropertyDescriptors(value))) {
                    for (const part of [own.value, own.get, own.set]) look(name + "." + key, part, depth + 1);
                }
                look(name + ".__proto__", Object.getPrototypeOf(value), depth + 1);
            };
            for (const name of builtinModules) {
                look(name, await import(name.startsWith("node:") ? name : "node:" + name), 0);
            }"#,
            "[wrong, seen.size > 3000]",
        ),
    )]);
    let answer = Js::start().get(&folder.path("index.ts")).await;
    assert_eq!(answer, json!([[], true]));
}

/// Parts of Node's cryptography call AWS-LC through its C interface (`stubs/aws-lc-sys`).
#[tokio::test]
async fn signed_keys_and_x448_work() {
    // openssl spkac -key KEY -challenge hello -digest sha256
    let spkac = "MIG5MGIwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAS9If5p6rJNWT44wUm/yqExYu8GfM0Eq5fQ27amcHC/\
             RgZ1E9gYu1y8WOUcKbYQbE4mjSrEdNUP7nCIJbqlWCMRFgVoZWxsbzAKBggqhkjOPQQDAgNHADBEAiBESrIh\
             XtLAWE/oe5k2fgKxWH0lrRMQzP8wi38FFgR+fgIgAtLQKc3I4PRS/acElOH5C1CtDApd7XP6K/YrE4EWBFw=";
    let folder = Folder::new(&[(
        "index.ts",
        &answering(
            &format!(
                "import {{ Certificate, createPublicKey, diffieHellman, generateKeyPairSync }} from 'node:crypto';\n\
                 const spkac = '{spkac}';\n\
                 const key = createPublicKey(Certificate.exportPublicKey(spkac));\n\
                 const [a, b] = [1, 2].map(() => generateKeyPairSync('x448'));\n\
                 const common = (own, other) => diffieHellman({{ privateKey: own.privateKey, publicKey: other.publicKey }}).toString('hex');"
            ),
            "[Certificate.verifySpkac(spkac), Certificate.verifySpkac(spkac.replace('ZWxs', 'YWxs')), \
              String(Certificate.exportChallenge(spkac)), key.asymmetricKeyType, common(a, b) === common(b, a), common(a, b).length]",
        ),
    )]);
    let answer = Js::start().get(&folder.path("index.ts")).await;
    assert_eq!(answer, json!([true, false, "hello", "ec", true, 112]));
}
