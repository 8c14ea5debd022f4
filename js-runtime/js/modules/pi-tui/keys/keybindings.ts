// The table of key bindings. Components query it by the name of the action, so that the user's own
// keys work in extensions, too.
import { type KeyId, matchesKey } from "pi:pi-tui/keys/index.ts";

export interface KeybindingDefinition {
  defaultKeys: KeyId | KeyId[];
  description?: string;
}
export type KeybindingDefinitions = Record<string, KeybindingDefinition>;
export type KeybindingsConfig = Record<string, KeyId | KeyId[] | undefined>;
export interface KeybindingConflict {
  key: KeyId;
  keybindings: string[];
}

const action = (defaultKeys: KeyId | KeyId[], description: string): KeybindingDefinition => ({
  defaultKeys,
  description,
});

export const TUI_KEYBINDINGS = {
  "tui.editor.cursorUp": action("up", "Move cursor up"),
  "tui.editor.cursorDown": action("down", "Move cursor down"),
  "tui.editor.cursorLeft": action(["left", "ctrl+b"], "Move cursor left"),
  "tui.editor.cursorRight": action(["right", "ctrl+f"], "Move cursor right"),
  "tui.editor.cursorWordLeft": action(["alt+left", "ctrl+left", "alt+b"], "Move cursor word left"),
  "tui.editor.cursorWordRight": action(
    ["alt+right", "ctrl+right", "alt+f"],
    "Move cursor word right",
  ),
  "tui.editor.cursorLineStart": action(["home", "ctrl+a"], "Move to line start"),
  "tui.editor.cursorLineEnd": action(["end", "ctrl+e"], "Move to line end"),
  "tui.editor.jumpForward": action("ctrl+]", "Jump forward to character"),
  "tui.editor.jumpBackward": action("ctrl+alt+]", "Jump backward to character"),
  "tui.editor.pageUp": action("pageUp", "Page up"),
  "tui.editor.pageDown": action("pageDown", "Page down"),
  "tui.editor.deleteCharBackward": action("backspace", "Delete character backward"),
  "tui.editor.deleteCharForward": action(["delete", "ctrl+d"], "Delete character forward"),
  "tui.editor.deleteWordBackward": action(["ctrl+w", "alt+backspace"], "Delete word backward"),
  "tui.editor.deleteWordForward": action(["alt+d", "alt+delete"], "Delete word forward"),
  "tui.editor.deleteToLineStart": action("ctrl+u", "Delete to line start"),
  "tui.editor.deleteToLineEnd": action("ctrl+k", "Delete to line end"),
  "tui.editor.yank": action("ctrl+y", "Yank"),
  "tui.editor.yankPop": action("alt+y", "Yank pop"),
  "tui.editor.undo": action("ctrl+-", "Undo"),
  "tui.input.newLine": action("shift+enter", "Insert newline"),
  "tui.input.submit": action("enter", "Submit input"),
  "tui.input.tab": action("tab", "Tab / autocomplete"),
  "tui.input.copy": action("ctrl+c", "Copy selection"),
  "tui.select.up": action("up", "Move selection up"),
  "tui.select.down": action("down", "Move selection down"),
  "tui.select.pageUp": action("pageUp", "Selection page up"),
  "tui.select.pageDown": action("pageDown", "Selection page down"),
  "tui.select.confirm": action("enter", "Confirm selection"),
  "tui.select.cancel": action(["escape", "ctrl+c"], "Cancel selection"),
} satisfies KeybindingDefinitions;

function unique(keys: KeyId | KeyId[] | undefined): KeyId[] {
  return keys === undefined ? [] : [...new Set([keys].flat())];
}

export class KeybindingsManager {
  private definitions: KeybindingDefinitions;
  private userBindings: KeybindingsConfig;
  private _keys = new Map<string, KeyId[]>();
  private conflicts: KeybindingConflict[] = [];

  constructor(definitions: KeybindingDefinitions, userBindings: KeybindingsConfig = {}) {
    this.definitions = definitions;
    this.userBindings = userBindings;
    this._resolve();
  }

  private _resolve(): void {
    this._keys = new Map(
      Object.entries(this.definitions).map(([id, { defaultKeys }]) => [
        id,
        unique(this.userBindings[id] ?? defaultKeys),
      ]),
    );
    const claims = new Map<KeyId, string[]>();
    for (const [id, keys] of Object.entries(this.userBindings)) {
      if (!(id in this.definitions)) continue;
      for (const key of unique(keys)) claims.set(key, [...(claims.get(key) ?? []), id]);
    }
    this.conflicts = [...claims]
      .filter(([, ids]) => ids.length > 1)
      .map(([key, keybindings]) => ({ key, keybindings }));
  }

  matches(data: string, keybinding: string): boolean {
    return (this._keys.get(keybinding) ?? []).some((key) => matchesKey(data, key));
  }

  getKeys(keybinding: string): KeyId[] {
    return [...(this._keys.get(keybinding) ?? [])];
  }

  getDefinition(keybinding: string): KeybindingDefinition {
    return this.definitions[keybinding];
  }

  getConflicts(): KeybindingConflict[] {
    return structuredClone(this.conflicts);
  }

  setUserBindings(userBindings: KeybindingsConfig): void {
    this.userBindings = userBindings;
    this._resolve();
  }

  getUserBindings(): KeybindingsConfig {
    return { ...this.userBindings };
  }

  getResolvedBindings(): KeybindingsConfig {
    return Object.fromEntries(
      [...this._keys].map(([id, keys]) => [id, keys.length === 1 ? keys[0] : [...keys]]),
    );
  }
}

let current: KeybindingsManager | undefined;
let initial = (): KeybindingsManager => new KeybindingsManager(TUI_KEYBINDINGS);

/** Called by pi, whose actions extend those of the components. */
export function setInitialKeybindings(create: () => KeybindingsManager): void {
  initial = create;
}

export function setKeybindings(keybindings: KeybindingsManager): void {
  current = keybindings;
}

export function getKeybindings(): KeybindingsManager {
  return (current ??= initial());
}
