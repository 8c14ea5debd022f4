// A command of the user (`!ls`) with its output.
import { Container } from "pi:pi-tui/component.ts";
import { Loader } from "pi:pi-tui/loader.ts";
import { Spacer, Text } from "pi:pi-tui/text.ts";
import { DynamicBorder } from "pi:pi-coding-agent/components/frame.ts";
import { keyHint, keyText } from "pi:pi-coding-agent/key-hints.ts";
import { plainText } from "pi:pi-coding-agent/text/plain-text.ts";
import { theme } from "pi:pi-coding-agent/theme/index.ts";
import { truncateTail } from "pi:pi-coding-agent/tools/truncate.ts";
import { truncateToVisualLines } from "pi:pi-coding-agent/text/visual-lines.ts";

const OUTPUT_PREVIEW_LINES = 20;

export class BashExecutionComponent extends Container {
  private command: string;
  private _output = "";
  private status: "running" | "complete" | "cancelled" | "error" = "running";
  private exitCode?: number | null;
  private _truncation: { truncated: boolean } | undefined;
  private fullOutputPath?: string;
  private expanded = false;
  private loader: Loader;
  private _content = new Container();

  constructor(
    command: string,
    ui: { requestRender(): void },
    /** With `!!` the model does not get the command. */
    excludeFromContext = false,
  ) {
    super();
    this.command = command;
    const color = excludeFromContext ? "dim" : "bashMode";
    const paint = (text: string) => theme.fg(color, text);
    const hint = `Running... (${keyText("tui.select.cancel")} to cancel)`;
    this.loader = new Loader(ui, paint, (text) => theme.fg("muted", text), hint);
    this.children = [new Spacer(1), new DynamicBorder(paint), this._content, new DynamicBorder(paint)];
    this._content.children = [new Text(theme.fg(color, theme.bold(`$ ${command}`)), 1, 0), this.loader];
  }

  setExpanded(expanded: boolean): void {
    this.expanded = expanded;
    this._rebuild();
  }

  override invalidate(): void {
    super.invalidate();
    this._rebuild();
  }

  appendOutput(chunk: string): void {
    this._output += plainText(chunk).replace(/\r\n?/g, "\n");
    this._rebuild();
  }

  setComplete(
    exitCode: number | null | undefined,
    cancelled: boolean,
    truncationResult?: { truncated: boolean },
    fullOutputPath?: string,
  ): void {
    this.exitCode = exitCode;
    this.status = cancelled ? "cancelled" : exitCode ? "error" : "complete";
    this._truncation = truncationResult;
    this.fullOutputPath = fullOutputPath;
    this.loader.stop();
    this._rebuild();
  }

  getOutput(): string {
    return this._output;
  }

  getCommand(): string {
    return this.command;
  }

  dispose(): void {
    this.loader.stop();
  }

  private _rebuild(): void {
    const { content, truncated } = truncateTail(this._output);
    const lines = content ? content.split("\n") : [];
    const preview = lines.slice(-OUTPUT_PREVIEW_LINES);
    this._content.clear();
    this._content.addChild(new Text(theme.fg("bashMode", theme.bold(`$ ${this.command}`)), 1, 0));
    if (lines.length > 0) {
      const shown = this.expanded ? lines : preview;
      const text = `\n${shown.map((line) => theme.fg("muted", line)).join("\n")}`;
      this._content.addChild(
        this.expanded ? new Text(text, 1, 0) : {
          render: (width) => truncateToVisualLines(text, OUTPUT_PREVIEW_LINES, width, 1).visualLines,
          invalidate: () => {},
        },
      );
    }
    if (this.status === "running") {
      this._content.addChild(this.loader);
      return;
    }
    const notes = this._notes(lines.length - preview.length, truncated);
    if (notes.length > 0) this._content.addChild(new Text(`\n${notes.join("\n")}`, 1, 0));
  }

  private _notes(hidden: number, truncated: boolean): string[] {
    const notes: string[] = [];
    if (hidden > 0 && this.expanded) notes.push(`(${keyHint("app.tools.expand", "to collapse")})`);
    else if (hidden > 0) {
      const more = theme.fg("muted", `... ${hidden} more lines`);
      notes.push(`${more} (${keyHint("app.tools.expand", "to expand")})`);
    }
    if (this.status === "cancelled") notes.push(theme.fg("warning", "(cancelled)"));
    if (this.status === "error") notes.push(theme.fg("error", `(exit ${this.exitCode})`));
    if ((truncated || this._truncation?.truncated) && this.fullOutputPath) {
      const note = `Output truncated. Full output: ${this.fullOutputPath}`;
      notes.push(theme.fg("warning", note));
    }
    return notes;
  }
}
