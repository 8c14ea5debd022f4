// Compares the output of the TUI to a terminal, byte by byte.
class FakeTerminal {
  written = [];
  columns;
  rows;
  constructor(columns, rows) {
    this.columns = columns;
    this.rows = rows;
  }
  start(onInput, onResize) {
    this.input = onInput;
    this.resize = onResize;
  }
  stop() {
    this.written.push("[stop]");
  }
  async drainInput() {}
  write(data) {
    this.written.push(data);
  }
  get kittyProtocolActive() {
    return false;
  }
  moveBy() {}
  hideCursor() {
    this.written.push("[hide]");
  }
  showCursor() {
    this.written.push("[show]");
  }
  clearLine() {}
  clearFromCursor() {}
  clearScreen() {}
  setTitle() {}
}

const turn = () => new Promise((resolve) => setTimeout(resolve, 1));

export function screenCases({ tui }) {
  const { CURSOR_MARKER, Text, TUI } = tui;
  const cases = {};
  /** Shows each list of lines in turn. */
  const shows = (frames, rows = 10) => async (width) => {
    const terminal = new FakeTerminal(width, rows);
    const screen = new TUI(terminal, true);
    let lines = [];
    let drawn = 0;
    screen.addChild({
      render() {
        drawn += 1;
        return [...lines];
      },
      invalidate() {},
    });
    screen.start();
    for (const next of frames) {
      if (typeof next === "function") next(screen, terminal);
      else lines = next;
      const before = drawn;
      screen.requestRender();
      while (drawn === before) await turn();
    }
    screen.stop();
    return [...terminal.written, String(screen.fullRedraws)];
  };
  const many = (count, from = 0) => Array.from({ length: count }, (_, i) => `line ${from + i}`);
  cases["TUI first frame"] = shows([["a", "b"]]);
  cases["TUI changed line"] = shows([["a", "b", "c"], ["a", "x", "c"]]);
  cases["TUI appended"] = shows([["a"], ["a", "b"], ["a", "b", "c", ""]]);
  cases["TUI shrunk"] = shows([many(5), many(3), many(1)]);
  cases["TUI shrunk and changed"] = shows([many(5), ["x", "line 1"]]);
  cases["TUI scrolled"] = shows([many(8), many(14), many(20)]);
  cases["TUI changed above"] = shows([many(20), ["x", ...many(19, 1)]]);
  cases["TUI cursor"] = shows([["ab", `c${CURSOR_MARKER}d`], [`a${CURSOR_MARKER}b`, "cd"]]);
  cases["TUI resized"] = shows([many(4), (_, terminal) => { terminal.rows = 6; }, many(5)]);
  cases["TUI forced"] = shows([many(4), (screen) => screen.requestRender(true)]);
  cases["TUI clear on shrink"] = shows([(screen) => screen.setClearOnShrink(true), many(4), many(2)]);

  const anchors = ["center", "top-left", "top-right", "bottom-left", "bottom-right", "top-center", "bottom-center", "left-center", "right-center"];
  for (const anchor of anchors) {
    cases[`TUI overlay ${anchor}`] = shows([many(4), (screen) => screen.showOverlay(new Text("over\nlay", 0, 0), { anchor, width: 10, margin: 1 })]);
  }
  const overlay = (options) => shows([many(12).map((line) => `\x1b[31m${line.repeat(12)}\x1b[0m`.slice(0, 28)), (screen) => screen.showOverlay(new Text("some text over it", 1, 0), options)]);
  cases["TUI overlay in percent"] = overlay({ width: "50%", row: "25%", col: "100%" });
  cases["TUI overlay with offset"] = overlay({ width: 12, offsetX: 3, offsetY: -2, anchor: "bottom-right" });
  cases["TUI overlay limited"] = overlay({ width: 6, maxHeight: 2, minWidth: 8 });
  cases["TUI overlay absolute"] = overlay({ width: 10, row: 2, col: 5 });
  cases["TUI focus"] = async () => {
    const terminal = new FakeTerminal(40, 10);
    const screen = new TUI(terminal);
    const events = [];
    const component = (name) => ({
      focused: false,
      render: () => [name],
      invalidate() {},
      handleInput: (data) => events.push(`${name} ${data}`),
    });
    const [base, first, second] = ["base", "first", "second"].map(component);
    screen.addChild(base);
    screen.setFocus(base);
    screen.start();
    const press = (data) => terminal.input(data);
    press("1");
    const one = screen.showOverlay(first);
    press("2");
    const two = screen.showOverlay(second, { nonCapturing: true });
    press("3");
    two.focus();
    press("4");
    two.unfocus();
    press("5");
    one.setHidden(true);
    press("6");
    one.setHidden(false);
    press("7");
    one.hide();
    press("8");
    screen.hideOverlay();
    press("9");
    const off = screen.addInputListener((data) => (data === "x" ? { consume: true } : { data: data.toUpperCase() }));
    press("x");
    press("y");
    off();
    press("z");
    press("\x1b[97;1:3u");
    screen.stop();
    return [...events, String(screen.hasOverlay()), String([base, first, second].map(({ focused }) => focused))];
  };
  cases["StdinBuffer"] = async () => {
    const { StdinBuffer } = tui;
    const buffer = new StdinBuffer({ timeout: 5 });
    const events = [];
    buffer.on("data", (data) => events.push(`data ${JSON.stringify(data)}`));
    buffer.on("paste", (data) => events.push(`paste ${JSON.stringify(data)}`));
    const chunks = ["abc", "\x1b[A\x1b[1;5C", "\x1b", "[<35;2", "0;5m", "x\x1b[200~pa", "ste\x1b[201~y", "\x1bOP", "\x1b\x1b", "\x1b]11;rgb:1/2/3\x07z", "\x1bP>|term\x1b\\", "\x1b_Gi=1;OK\x1b\\", "\x1b[M !!", "\u65e5", ""];
    for (const chunk of chunks) buffer.process(chunk);
    buffer.process("\x1b");
    while (buffer.getBuffer() !== "") await turn();
    events.push(JSON.stringify(buffer.getBuffer()));
    buffer.process("\x1b[1;");
    events.push(JSON.stringify(buffer.flush()));
    return events;
  };
  return cases;
}
