// Evaluates the part of Node's API that nearly every extension uses, with its dependencies, while
// the snapshot is made: `import "node:fs"` alone evaluates 120 files.
//
// Other modules cannot be in the snapshot: `node:process`, and with it the streams, read the state
// of the process when they are evaluated; `node:crypto` makes objects that a snapshot cannot hold;
// modules that are corrected (snapshot/corrections.rs) must stay text. A module must be named here
// (an ES module by a static import) even if another one loads it: V8 looks elsewhere for the text
// of modules that are loaded in another way.
import "ext:deno_node/_fs/_fs_exists.ts";
import "ext:deno_node/_fs/_fs_glob.ts";
import "ext:deno_node/_fs/_fs_read.ts";
import "ext:deno_node/internal/fs/stat_utils.ts";
import "ext:deno_node/internal/fs/utils.mjs";
import "ext:js_runtime/node/snapshot-fixes.ts";
// @ts-ignore: provided by the runtime
import { core } from "ext:core/mod.js";

for (const file of [
  "deno_fetch/21_formdata.js",
  "deno_fetch/22_body.js",
  "deno_node/_events.mjs",
  "deno_node/_fs/_fs_constants.ts",
  "deno_node/_fs/_fs_fstat.ts",
  "deno_node/_fs/_fs_lstat.ts",
  "deno_node/_fs/cp/cp.ts",
  "deno_node/_fs/cp/cp_sync.ts",
  "deno_node/assert.ts",
  "deno_node/async_hooks.ts",
  "deno_node/diagnostics_channel.js",
  "deno_node/internal/buffer.mjs",
  "deno_node/internal/console/constructor.mjs",
  "deno_node/internal/fs/sync_write_stream.js",
  "deno_node/internal/http2/constants.ts",
  "deno_node/internal/net.ts",
  "deno_node/internal/process/active_resources.ts",
  "deno_node/internal/process/warning.ts",
  "deno_node/internal/readline/utils.mjs",
  "deno_node/internal/streams/add-abort-signal.js",
  "deno_node/internal/streams/destroy.js",
  "deno_node/internal/streams/legacy.js",
  "deno_node/internal_binding/cares_wrap.ts",
  "deno_node/internal_binding/http2.ts",
  "deno_node/internal_binding/http_parser.ts",
  "deno_node/internal_binding/node_file.ts",
  "deno_node/internal_binding/pipe_wrap.ts",
  "deno_node/internal_binding/tcp_wrap.ts",
  "deno_node/internal_binding/udp_wrap.ts",
  "deno_node/os.ts",
  "deno_node/path/mod.ts",
  "deno_node/querystring.js",
  "deno_node/string_decoder.ts",
  "deno_node/url.ts",
  "deno_node/util.ts",
  "deno_web/06_streams.js",
]) {
  core.loadExtScript(`ext:${file}`);
}
