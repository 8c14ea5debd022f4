// A call of a tool with its result, drawn by the tool's renderers.
import { Box } from "pi:pi-tui/box.ts";
import { getCapabilities } from "pi:pi-tui/image/capabilities.ts";
import { type Component, Container } from "pi:pi-tui/component.ts";
import { Image } from "pi:pi-tui/image/index.ts";
import { Spacer, Text } from "pi:pi-tui/text.ts";
import { currentFolder } from "pi:node.ts";
import { theme } from "pi:pi-coding-agent/theme/index.ts";
import { builtInRenderers } from "pi:pi-coding-agent/tools/rows/built-in.ts";
import {
  type RenderContext,
  resultText,
  type ToolRenderers,
  type ToolResult,
} from "pi:pi-coding-agent/tools/rows/rendering.ts";

export interface ToolExecutionOptions {
  showImages?: boolean;
}

export class ToolExecutionComponent extends Container {
  private toolName: string;
  private toolCallId: string;
  private args: unknown;
  private showImages: boolean;
  private _renderers: ToolRenderers | undefined;
  private ui: { requestRender(): void };
  private cwd: string;
  /** Shared by the renderers of this row. */
  private _state: Record<string, unknown> = {};
  private _callComponent: Component | undefined;
  private _resultComponent: Component | undefined;
  private result?: ToolResult;
  private isPartial = true;
  private expanded = false;
  private executionStarted = false;
  private argsComplete = false;

  constructor(
    toolName: string,
    toolCallId: string,
    args: unknown,
    options: ToolExecutionOptions = {},
    toolDefinition: ToolRenderers | undefined,
    ui: { requestRender(): void },
    cwd: string = currentFolder(),
  ) {
    super();
    this.toolName = toolName;
    this.toolCallId = toolCallId;
    this.args = args;
    this.showImages = options.showImages ?? true;
    this.ui = ui;
    this.cwd = cwd;
    const builtIn = builtInRenderers(toolName);
    // A replaced tool without renderers of its own keeps the built-in ones.
    this._renderers = builtIn && toolDefinition
      ? {
        renderShell: toolDefinition.renderShell ?? builtIn.renderShell,
        renderCall: toolDefinition.renderCall ?? builtIn.renderCall,
        renderResult: toolDefinition.renderResult ?? builtIn.renderResult,
      }
      : (toolDefinition ?? builtIn);
    this._rebuild();
  }

  updateArgs(args: unknown): void {
    this.args = args;
    this._rebuild();
  }

  markExecutionStarted(): void {
    this.executionStarted = true;
    this._rebuild();
    this.ui.requestRender();
  }

  setArgsComplete(): void {
    this.argsComplete = true;
    this._rebuild();
    this.ui.requestRender();
  }

  updateResult(result: ToolResult, isPartial = false): void {
    this.result = result;
    this.isPartial = isPartial;
    this._rebuild();
  }

  setExpanded(expanded: boolean): void {
    this.expanded = expanded;
    this._rebuild();
  }

  setShowImages(show: boolean): void {
    this.showImages = show;
    this._rebuild();
  }

  override invalidate(): void {
    super.invalidate();
    this._rebuild();
  }

  private readonly _background = (text: string): string => {
    if (this.isPartial) return theme.bg("toolPendingBg", text);
    return theme.bg(this.result?.isError ? "toolErrorBg" : "toolSuccessBg", text);
  };

  private _rebuild(): void {
    const row = this._renderers ? this._drawn(this._renderers) : this._plain();
    this.children = [new Spacer(1), row, ...this._images()];
  }

  /** Draws an unknown tool: name, arguments, output. */
  private _plain(): Component {
    const args = JSON.stringify(this.args, null, 2);
    const output = this._output();
    const text = theme.fg("toolTitle", theme.bold(this.toolName)) +
      (args ? `\n\n${args}` : "") + (output ? `\n${output}` : "");
    return new Text(text, 1, 1, this._background);
  }

  private _drawn({ renderShell, renderCall, renderResult }: ToolRenderers): Component {
    const row = renderShell === "self" ? new Container() : new Box(1, 1, this._background);
    this._callComponent = attempt(() =>
      renderCall?.(this.args, theme, this._context(this._callComponent))
    );
    const name = theme.fg("toolTitle", theme.bold(this.toolName));
    row.addChild(this._callComponent ?? new Text(name, 0, 0));
    const { result } = this;
    if (!result) return row;
    this._resultComponent = attempt(() =>
      renderResult?.(
        { content: result.content, details: result.details },
        { expanded: this.expanded, isPartial: this.isPartial },
        theme,
        this._context(this._resultComponent),
      )
    );
    const output = this._resultComponent ? "" : this._output();
    if (this._resultComponent) row.addChild(this._resultComponent);
    else if (output) row.addChild(new Text(theme.fg("toolOutput", output), 0, 0));
    return row;
  }

  private _output(): string {
    return this.result ? resultText(this.result, this.showImages) : "";
  }

  private _context(lastComponent: Component | undefined): RenderContext {
    return {
      args: this.args,
      toolCallId: this.toolCallId,
      invalidate: () => {
        this.invalidate();
        this.ui.requestRender();
      },
      lastComponent,
      state: this._state,
      cwd: this.cwd,
      executionStarted: this.executionStarted,
      argsComplete: this.argsComplete,
      isPartial: this.isPartial,
      expanded: this.expanded,
      showImages: this.showImages,
      isError: this.result?.isError ?? false,
    };
  }

  private _images(): Component[] {
    const protocol = getCapabilities().images;
    if (!protocol || !this.showImages) return [];
    const fallbackColor = (text: string) => theme.fg("toolOutput", text);
    return (this.result?.content ?? []).flatMap(({ type, data, mimeType }) => {
      if (type !== "image" || !data || !mimeType) return [];
      // Kitty accepts only PNG.
      if (protocol === "kitty" && mimeType !== "image/png") return [];
      return [new Spacer(1), new Image(data, mimeType, { fallbackColor }, { maxWidthCells: 60 })];
    });
  }
}

/** A renderer that throws is treated like a missing one. */
function attempt(render: () => Component | undefined): Component | undefined {
  try {
    return render();
  } catch {
    return undefined;
  }
}
