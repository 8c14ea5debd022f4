// Connects the modules that extensions import with the program, and makes them part of the
// snapshot: all imports are evaluated while it is made. Sub-paths of the npm packages are in the
// binary as text only.
import {
  op_diff_words,
  op_highlight,
  op_markdown_parse,
  op_text_around,
  op_text_slice,
  op_text_strip,
  op_text_truncate,
  op_text_width,
  op_text_wrap,
  // @ts-ignore: provided by the runtime
} from "ext:core/ops";
// @ts-ignore: provided by the runtime
import { core, internals } from "ext:core/mod.js";
import { host, hostSync } from "ext:js_runtime/bridge/host.ts";
import { createEventBus } from "ext:js_runtime/bridge/events.ts";
import { connect } from "pi:host.ts";
import "pi:npm/sinclair-typebox/index.js";
import "pi:pi-agent-core.ts";
import "pi:pi-ai.ts";
import "pi:pi-ai/oauth.ts";
import "pi:pi-coding-agent/newer-scope.ts";
import "pi:pi-tui.ts";

connect({
  host,
  hostSync,
  createEventBus,
  text: {
    width: op_text_width,
    truncate: op_text_truncate,
    wrap: op_text_wrap,
    slice: op_text_slice,
    strip: op_text_strip,
    around: op_text_around,
    markdown: op_markdown_parse,
    highlight: op_highlight,
    diffWords: op_diff_words,
  },
  yaml: core.createLazyLoader("pi:npm/yaml/index.js"),
  onEvaluated: (listener) => internals.listenGlobally("load", () => listener()),
});
