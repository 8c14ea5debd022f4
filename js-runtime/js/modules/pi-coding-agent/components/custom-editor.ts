// The editor with pi's own keys: interrupt, exit, paste an image, and those of
// extensions.
import { Editor, type EditorOptions, type EditorTheme, type EditorTui } from "pi:pi-tui/editor/index.ts";
import type { KeybindingsManager } from "pi:pi-tui/keys/keybindings.ts";

export class CustomEditor extends Editor {
  /** Handlers by action ("app.clear"). The terminal copies its own into a replacement. */
  actionHandlers = new Map<string, () => void>();
  onEscape?: () => void;
  onCtrlD?: () => void;
  onPasteImage?: () => void;
  /** Gets every key first; returns true if it has handled the key. */
  onExtensionShortcut?: (data: string) => boolean;
  private keybindings: KeybindingsManager;

  constructor(
    tui: EditorTui,
    theme: EditorTheme,
    keybindings: KeybindingsManager,
    options?: EditorOptions,
  ) {
    super(tui, theme, options);
    this.keybindings = keybindings;
  }

  onAction(action: string, handler: () => void): void {
    this.actionHandlers.set(action, handler);
  }

  override handleInput(data: string): void {
    if (this.onExtensionShortcut?.(data)) return;
    const matches = (action: string) => this.keybindings.matches(data, action);
    if (matches("app.clipboard.pasteImage")) {
      this.onPasteImage?.();
      return;
    }
    if (matches("app.interrupt")) {
      const handler = this.onEscape ?? this.actionHandlers.get("app.interrupt");
      // Suggestions take precedence.
      if (handler && !this.isShowingAutocomplete()) handler();
      else super.handleInput(data);
      return;
    }
    // The key deletes a character if there is one.
    if (matches("app.exit") && this.getText() === "") {
      (this.onCtrlD ?? this.actionHandlers.get("app.exit"))?.();
      return;
    }
    const apart = ["app.interrupt", "app.exit"];
    for (const [action, handler] of this.actionHandlers) {
      if (apart.includes(action) || !matches(action)) continue;
      handler();
      return;
    }
    super.handleInput(data);
  }
}
