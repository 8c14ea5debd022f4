// `@mariozechner/pi-agent-core`: an agent that consists of an extension's own functions.
export { Agent } from "pi:pi-agent-core/agent.ts";
export {
  agentLoop,
  agentLoopContinue,
  runAgentLoop,
  runAgentLoopContinue,
} from "pi:pi-agent-core/loop.ts";
export { streamProxy } from "pi:pi-agent-core/proxy.ts";
