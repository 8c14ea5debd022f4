// `@mariozechner/pi-coding-agent/test`: what `pi test` gives to the tests of an
// extension. Unlike its neighbours this is no part of the snapshot, it is evaluated when a
// test imports it. Its files fetch Node's modules then, and do not import them: deno_core
// panics when a module asked for by `import()` or `require` imports one of Node's that
// nobody has loaded.
export { call, fail, say, think } from "pi:pi-coding-agent/test/model-answers.ts";
export { test } from "pi:pi-coding-agent/test/suite.ts";
