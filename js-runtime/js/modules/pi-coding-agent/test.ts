// `@mariozechner/pi-coding-agent/test`: the module that `pi test` offers to tests of extensions.
// Unlike its neighbours it is no part of the snapshot, but is evaluated when a test imports it. Its
// files fetch Node's modules with `getBuiltinModule` instead of importing them: deno_core panics
// when a module loaded with `import()` or `require` imports a module of Node that is not loaded
// yet.
export { call, fail, say, think } from "pi:pi-coding-agent/test/model-answers.ts";
export { test } from "pi:pi-coding-agent/test/suite.ts";
