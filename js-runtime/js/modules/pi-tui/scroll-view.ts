// A window into a component that is higher than its space. The layout reports both heights
// (`updateLayout`) and draws the rows from `scrollTop` on.
import { type Component, Container } from "pi:pi-tui/component.ts";

type Scrollbar = "hidden" | "auto" | "always";
type Style = (text: string) => string;

interface Options {
  axis?: "vertical";
  /** `end`: stays at the end when content is added, until the user scrolls away from it. */
  follow?: "none" | "end";
  primary?: boolean;
  overscroll?: "chain" | "contain";
  scrollbar?: Scrollbar;
  scrollbarTrackStyle?: Style;
  scrollbarThumbStyle?: Style;
}

const colored = (code: number): Style => (text) => `\x1b[${code}m${text}\x1b[39m`;

export class ScrollView extends Container {
  readonly followEnd: boolean;
  readonly primary: boolean;
  readonly overscroll: "chain" | "contain";
  readonly scrollbarTrackStyle: Style;
  readonly scrollbarThumbStyle: Style;
  #bar: Scrollbar;
  #barActive = false;
  #top = 0;
  #content = 0;
  #viewport = 0;
  #following: boolean;
  /** Whether the user went to the end without following it. */
  #leaves = false;
  #changed: (() => void) | undefined;

  constructor(component: Component, options: Options = {}) {
    super();
    if (options.axis !== undefined && options.axis !== "vertical") {
      throw new Error(`Unsupported ScrollView axis: ${options.axis}`);
    }
    this.children.push(component);
    this.followEnd = this.#following = options.follow === "end";
    this.primary = options.primary ?? false;
    this.overscroll = options.overscroll ?? "chain";
    this.#bar = options.scrollbar ?? "hidden";
    this.scrollbarTrackStyle = options.scrollbarTrackStyle ?? colored(90);
    this.scrollbarThumbStyle = options.scrollbarThumbStyle ?? colored(37);
  }

  get scrollTop(): number {
    return this.#top;
  }

  get isFollowingEnd(): boolean {
    return this.#following;
  }

  get viewportHeight(): number {
    return this.#viewport;
  }

  get scrollbar(): Scrollbar {
    return this.#bar;
  }

  get isScrollbarActive(): boolean {
    return this.#barActive;
  }

  get isScrollbarVisible(): boolean {
    if (this.#bar === "always") return this.#viewport > 0;
    return this.#bar === "auto" && this.#barActive && this.#last > 0;
  }

  /** The maximum of `scrollTop`. */
  get #last(): number {
    return Math.max(0, this.#content - this.#viewport);
  }

  setScrollbar(scrollbar: Scrollbar): void {
    if (scrollbar === this.#bar) return;
    this.#bar = scrollbar;
    this.#changed?.();
  }

  setScrollbarActive(active: boolean): void {
    if (active === this.#barActive) return;
    this.#barActive = active;
    this.#changed?.();
  }

  /** The width without the column of the scroll bar. */
  getContentWidth(width: number): number {
    return this.#bar === "always" && width > 1 ? width - 1 : width;
  }

  #go(top: number, following: boolean, leaves = false): void {
    const isNew = top !== this.#top || following !== this.#following || leaves !== this.#leaves;
    this.#top = top;
    this.#following = following;
    this.#leaves = leaves;
    if (isNew) this.#changed?.();
  }

  scrollTo(scrollTop: number, options: { disableFollow?: boolean } = {}): void {
    const wanted = Number.isFinite(scrollTop) ? Math.trunc(scrollTop) : this.#top;
    const top = Math.max(0, Math.min(this.#last, wanted));
    const isEnd = top === this.#last;
    const leaves = isEnd && options.disableFollow === true;
    this.#go(top, this.followEnd && isEnd && !leaves, leaves);
  }

  /** Returns the number of lines that could not be scrolled. */
  scrollBy(lines: number): number {
    const wanted = Number.isFinite(lines) ? Math.trunc(lines) : 0;
    if (wanted === 0) return 0;
    const from = this.#following ? this.#last : this.#top;
    const top = Math.max(0, Math.min(this.#last, from + wanted));
    this.#go(top, this.followEnd && top === this.#last);
    return wanted - (top - from);
  }

  scrollToStart(): void {
    this.#go(0, this.followEnd && this.#last === 0);
  }

  scrollToEnd(): void {
    this.#go(this.#last, this.followEnd);
  }

  updateLayout(contentHeight: number, viewportHeight: number, requestRender?: () => void): void {
    this.#content = Math.max(0, Math.floor(contentHeight));
    this.#viewport = Math.max(0, Math.floor(viewportHeight));
    this.#changed = requestRender;
    this.#top = this.#following ? this.#last : Math.min(this.#top, this.#last);
    if (this.#top < this.#last) this.#leaves = false;
    else if (this.followEnd && !this.#leaves) this.#following = true;
  }

  override addChild(): never {
    throw new Error("ScrollView has exactly one child");
  }

  override removeChild(): never {
    throw new Error("ScrollView child cannot be removed");
  }

  override clear(): never {
    throw new Error("ScrollView child cannot be cleared");
  }

  /** Draws the whole content. */
  override render(width: number): string[] {
    const content = this.getContentWidth(width);
    const lines = this.children[0].render(content);
    return content === width ? lines : lines.map((line) => `${line} `);
  }
}
