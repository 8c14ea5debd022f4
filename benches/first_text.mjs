// Prints the milliseconds from the start of a client to the first text of an answer:
//   node first_text.mjs rpc-client <module of RpcClient> <cliPath>
//   node first_text.mjs pi-acp <program of pi-acp> <SDK of the protocol>, with `pi` in the path
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const [kind, ...args] = process.argv.slice(2);
const clients = {
  async "rpc-client"(clientModule, cliPath) {
    const { RpcClient } = await import(pathToFileURL(clientModule));
    return async (onText) => {
      const client = new RpcClient({ cliPath, args: ["--no-session"] });
      client.onEvent((event) => event.assistantMessageEvent?.type === "text_delta" && onText());
      await client.start();
      await client.prompt("hi");
    };
  },
  async "pi-acp"(adapterPath, protocolModule) {
    const { ClientSideConnection, PROTOCOL_VERSION, ndJsonStream } = await import(pathToFileURL(protocolModule));
    return async (onText) => {
      const adapter = spawn(process.execPath, [adapterPath], { stdio: ["pipe", "pipe", "ignore"] });
      const sessionUpdate = async ({ update }) => {
        if (update.content?.text === "Hello.") onText();
      };
      const stream = ndJsonStream(Writable.toWeb(adapter.stdin), Readable.toWeb(adapter.stdout));
      const agent = new ClientSideConnection(() => ({ sessionUpdate }), stream);
      await agent.initialize({ protocolVersion: PROTOCOL_VERSION, clientCapabilities: {} });
      const { sessionId } = await agent.newSession({ cwd: process.cwd(), mcpServers: [] });
      await agent.prompt({ sessionId, prompt: [{ type: "text", text: "hi" }] });
    };
  },
};
const run = await clients[kind](...args);
const start = performance.now();
await new Promise((resolve, reject) => {
  run(() => {
    console.log(performance.now() - start);
    resolve();
  }).catch(reject);
});
process.exit(0);
