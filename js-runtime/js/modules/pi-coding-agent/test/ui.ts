// The user of a test: answers dialogs by the rules of the test, and records everything that is
// shown.
import type { RpcEvent } from "pi:pi-coding-agent/test/connection.ts";
import { checkOptions, oneOf, PATTERN } from "pi:pi-coding-agent/test/validate.ts";

export type DialogMethod = "select" | "confirm" | "input" | "editor";

export interface Dialog {
  method: DialogMethod;
  title: string;
  /** Set by `confirm`. */
  message?: string;
  /** Set by `select`. */
  options?: string[];
  placeholder?: string;
  prefill?: string;
  /** Timeout in milliseconds. */
  timeout?: number;
  /** `null`: cancelled; `undefined`: not answered. */
  answer?: string | boolean | null;
}

/** A method, or part of the title or message. */
export type WhichDialog = DialogMethod | RegExp | { method?: DialogMethod; title?: string | RegExp };
export type DialogAnswer = string | boolean | null;
export type ResponseSource = DialogAnswer | ((dialog: Dialog) => DialogAnswer | Promise<DialogAnswer>);

interface Rule {
  which: WhichDialog;
  answering: ResponseSource | undefined;
  uses: number;
}

const METHODS: readonly string[] = ["select", "confirm", "input", "editor"];

const says = (pattern: string | RegExp, text: string): boolean =>
  typeof pattern === "string" ? text.includes(pattern) : new RegExp(pattern).test(text);

function fits(which: WhichDialog, { method, title, message = "" }: Dialog): boolean {
  if (typeof which === "string") return which === method;
  if (which instanceof RegExp) return says(which, `${title}\n${message}`);
  return (which.method ?? method) === method && (which.title === undefined || says(which.title, title));
}

function named(which: WhichDialog): string {
  if (typeof which === "string" || which instanceof RegExp) return String(which);
  return [which.method ?? "a dialog", which.title].filter((part) => part !== undefined).join(" ");
}

export function shown({ method, title, message, options }: Dialog): string {
  const about = options ? ` ${JSON.stringify(options)}` : message ? ` ${JSON.stringify(message)}` : "";
  return `${method} ${JSON.stringify(title)}${about}`;
}

/** A misspelt rule that fits every dialog would answer unexpected ones. */
function checkWhich(where: string, which: unknown): void {
  if (which instanceof RegExp) return;
  if (typeof which === "string") {
    if (METHODS.includes(which)) return;
    throw new TypeError(
      `No dialog is called "${which}": use ${METHODS.join(", ")}, or a regular expression for the title`,
    );
  }
  if (typeof which !== "object" || which === null || Array.isArray(which)) {
    const kinds = METHODS.map((method) => `"${method}"`).join(", ");
    throw new TypeError(
      `${where}: which dialog is meant must be one of ${kinds}, a regular expression for the title, or ` +
        `{ method, title }, not ${JSON.stringify(which)}`,
    );
  }
  checkOptions(`${where}: which`, which, { method: oneOf(...METHODS), title: PATTERN });
}

function checkAnswering(where: string, answering: unknown): void {
  if (answering === null || ["string", "boolean", "function"].includes(typeof answering)) return;
  const shownAnswer = answering === undefined ? "nothing" : JSON.stringify(answering);
  throw new TypeError(
    `${where}: the answer must be a string, a boolean for confirm, null, which cancels, or a function, not ${shownAnswer}`,
  );
}

export class Ui {
  readonly dialogs: Dialog[] = [];
  readonly notifications: { message: string; type: string }[] = [];
  /** Texts in the status line, by key. */
  readonly statuses: Record<string, string> = {};
  /** Lines above and below the editor, by key. */
  readonly widgets: Record<string, string[]> = {};
  title: string | undefined;
  /** The text that an extension put into the editor. */
  editorText = "";
  private _rules: Rule[] = [];
  private _reply: (answer: object) => void;
  private _complain: (message: string) => void;

  constructor(reply: (answer: object) => void, complain: (message: string) => void) {
    this._reply = reply;
    this._complain = complain;
  }

  /** Answers the next dialog of that kind; `null` cancels it. */
  answer(which: WhichDialog, answering: ResponseSource): void {
    checkAnswering("pi.ui.answer", answering);
    this._add("pi.ui.answer", which, answering, 1);
  }

  /** Answers every dialog of that kind. */
  always(which: WhichDialog, answering: ResponseSource): void {
    checkAnswering("pi.ui.always", answering);
    this._add("pi.ui.always", which, answering, Infinity);
  }

  /** Leaves the next dialog of that kind open, until its timeout or signal ends it. */
  ignore(which: WhichDialog): void {
    this._add("pi.ui.ignore", which, undefined, 1);
  }

  private _add(where: string, which: WhichDialog, answering: ResponseSource | undefined, left: number): void {
    checkWhich(where, which);
    this._rules.push({ which, answering, uses: left });
  }

  /** Rules that no dialog has used. */
  get left(): string[] {
    return this._rules.filter(({ uses: left }) => left === 1).map(({ which }) => named(which));
  }

  onEvent(event: RpcEvent): void {
    switch (event.method as string) {
      case "notify":
        this.notifications.push({ message: event.message, type: event.notifyType ?? "info" });
        break;
      case "setStatus":
        if (event.statusText === undefined) delete this.statuses[event.statusKey];
        else this.statuses[event.statusKey] = event.statusText;
        break;
      case "setWidget":
        if (event.widgetLines === undefined) delete this.widgets[event.widgetKey];
        else this.widgets[event.widgetKey] = event.widgetLines;
        break;
      case "setTitle":
        this.title = event.title;
        break;
      case "set_editor_text":
        this.editorText = event.text;
        break;
      default:
        if (METHODS.includes(event.method)) this._openDialog(event);
    }
  }

  private _openDialog(event: RpcEvent): void {
    const { method, title, message, options, placeholder, prefill, timeout } = event;
    const dialog: Dialog = { method, title, message, options, placeholder, prefill, timeout };
    this.dialogs.push(dialog);
    // Kept for the transcript, which is rendered from events.
    event.dialog = dialog;
    const rule = this._rules.find(({ which }) => fits(which, dialog));
    if (!rule) {
      this._send(event.id, dialog, null);
      this._complain(
        `A dialog that the test has no answer for: ${shown(dialog)}. ` +
          "Call pi.ui.answer(), pi.ui.always() or pi.ui.ignore() before",
      );
      return;
    }
    rule.uses -= 1;
    this._rules = this._rules.filter(({ uses: left }) => left > 0);
    if (rule.answering === undefined) return;
    void this._respond(event.id, dialog, rule.answering);
  }

  private async _respond(id: string, dialog: Dialog, answering: ResponseSource): Promise<void> {
    try {
      const answer = typeof answering === "function" ? await answering(dialog) : answering;
      this._check(dialog, answer);
      this._send(id, dialog, answer);
    } catch (error) {
      this._send(id, dialog, null);
      this._complain(`${shown(dialog)} cannot be answered: ${error instanceof Error ? error.message : error}`);
    }
  }

  private _check({ method, options }: Dialog, answer: DialogAnswer): void {
    if (answer === null) return;
    const wanted = method === "confirm" ? "boolean" : "string";
    if (typeof answer !== wanted) {
      throw new TypeError(`${method} takes a ${wanted} or null, not ${JSON.stringify(answer)}`);
    }
    if (options && !options.includes(answer as string)) {
      throw new TypeError(`${JSON.stringify(answer)} is none of the options`);
    }
  }

  private _send(id: string, dialog: Dialog, answer: DialogAnswer): void {
    dialog.answer = answer;
    const response = answer === null
      ? { cancelled: true }
      : typeof answer === "boolean"
      ? { confirmed: answer }
      : { value: answer };
    this._reply({ type: "extension_ui_response", id, ...response });
  }
}
