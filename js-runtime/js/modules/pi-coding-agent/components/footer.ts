// The footer: folder, usage, model, and statuses of extensions.
import type { Component } from "pi:pi-tui/component.ts";
import { truncateToWidth, visibleWidth } from "pi:pi-tui/text-metrics.ts";
import { env } from "pi:node.ts";
import { theme } from "pi:pi-coding-agent/theme/index.ts";

interface Usage {
  input: number;
  output: number;
  cacheRead: number;
  cacheWrite: number;
  cost: { total: number };
}

interface Model {
  id: string;
  provider: string;
  reasoning?: boolean;
  contextWindow?: number;
}

/** The members of a session that the footer reads. */
export interface FooterSession {
  state: { model?: Model; thinkingLevel?: string };
  sessionManager: {
    getEntries(): { type: string; message?: { role: string; usage?: Usage } }[];
    getCwd(): string;
    getSessionName(): string | undefined;
  };
  modelRegistry: { isUsingOAuth(model: Model): boolean };
  getContextUsage(): { contextWindow?: number; percent: number | null } | undefined;
}

export interface FooterData {
  getGitBranch(): string | null | undefined;
  getExtensionStatuses(): ReadonlyMap<string, string>;
  getAvailableProviderCount(): number;
}

function tokens(count: number): string {
  if (count < 1000) return String(count);
  const [value, unit] = count < 1_000_000 ? [count / 1000, "k"] : [count / 1_000_000, "M"];
  return `${value < 10 ? value.toFixed(1) : Math.round(value)}${unit}`;
}

export class FooterComponent implements Component {
  private session: FooterSession;
  private footerData: FooterData;
  private _autoCompact = true;

  constructor(session: FooterSession, footerData: FooterData) {
    this.session = session;
    this.footerData = footerData;
  }

  setSession(session: FooterSession): void {
    this.session = session;
  }

  setAutoCompactEnabled(enabled: boolean): void {
    this._autoCompact = enabled;
  }

  invalidate(): void {
    // No state is kept between renderings.
  }

  dispose(): void {
    // The caller that supplied the data watches the branch.
  }

  render(width: number): string[] {
    const dots = theme.fg("dim", "...");
    const lines = [
      truncateToWidth(theme.fg("dim", this._location()), width, dots),
      this._numbers(width),
    ];
    const statuses = [...this.footerData.getExtensionStatuses()]
      .sort(([a], [b]) => a.localeCompare(b))
      .map(([, text]) => text.replace(/[\r\n\t]/g, " ").replace(/ +/g, " ").trim());
    if (statuses.length > 0) lines.push(truncateToWidth(statuses.join(" "), width, dots));
    return lines;
  }

  /** "~/folder (branch) - session" */
  private _location(): string {
    const { sessionManager } = this.session;
    const home = env("HOME") || env("USERPROFILE");
    let place = sessionManager.getCwd();
    if (home && place.startsWith(home)) place = `~${place.slice(home.length)}`;
    const branch = this.footerData.getGitBranch();
    if (branch) place += ` (${branch})`;
    const name = sessionManager.getSessionName();
    return name ? `${place} \u2022 ${name}` : place;
  }

  private _numbers(width: number): string {
    let left = [...this._used(), this._context()].join(" ");
    if (visibleWidth(left) > width) left = truncateToWidth(left, width);
    const room = width - visibleWidth(left) - 2;
    let right = this._model(room);
    if (visibleWidth(right) > room) right = truncateToWidth(right, Math.max(0, room), "");
    const gap = right || room >= 0 ? width - visibleWidth(left) - visibleWidth(right) : 0;
    const rest = room > 0 ? " ".repeat(Math.max(0, gap)) + right : "";
    // The context usage may end a colour, so each side is dimmed on its own.
    return theme.fg("dim", left) + theme.fg("dim", rest);
  }

  /** Sums the usage of all entries in the file, including other branches. */
  private _used(): string[] {
    const total = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, cost: 0 };
    for (const { type, message } of this.session.sessionManager.getEntries()) {
      const usage = message?.usage;
      if (type !== "message" || message?.role !== "assistant" || !usage) continue;
      total.input += usage.input;
      total.output += usage.output;
      total.cacheRead += usage.cacheRead;
      total.cacheWrite += usage.cacheWrite;
      total.cost += usage.cost.total;
    }
    const { model } = this.session.state;
    const subscribed = model ? this.session.modelRegistry.isUsingOAuth(model) : false;
    const parts = [
      total.input && `\u2191${tokens(total.input)}`,
      total.output && `\u2193${tokens(total.output)}`,
      total.cacheRead && `R${tokens(total.cacheRead)}`,
      total.cacheWrite && `W${tokens(total.cacheWrite)}`,
      (total.cost || subscribed) && `$${total.cost.toFixed(3)}${subscribed ? " (sub)" : ""}`,
    ];
    return parts.filter((part) => typeof part === "string");
  }

  private _context(): string {
    const usage = this.session.getContextUsage();
    const window = usage?.contextWindow ?? this.session.state.model?.contextWindow ?? 0;
    const percent = usage?.percent ?? 0;
    // After a compaction the usage is unknown until the next response.
    const share = usage?.percent === null ? "?" : `${percent.toFixed(1)}%`;
    const text = `${share}/${tokens(window)}${this._autoCompact ? " (auto)" : ""}`;
    if (percent > 90) return theme.fg("error", text);
    return percent > 70 ? theme.fg("warning", text) : text;
  }

  /** Includes the provider if there are several and `room` columns suffice. */
  private _model(room: number): string {
    const { model, thinkingLevel } = this.session.state;
    let name = model?.id ?? "no-model";
    if (model?.reasoning) {
      const level = thinkingLevel || "off";
      name += ` \u2022 ${level === "off" ? "thinking off" : level}`;
    }
    if (!model || this.footerData.getAvailableProviderCount() <= 1) return name;
    const full = `(${model.provider}) ${name}`;
    return visibleWidth(full) <= room ? full : name;
  }
}
