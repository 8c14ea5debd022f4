// `@mariozechner/pi-agent-core`: extensions import types from here, which cost nothing; the
// agent itself is the program.
import { missing } from "pi:missing.ts";

const MODULE = "@mariozechner/pi-agent-core";

export const Agent = missing("Agent", MODULE);
export const agentLoop = missing("agentLoop", MODULE);
export const agentLoopContinue = missing("agentLoopContinue", MODULE);
export const runAgentLoop = missing("runAgentLoop", MODULE);
export const runAgentLoopContinue = missing("runAgentLoopContinue", MODULE);
export const streamProxy = missing("streamProxy", MODULE);
