// The user's messages, at one of which a branch may begin.
import { type Component, Container } from "pi:pi-tui/component.ts";
import { getKeybindings } from "pi:pi-tui/keys/keybindings.ts";
import { windowStart } from "pi:pi-tui/select-list.ts";
import { Spacer, Text } from "pi:pi-tui/text.ts";
import { truncateToWidth } from "pi:pi-tui/text-metrics.ts";
import { DynamicBorder } from "pi:pi-coding-agent/components/frame.ts";
import { theme } from "pi:pi-coding-agent/theme/index.ts";

interface UserMessage {
  id: string;
  text: string;
}

const MAX_VISIBLE = 10;

class UserMessageList implements Component {
  onSelect?: (id: string) => void;
  onCancel?: () => void;
  private messages: UserMessage[];
  /** The newest first. */
  private selected: number;

  constructor(messages: UserMessage[]) {
    this.messages = messages;
    this.selected = Math.max(0, messages.length - 1);
  }

  invalidate(): void {
    // No state is kept between renderings.
  }

  render(width: number): string[] {
    const total = this.messages.length;
    const muted = (text: string) => theme.fg("muted", text);
    if (total === 0) return [muted("  No user messages found")];
    const start = windowStart(this.selected, MAX_VISIBLE, total);
    const shown = this.messages.slice(start, start + MAX_VISIBLE);
    const lines = shown.flatMap(({ text }, i) => {
      const line = truncateToWidth(text.replaceAll("\n", " ").trim(), width - 2);
      const at = start + i;
      const marked = at === this.selected
        ? theme.fg("accent", "\u203a ") + theme.bold(line)
        : `  ${line}`;
      return [marked, muted(`  Message ${at + 1} of ${total}`), ""];
    });
    if (shown.length < total) lines.push(muted(`  (${this.selected + 1}/${total})`));
    return lines;
  }

  handleInput(data: string): void {
    const keys = getKeybindings();
    if (keys.matches(data, "tui.select.up")) this.move(-1);
    else if (keys.matches(data, "tui.select.down")) this.move(1);
    else if (keys.matches(data, "tui.select.confirm")) {
      const message = this.messages[this.selected];
      if (message) this.onSelect?.(message.id);
    } else if (keys.matches(data, "tui.select.cancel")) this.onCancel?.();
  }

  private move(by: number): void {
    const total = this.messages.length;
    if (total > 0) this.selected = (this.selected + by + total) % total;
  }
}

export class UserMessageSelectorComponent extends Container {
  private _list: UserMessageList;

  constructor(messages: UserMessage[], onSelect: (id: string) => void, onCancel: () => void) {
    super();
    this._list = new UserMessageList(messages);
    this._list.onSelect = onSelect;
    this._list.onCancel = onCancel;
    const explanation = "Select a message to create a new branch from that point";
    this.children = [
      new Spacer(1),
      new Text(theme.bold("Branch from Message"), 1, 0),
      new Text(theme.fg("muted", explanation), 1, 0),
      new Spacer(1),
      new DynamicBorder(),
      new Spacer(1),
      this._list,
      new Spacer(1),
      new DynamicBorder(),
    ];
    // The message stays long enough to be read.
    if (messages.length === 0) setTimeout(onCancel, 100);
  }

  getMessageList(): UserMessageList {
    return this._list;
  }

  handleInput(data: string): void {
    this._list.handleInput(data);
  }
}
