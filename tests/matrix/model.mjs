// A model on loopback whose response depends only on the last message.
import { createServer } from "node:http";
import { setTimeout as pause } from "node:timers/promises";

/** Between two pieces of an answer, in milliseconds: what a handler does at one comes before the next. */
const GAP = 30;

const textOf = (content) =>
	typeof content === "string" ? content : (content ?? []).map((part) => part.text ?? "").join("");

const isSummary = (messages) =>
	messages.some((message) => message.role === "user" && /<conversation>|^# Conversation/.test(textOf(message.content)));

function answer(messages) {
	if (isSummary(messages)) return { text: ["Summ", "ary."] };
	const answered = messages.findLastIndex((message) => message.role === "assistant");
	const since = messages.slice(answered + 1).filter((message) => message.role !== "system" && message.role !== "developer");
	const texts = since.map((message) => textOf(message.content));
	if (texts.includes("go")) return { text: ["Call", "ing."], call: "probe" };
	if (since.some((message) => message.role === "tool")) return { text: ["Do", "ne."] };
	return { text: ["Re: ", texts.join(", ")] };
}

/** One line that describes a request, without the program's own texts. */
function described(body) {
	// The number of such requests, and their thinking level, may differ between programs.
	if (isSummary(body.messages)) return `${body.model} (summarize)`;
	const conversation = body.messages.filter((message) => message.role !== "system" && message.role !== "developer");
	const words = conversation.map((message) => {
		const text = textOf(message.content);
		const calls = (message.tool_calls ?? []).map((call) => `+${call.function.name}`).join("");
		const shown = text.includes("<summary>") ? "(summary)" : text;
		return `${message.role[0]}:${shown}${calls}`;
	});
	const tools = (body.tools ?? []).map((one) => one.function.name).join(",");
	return `${body.model} ${body.reasoning_effort ?? "-"} [${tools}] ${words.join(" | ")}`;
}

export async function startModel() {
	const asked = [];
	const server = createServer(async (request, response) => {
		let text = "";
		for await (const chunk of request) text += chunk;
		const body = JSON.parse(text);
		asked.push(described(body));
		response.writeHead(200, { "content-type": "text/event-stream" });
		const piece = (delta, finish = null) =>
			response.write(`data: ${JSON.stringify({ id: "answer", object: "chat.completion.chunk", model: body.model, choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`);
		const { text: pieces, call } = answer(body.messages);
		for (const content of pieces) {
			piece({ role: "assistant", content });
			await pause(GAP);
		}
		if (call) piece({ tool_calls: [{ index: 0, id: `call_${asked.length}`, type: "function", function: { name: call, arguments: "{}" } }] });
		piece({}, call ? "tool_calls" : "stop");
		const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
		response.write(`data: ${JSON.stringify({ id: "answer", object: "chat.completion.chunk", model: body.model, choices: [], usage })}\n\n`);
		response.end("data: [DONE]\n\n");
	});
	await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
	return {
		url: `http://127.0.0.1:${server.address().port}/v1`,
		asked,
		close: () => {
			server.closeAllConnections();
			server.close();
		},
	};
}
