// `@mariozechner/pi-coding-agent/test`: what `pi test` gives to the tests of an
// extension. Node's modules may be imported here: unlike its neighbours this is no
// part of the snapshot, it is evaluated when a test imports it.
export { call, fail, say, think } from "pi:pi-coding-agent/test/answers.ts";
export { test } from "pi:pi-coding-agent/test/suite.ts";
