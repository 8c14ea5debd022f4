// `ctx.ui`: dialogs and messages for the user. A dialog resolves to its default on Escape, timeout
// and abort, and where no user is present.
import { host, hostSync } from "ext:js_runtime/bridge/host.ts";
import { report, warn } from "ext:js_runtime/bridge/registry.ts";
import { aSignal, asText, asTexts, someMilliseconds, someOptions } from "ext:js_runtime/bridge/validate/arguments.ts";
import { availableThemes, changeTheme, findTheme, theme, type Theme } from "ext:js_runtime/bridge/theme.ts";

interface DialogOptions {
  signal?: AbortSignal;
  /** Timeout in milliseconds. */
  timeout?: number;
}

interface DialogResponse {
  value?: string;
  confirmed?: boolean;
  cancelled?: boolean;
}

/** Thrown when the client has declared that it does not support something. */
class UiUnsupportedError extends Error {
  override name = "UiUnsupportedError";
  readonly code = "UI_UNSUPPORTED";
  readonly method: string;

  constructor(method: string) {
    super(`ctx.ui.${method}() is not supported by the client that drives pi: it did not name it in its hello`);
    this.method = method;
  }
}

/** A client that declares no capabilities is expected to support all of the protocol. */
function requireCapability(by: Calls, extension: number, method: string): void {
  if (!by.hostSync<boolean>("ui.supports", { extension, method })) throw new UiUnsupportedError(method);
}

const NO_COMPONENTS = "The extension would show a component of its own here, which needs a terminal that draws: this mode prints lines";

let tokens = 0;

/** Returns whole milliseconds, as the protocol requires; 0 means no timeout. */
function milliseconds(where: string, value: unknown): number | undefined {
  const timeout = someMilliseconds(where, value);
  if (timeout === undefined || timeout === 0) return undefined;
  return Math.min(Math.max(Math.round(timeout), 1), Number.MAX_SAFE_INTEGER);
}

/** The functions that call the program; those of a stale call (see context.ts) name it. */
export interface Calls {
  host: typeof host;
  hostSync: typeof hostSync;
}

const HOST_CALLS: Calls = { host, hostSync };

/**
 * Reads the options of a dialog. A text in their place is probably meant as the initial value,
 * which no version supports: the dialog opens all the same.
 */
function dialogOptions(extension: number, where: string, options: unknown): DialogOptions {
  try {
    return someOptions(where, options as DialogOptions, "{ timeout: 5000 }");
  } catch (error) {
    warn(extension, where.slice(0, where.indexOf(":")), error);
    return {};
  }
}

async function openDialog(
  by: Calls,
  extension: number,
  method: string,
  args: object,
  options?: DialogOptions | null,
): Promise<DialogResponse> {
  const where = `ctx.ui.${method}: options`;
  const checked = dialogOptions(extension, where, options);
  const signal = aSignal(`${where}.signal`, checked.signal);
  const timeout = milliseconds(`${where}.timeout`, checked.timeout);
  if (signal?.aborted) return { cancelled: true };
  requireCapability(by, extension, method);
  const token = (tokens += 1);
  const cancel = () => hostSync("ui.cancel", { token });
  signal?.addEventListener("abort", cancel, { once: true });
  try {
    return await by.host<DialogResponse>("ui.request", { extension, token, method, timeout, ...args });
  } finally {
    signal?.removeEventListener("abort", cancel);
  }
}

/** Why themes can neither be read nor changed; `undefined` where there is a terminal. */
function withoutThemes(by: Calls): string | undefined {
  const mode = by.hostSync<string>("ctx.mode");
  if (mode === "rpc") return "Theme switching not supported in RPC mode";
  return mode === "print" || mode === "json" ? "UI not available" : undefined;
}

export function createUi(extension: number, by: Calls = HOST_CALLS) {
  let editorComponent: unknown;
  /**
   * Sends a message without a response. Throws if the instance is stale; a message that cannot be
   * sent is reported.
   */
  const send = (method: string, args: object): void => {
    try {
      by.hostSync("ui.show", { extension, method, ...args });
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      report(extension, `ctx.ui.${method}`, error);
    }
  };
  const word = (method: string, name: string, value: unknown, hint?: string): string => {
    const text = asText(`ctx.ui.${method}: ${name}`, value, hint);
    if (text.includes("[object Promise]")) {
      const problem = `ctx.ui.${method}: ${name} says [object Promise], as if an \`await\` were missing`;
      warn(extension, `ctx.ui.${method}`, new Error(problem));
    }
    return text;
  };
  const wordOrNone = (method: string, name: string, value: unknown, hint?: string) =>
    value === undefined || value === null ? undefined : word(method, name, value, hint);
  return {
    select: async (title: string, options: string[], dialog?: DialogOptions) => {
      const request = {
        title: word("select", "title", title),
        options: asTexts("ctx.ui.select: options", options),
      };
      return (await openDialog(by, extension, "select", request, dialog)).value;
    },
    confirm: async (title: string, message?: string, dialog?: DialogOptions) => {
      const hint = "the options of a dialog are the third argument";
      const request = {
        title: word("confirm", "title", title),
        message: wordOrNone("confirm", "message", message, hint) ?? "",
      };
      return (await openDialog(by, extension, "confirm", request, dialog)).confirmed ?? false;
    },
    input: async (title: string, placeholder?: string, dialog?: DialogOptions) => {
      const hint = "the options of a dialog are the third argument";
      const request = {
        title: wordOrNone("input", "title", title) ?? "",
        placeholder: wordOrNone("input", "placeholder", placeholder, hint),
      };
      return (await openDialog(by, extension, "input", request, dialog)).value;
    },
    editor: async (title: string, prefill?: string) => {
      const request = {
        title: wordOrNone("editor", "title", title) ?? "",
        prefill: wordOrNone("editor", "prefill", prefill),
      };
      return (await openDialog(by, extension, "editor", request)).value;
    },

    notify: (message: string, notifyType?: "info" | "warning" | "error") =>
      send("notify", {
        message: word("notify", "message", message),
        notifyType: wordOrNone("notify", "type", notifyType),
      }),
    setStatus: (statusKey: string, statusText?: string) =>
      send("setStatus", {
        statusKey: word("setStatus", "key", statusKey),
        statusText: wordOrNone("setStatus", "text", statusText),
      }),
    setWidget(key: string, content: unknown, options?: { placement?: string }): void {
      // Components need a terminal that draws; without one they are omitted, as the protocol
      // specifies.
      if (typeof content === "function") return;
      const shown = typeof content === "string" ? [content] : content ?? undefined;
      send("setWidget", {
        widgetKey: word("setWidget", "key", key),
        widgetLines: shown && asTexts("ctx.ui.setWidget: content", shown),
        widgetPlacement: options?.placement,
      });
    },
    setTitle: (title: string) => send("setTitle", { title: word("setTitle", "title", title) }),
    // `undefined` empties the editor.
    setEditorText: (content?: string) =>
      send("set_editor_text", { text: wordOrNone("setEditorText", "text", content) ?? "" }),
    pasteToEditor: (content?: string) =>
      send("set_editor_text", { text: wordOrNone("pasteToEditor", "text", content) ?? "" }),

    // The members below need a terminal that draws. The protocol specifies their results without
    // one.
    getEditorText: () => "",
    custom: async () => {
      requireCapability(by, extension, "custom");
      // A user who types the command would otherwise see nothing.
      if (by.hostSync<string>("ctx.mode") === "interactive") send("notify", { message: NO_COMPONENTS, notifyType: "warning" });
    },
    onTerminalInput: () => () => {},
    setWorkingMessage: () => {},
    setWorkingVisible: () => {},
    setWorkingIndicator: () => {},
    addAutocompleteProvider: () => {},
    setHiddenThinkingLabel: () => {},
    setFooter: () => {},
    setHeader: () => {},
    setEditorComponent: (factory?: unknown): void => void (editorComponent = factory),
    getEditorComponent: () => editorComponent,
    get theme() {
      return theme;
    },
    // Themes of the user stay hidden where nothing is displayed.
    getAllThemes: () => (withoutThemes(by) ? [] : availableThemes()),
    getTheme: (name: string) => (withoutThemes(by) ? undefined : findTheme(name)),
    setTheme(theme: string | Theme) {
      const error = withoutThemes(by);
      return error ? { success: false, error } : changeTheme(theme);
    },
    getToolsExpanded: () => false,
    setToolsExpanded: () => {},
  };
}
