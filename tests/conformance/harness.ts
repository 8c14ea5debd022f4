// Puts a terminal that is not there in front of an extension that draws: what it
// shows is rendered for three widths, what a person would type is in the scenario,
// and what came out is written to rendered.jsonl. Runs in both programs.
import { appendFileSync } from "node:fs";
import * as agent from "@mariozechner/pi-coding-agent";
import { getKeybindings } from "@mariozechner/pi-tui";

const WIDTHS = [30, 60, 100];
const ROWS = 40;

// `keys` of the scenario: `custom`, for each call the keys one after the other
// (a number waits until the component has asked for so many renders, `null` for
// its end); `editor`, the keys for an editor component; `hide`, kinds that only
// have to run, because what they show is different each time.
const keys = JSON.parse(process.env.HARNESS_KEYS || "null") ?? {};
const customs = [...(keys.custom ?? [])];
const out = (what, value) => {
	appendFileSync("rendered.jsonl", `${JSON.stringify({ type: what, ...value })}\n`);
};

function terminal() {
	let wanted = 0;
	const waiting = [];
	const nothing = () => {};
	return {
		terminal: { columns: 100, rows: ROWS, kittyProtocolActive: false, write: nothing, setTitle: nothing, hideCursor: nothing, showCursor: nothing },
		children: [],
		addChild: nothing,
		removeChild: nothing,
		setFocus: nothing,
		start: nothing,
		stop: nothing,
		invalidate: nothing,
		requestRender() {
			wanted += 1;
			for (const one of waiting) if (wanted >= one.count) one.go();
		},
		showOverlay: () => ({ hide: nothing, setHidden: nothing, isHidden: () => false, focus: nothing, unfocus: nothing, isFocused: () => false }),
		hideOverlay: nothing,
		hasOverlay: () => false,
		getShowHardwareCursor: () => false,
		renders: (count) => (wanted >= count ? Promise.resolve() : new Promise((go) => waiting.push({ count, go }))),
	};
}

function draw(what, component, more = {}) {
	if (keys.hide?.includes(what)) return;
	for (const width of WIDTHS) {
		let lines;
		try {
			component.invalidate?.();
			lines = component.render(width);
		} catch (error) {
			lines = [`throws ${error.message}`];
		}
		out(what, { width, lines, ...more });
	}
}

function bindings() {
	try {
		return agent.KeybindingsManager.create();
	} catch {
		return getKeybindings();
	}
}

async function custom(factory, options, theme) {
	const tui = terminal();
	let end;
	const ended = new Promise((resolve) => {
		end = resolve;
	});
	let result;
	let isDone = false;
	const done = (value) => {
		result = value;
		isDone = true;
		end();
	};
	const shown = options?.overlayOptions;
	out("custom", { overlay: options?.overlay ?? false, options: typeof shown === "function" ? shown() : (shown ?? null) });
	const component = await factory(tui, theme, bindings(), done);
	options?.onHandle?.(tui.showOverlay());
	if ("focused" in component) component.focused = true;
	draw("custom", component, { key: null });
	for (const key of customs.shift() ?? []) {
		if (isDone) break;
		if (key === null) await ended;
		else if (typeof key === "number") await Promise.race([tui.renders(key), ended]);
		else {
			component.handleInput?.(key);
			await new Promise((resolve) => setTimeout(resolve));
		}
		if (!isDone) draw("custom", component, { key });
	}
	component.dispose?.();
	out("custom", { done: isDone, result: result ?? null });
	return result;
}

function screen(ui) {
	const footer = {
		getGitBranch: () => "main",
		getExtensionStatuses: () => new Map([["other", "a status"]]),
		getAvailableProviderCount: () => 1,
		onBranchChange: () => () => {},
	};
	const factory = (what, content, ...more) => {
		if (typeof content !== "function") return out(what, { content: content ?? null });
		const component = content(terminal(), ui.theme, ...more);
		draw(what, component);
		component.dispose?.();
	};
	const own = {
		custom: (content, options) => custom(content, options, ui.theme),
		setFooter: (content) => factory("footer", content, footer),
		setHeader: (content) => factory("header", content),
		setWidget: (key, content, options) => {
			if (typeof content !== "function") return ui.setWidget(key, content, options);
			factory("widget", content);
		},
		setEditorComponent: (content) => {
			if (!content) return out("editor", { content: null });
			const look = { borderColor: (text) => ui.theme.fg("borderMuted", text), selectList: agent.getSelectListTheme() };
			const editor = content(terminal(), look, bindings());
			draw("editor", editor, { key: null });
			for (const key of keys.editor ?? []) {
				editor.handleInput(key);
				draw("editor", editor, { key, text: editor.getText?.() });
			}
			editor.dispose?.();
		},
		setHiddenThinkingLabel: (label) => out("thinking label", { label: label ?? null }),
		setWorkingMessage: (message) => out("working message", { message: message ?? null }),
		setTheme: (theme) => {
			out("theme", { theme: typeof theme === "string" ? theme : theme.name });
			return { success: true };
		},
		setToolsExpanded: (expanded) => out("tools", { expanded }),
		onTerminalInput: (handler) => {
			for (const key of keys.terminal ?? []) out("terminal input", { key, answer: handler(key) ?? null });
			return () => {};
		},
	};
	return new Proxy(ui, { get: (ui, name) => own[name] ?? Reflect.get(ui, name, ui) });
}

const over = (object, own) => new Proxy(object, { get: (object, name) => (name in own ? own[name]() : Reflect.get(object, name, object)) });

export default async function (pi) {
	const screens = new WeakMap();
	const seen = (ctx) => {
		const ui = ctx.ui;
		if (!screens.has(ui)) screens.set(ui, screen(ui));
		return over(ctx, { ui: () => screens.get(ui) });
	};
	const tools = new Map();
	const renderers = new Map();
	let theme;
	const own = {
		on: () => (name, handler) => pi.on(name, (event, ctx) => handler(event, seen(ctx))),
		registerCommand: () => (name, command) => pi.registerCommand(name, { ...command, handler: (args, ctx) => command.handler(args, seen(ctx)) }),
		registerShortcut: () => (key, shortcut) => {
			pi.registerShortcut(key, shortcut);
			out("shortcut", { key, description: shortcut.description ?? null });
			pi.registerCommand(`press-${key.replaceAll("+", "-")}`, { description: shortcut.description, handler: (_args, ctx) => shortcut.handler(seen(ctx)) });
		},
		registerTool: () => (tool) => {
			tools.set(tool.name, tool);
			pi.registerTool({ ...tool, execute: (id, args, signal, update, ctx) => tool.execute(id, args, signal, update, seen(ctx)) });
		},
		registerMessageRenderer: () => (name, renderer) => {
			renderers.set(name, renderer);
			pi.registerMessageRenderer(name, renderer);
		},
	};
	pi.on("session_start", (_event, ctx) => {
		theme = ctx.ui.theme;
	});
	pi.on("message_end", ({ message }) => {
		const renderer = message.role === "custom" && renderers.get(message.customType);
		if (!renderer) return;
		for (const expanded of [false, true]) draw("message", renderer(message, { expanded }, theme), { expanded });
	});
	const states = new Map();
	const context = (event, more) => {
		if (!states.has(event.toolCallId)) states.set(event.toolCallId, {});
		return { args: event.args, toolCallId: event.toolCallId, invalidate() {}, lastComponent: undefined, state: states.get(event.toolCallId), cwd: process.cwd(), executionStarted: true, argsComplete: true, isPartial: false, expanded: false, showImages: true, isError: false, ...more };
	};
	const called = new Map();
	pi.on("tool_execution_start", (event) => {
		called.set(event.toolCallId, event.args);
		const tool = tools.get(event.toolName);
		if (tool?.renderCall) draw("call", tool.renderCall(event.args, theme, context(event)), { tool: event.toolName });
	});
	pi.on("tool_execution_end", (event) => {
		const tool = tools.get(event.toolName);
		if (!tool?.renderResult) return;
		const args = called.get(event.toolCallId);
		for (const expanded of [false, true]) {
			for (const isPartial of [false, true]) {
				const more = { args, expanded, isPartial, isError: event.isError };
				draw("result", tool.renderResult(event.result, { expanded, isPartial }, theme, context(event, more)), { tool: event.toolName, expanded, isPartial });
			}
		}
	});
	const { default: extension } = await import(process.env.HARNESS_TARGET);
	return extension(over(pi, own));
}
