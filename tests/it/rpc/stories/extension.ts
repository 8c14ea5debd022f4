// The extension for the stories of tests/it/rpc/parity.rs.
import { existsSync } from "node:fs";

export default function (pi: any) {
	pi.on("input", (event: any) => {
		if (event.text === "mine") return { action: "handled" };
		if (event.text.startsWith("louder: ")) {
			return { action: "transform", text: event.text.slice(8).toUpperCase() };
		}
		return { action: "continue" };
	});
	let objects = "";
	pi.on("session_before_switch", () => (objects === "switch" ? { cancel: true } : undefined));
	pi.on("session_before_fork", () => (objects === "fork" ? { cancel: true } : undefined));
	pi.on("session_before_compact", () => (objects === "compact" ? { cancel: true } : undefined));
	pi.registerCommand("object", {
		description: "Objects to something.",
		handler: async (args: string) => {
			objects = args;
		},
	});
	pi.registerCommand("throw", {
		handler: async () => {
			throw new Error("as asked");
		},
	});
	pi.registerCommand("say", {
		description: "Puts something into the conversation.",
		handler: async (args: string) => {
			pi.sendMessage({ customType: "both", content: args, display: true, details: { n: 1 } });
		},
	});
	pi.registerCommand("ask", {
		description: "Asks what it is told to.",
		handler: async (args: string, ctx: any) => {
			const [method, ...rest] = JSON.parse(args);
			const answer = await ctx.ui[method](...rest);
			ctx.ui.notify(JSON.stringify({ answer: answer === undefined ? "undefined" : answer }));
		},
	});
	pi.registerCommand("show", {
		description: "All that needs no answer.",
		handler: async (_args: string, ctx: any) => {
			ctx.ui.notify("plain");
			ctx.ui.notify("bad", "error");
			ctx.ui.setStatus("key", "text");
			ctx.ui.setStatus("key", undefined);
			ctx.ui.setWidget("key", ["a", "b"]);
			ctx.ui.setWidget("key", ["a"], { placement: "belowEditor" });
			ctx.ui.setWidget("key", undefined);
			ctx.ui.setWidget("key", () => ({ render: () => [] }));
			ctx.ui.setTitle("title");
			ctx.ui.setEditorText("text");
			ctx.ui.pasteToEditor("pasted");
			ctx.ui.setWorkingMessage("not shown");
			ctx.ui.setFooter(undefined);
			ctx.ui.setHeader(undefined);
			const custom = await ctx.ui.custom(() => {});
			ctx.ui.notify(JSON.stringify([ctx.hasUI, ctx.ui.getEditorText(), ctx.ui.getToolsExpanded(), custom]));
		},
	});
	pi.registerCommand("until", {
		handler: async (file: string, ctx: any) => {
			while (!existsSync(`${ctx.cwd}/${file}`)) await new Promise((resolve) => setTimeout(resolve, 5));
			ctx.ui.notify(`${file} is there`);
		},
	});
	pi.registerCommand("themes", {
		handler: async (_args: string, ctx: any) => {
			const { success, error } = ctx.ui.setTheme("dark");
			const all = ctx.ui.getAllThemes().map(({ name }: any) => ({ name }));
			ctx.ui.notify(JSON.stringify([all, success, error]));
		},
	});
	pi.registerTool({
		name: "wait",
		label: "Wait",
		description: "Waits for a file.",
		parameters: { type: "object", properties: { file: { type: "string" } }, required: ["file"] },
		execute: async (_id: string, args: any, _signal: any, onUpdate: any, ctx: any) => {
			onUpdate?.({ content: [{ type: "text", text: "waiting" }], details: { still: true } });
			while (!existsSync(`${ctx.cwd}/${args.file}`)) await new Promise((resolve) => setTimeout(resolve, 5));
			return { content: [{ type: "text", text: `${args.file} is there` }], details: {} };
		},
	});
}
