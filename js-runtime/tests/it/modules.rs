//! The modules that extensions import, used inside V8: text functions through the
//! ops, components, TypeBox with its sub-paths, YAML, errors of missing names.

use serde_json::json;

use crate::support::{Folder, Js, answering};

#[tokio::test]
async fn text_and_components_draw() {
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
async fn typebox_of_both_ages_shares_its_registries_with_its_sub_paths() {
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

#[tokio::test]
async fn helpers_work_and_what_is_missing_says_so() {
    let folder = Folder::new(&[(
        "index.ts",
        &answering(
            "import { createEventBus, getAgentDir, parseFrontmatter, InteractiveMode, truncateTail, VERSION } from '@mariozechner/pi-coding-agent';\n\
             import { main } from '@earendil-works/pi-coding-agent';\n\
             import { Agent } from '@mariozechner/pi-agent-core';\n\
             process.env.PI_CODING_AGENT_DIR = '~/x';\n\
             const heard: unknown[] = []; const bus = createEventBus(); bus.on('c', (data) => heard.push(data)); bus.emit('c', 1);\n\
             const error = (use: () => unknown) => { try { return use(); } catch (e: any) { return e.message.split('. ')[0]; } };",
            "[parseFrontmatter('---\\na: [1, x]\\n---\\nbody'), truncateTail('a\\nb\\nc', { maxLines: 1 }).content, VERSION, \
              getAgentDir().endsWith('/x'), heard, error(() => InteractiveMode.run()), error(() => main()), new Agent().state.messages]",
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
            "0.67.68",
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
