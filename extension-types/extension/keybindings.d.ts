// The actions that have keys, by name: those of the program's table.
export type TuiAction =
  | "tui.editor.cursorUp" | "tui.editor.cursorDown" | "tui.editor.cursorLeft" | "tui.editor.cursorRight"
  | "tui.editor.cursorWordLeft" | "tui.editor.cursorWordRight" | "tui.editor.cursorLineStart"
  | "tui.editor.cursorLineEnd" | "tui.editor.jumpForward" | "tui.editor.jumpBackward" | "tui.editor.pageUp"
  | "tui.editor.pageDown" | "tui.editor.deleteCharBackward" | "tui.editor.deleteCharForward"
  | "tui.editor.deleteWordBackward" | "tui.editor.deleteWordForward" | "tui.editor.deleteToLineStart"
  | "tui.editor.deleteToLineEnd" | "tui.editor.yank" | "tui.editor.yankPop" | "tui.editor.undo"
  | "tui.input.newLine" | "tui.input.submit" | "tui.input.tab" | "tui.input.copy" | "tui.select.up"
  | "tui.select.down" | "tui.select.pageUp" | "tui.select.pageDown" | "tui.select.confirm"
  | "tui.select.cancel";
export type AppAction =
  | "app.interrupt" | "app.clear" | "app.exit" | "app.suspend" | "app.thinking.cycle"
  | "app.model.cycleForward" | "app.model.cycleBackward" | "app.model.select" | "app.tools.expand"
  | "app.thinking.toggle" | "app.session.toggleNamedFilter" | "app.editor.external" | "app.message.followUp"
  | "app.message.dequeue" | "app.clipboard.pasteImage" | "app.session.new" | "app.session.tree"
  | "app.session.fork" | "app.session.resume" | "app.tree.foldOrUp" | "app.tree.unfoldOrDown"
  | "app.tree.editLabel" | "app.tree.toggleLabelTimestamp" | "app.session.togglePath"
  | "app.session.toggleSort" | "app.session.rename" | "app.session.delete" | "app.session.deleteNoninvasive";
// deno-lint-ignore ban-types
export type AppKeybinding = AppAction | (string & {});

// Without this line every declaration would be exported.
export {};
