// Does one thing in one event, once: `cell.json` says which.
import { readFileSync } from "node:fs";

function cellOf(): { event: string; action: string } {
	try {
		return JSON.parse(readFileSync("cell.json", "utf8"));
	} catch {
		return { event: "", action: "nothing" };
	}
}

const tool = (name: string, execute: (...args: any[]) => Promise<unknown>) => ({
	name,
	label: name,
	description: `The tool ${name}`,
	parameters: { type: "object", properties: {} },
	execute,
});

export default function (pi: any) {
	const cell = cellOf();
	let done = false;
	let turns = 0;

	const message = { customType: "matrix", content: "custom", display: true };
	const act = async (ctx: any): Promise<void> => {
		switch (cell.action) {
			case "active-tools":
				return pi.setActiveTools(["read", "probe"]);
			case "register-tool":
				return pi.registerTool(tool("late", async () => ({ content: [{ type: "text", text: "late" }], details: {} })));
			case "register-command":
				return pi.registerCommand("late", { description: "late", handler: async () => {} });
			case "append-entry":
				return pi.appendEntry("note", { by: "matrix" });
			case "message":
				return pi.sendMessage(message);
			case "message-steer":
				return pi.sendMessage(message, { deliverAs: "steer" });
			case "message-follow-up":
				return pi.sendMessage(message, { deliverAs: "followUp" });
			case "message-next-turn":
				return pi.sendMessage(message, { deliverAs: "nextTurn" });
			case "message-trigger-turn":
				return pi.sendMessage(message, { triggerTurn: true });
			case "user-message":
				return pi.sendUserMessage("said");
			case "user-message-steer":
				return pi.sendUserMessage("said", { deliverAs: "steer" });
			case "user-message-follow-up":
				return pi.sendUserMessage("said", { deliverAs: "followUp" });
			case "set-model": {
				const model = ctx.modelRegistry.find("scripted", "scripted-2");
				return ctx.ui.notify(`setModel: ${await pi.setModel(model)}`);
			}
			case "thinking-level":
				return pi.setThinkingLevel("high");
			case "session-name":
				return pi.setSessionName("named");
			case "label": {
				const leaf = ctx.sessionManager.getLeafId();
				return leaf ? pi.setLabel(leaf, "marked") : undefined;
			}
			case "abort":
				// In 0.67.68 it gives a promise that waits for the end of the run.
				void ctx.abort();
				return;
			case "throw":
				throw new Error("thrown");
			case "read-state": {
				const { sessionManager } = ctx;
				const state = {
					tools: pi.getActiveTools(),
					model: ctx.model?.id,
					thinking: pi.getThinkingLevel(),
					name: pi.getSessionName() ?? null,
					idle: ctx.isIdle(),
					pending: ctx.hasPendingMessages(),
					entries: sessionManager.getBranch().filter((entry: any) => entry.type === "message" && entry.message.role !== "system").length,
					signal: ctx.signal !== undefined,
				};
				return ctx.ui.notify(JSON.stringify(state));
			}
		}
	};
	const once = async (event: string, ctx: any) => {
		if (done || event !== cell.event) return;
		done = true;
		await act(ctx);
	};

	const [wanted] = cell.event.split(":");
	if (!["", "tool", "command"].includes(wanted)) {
		pi.on(wanted, async (event: any, ctx: any) => {
			let which = wanted;
			if (wanted === "message_start" || wanted === "message_end") which = `${wanted}:${event.message.role}`;
			if (wanted === "turn_end") which = event.toolResults.length > 0 ? "turn_end:first" : "turn_end:last";
			if (cell.event === "turn_start:second") which = ++turns === 2 ? cell.event : "";
			await once(which, ctx);
		});
	}
	pi.registerTool(
		tool("probe", async (_id, _params, _signal, onUpdate, ctx) => {
			onUpdate({ content: [{ type: "text", text: "half" }], details: {} });
			await once("tool:execute", ctx);
			return { content: [{ type: "text", text: "probed" }], details: {} };
		}),
	);
	pi.registerCommand("act", { description: "acts", handler: async (_args: string, ctx: any) => once("command:act", ctx) });
	pi.registerCommand("back", {
		description: "goes back to the result of the tool",
		handler: async (_args: string, ctx: any) => {
			const result = ctx.sessionManager.getBranch().find((entry: any) => entry.message?.role === "toolResult");
			const { cancelled } = await ctx.navigateTree(result.id, { summarize: false });
			ctx.ui.notify(`back: ${!cancelled}`);
		},
	});
}
