// What the snapshot evaluates, and with it everything it imports.
import "pi:missing.ts";
import "ext:js_runtime/connect.ts";
import "ext:js_runtime/process.ts";
import "ext:js_runtime/promise-hooks.ts";
import "ext:js_runtime/require.ts";
import "ext:js_runtime/imported.ts";
import "ext:js_runtime/bridge.ts";
import "ext:js_runtime/node-layer.ts";
import "ext:js_runtime/bodies.ts";
import "ext:js_runtime/dispatchers.ts";
import "ext:js_runtime/brotli.ts";
import "ext:js_runtime/encodings.ts";
import "ext:js_runtime/files.ts";
import "ext:js_runtime/stats.ts";
import "ext:js_runtime/segmenter.ts";
import "ext:js_runtime/stand-ins.ts";
import "ext:js_runtime/watch-tree.ts";
