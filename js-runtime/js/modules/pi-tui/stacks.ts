// Vertical and horizontal stacks of components, which share the available space.
import { type Component, Container } from "pi:pi-tui/component.ts";
import { drawOver } from "pi:pi-tui/overlays.ts";
import { rows, visibleWidth } from "pi:pi-tui/text-metrics.ts";

interface Viewport {
  width: number;
  height: number;
}

/** Sizes are columns of an `HStack`, rows of a `VStack`. */
interface EntryOptions {
  basis?: number | "auto";
  grow?: number;
  shrink?: number;
  minSize?: number;
  maxSize?: number;
  visible?(viewport: Viewport): boolean;
}

interface Entry extends EntryOptions {
  component: Component;
}

interface StackOptions {
  gap?: number;
  align?: "stretch" | "start" | "center" | "end";
}

const UNLIMITED = Number.MAX_SAFE_INTEGER;

const whole = (value: unknown, otherwise: number) =>
  typeof value === "number" && Number.isFinite(value) ? Math.max(0, Math.floor(value)) : otherwise;

const least = ({ minSize }: Entry) => whole(minSize, 0);
const most = (entry: Entry) => Math.max(least(entry), whole(entry.maxSize, UNLIMITED));

/** Distributes free space among entries that grow, or missing space among those that shrink. */
function share(sizes: number[], entries: Entry[], amount: number): void {
  const grows = amount > 0;
  const room = (entry: Entry, size: number) => grows ? most(entry) - size : size - least(entry);
  const weight = ({ grow, shrink }: Entry, size: number) =>
    grows ? whole(grow, 0) : whole(shrink, 1) * Math.max(1, size);
  let left = Math.abs(amount);
  while (left > 0) {
    const weights = entries.map((entry, index) => room(entry, sizes[index]) > 0 ? weight(entry, sizes[index]) : 0);
    const all = weights.reduce((sum, one) => sum + one, 0);
    if (all === 0) return;
    weights.forEach((one, index) => {
      if (one === 0 || left === 0) return;
      const part = Math.max(1, Math.floor((left * one) / all));
      const taken = Math.min(left, part, room(entries[index], sizes[index]));
      sizes[index] += grows ? taken : -taken;
      left -= taken;
    });
  }
}

/** `natural` is the size that each entry would take; without `available` no entry has to shrink. */
function sizesOf(entries: Entry[], natural: number[], gap: number, available?: number): number[] {
  const sizes = entries.map((entry, index) =>
    Math.max(least(entry), Math.min(most(entry), whole(entry.basis, natural[index])))
  );
  if (available === undefined) return sizes;
  const content = Math.max(0, Math.floor(available) - Math.max(0, entries.length - 1) * gap);
  share(sizes, entries, content - sizes.reduce((sum, size) => sum + size, 0));
  return sizes;
}

class Stack extends Container {
  protected entries: Entry[] = [];
  protected readonly gap: number;
  protected readonly align: string;

  constructor(children: (Component | Entry)[] = [], { gap, align = "stretch" }: StackOptions = {}) {
    super();
    this.gap = whole(gap, 0);
    this.align = align;
    for (const child of children) {
      if ("render" in child) this.addChild(child);
      else this.addChild(child.component, child);
    }
  }

  override addChild(component: Component, options: EntryOptions = {}): void {
    super.addChild(component);
    this.entries.push({ ...options, component });
  }

  override removeChild(component: Component): void {
    super.removeChild(component);
    const index = this.entries.findIndex((entry) => entry.component === component);
    if (index >= 0) this.entries.splice(index, 1);
  }

  override clear(): void {
    super.clear();
    this.entries = [];
  }

  protected shown(width: number): Entry[] {
    const viewport = { width, height: UNLIMITED };
    return this.entries.filter((entry) => entry.visible?.(viewport) ?? true);
  }
}

/** Stacks entries vertically. */
export class VStack extends Stack {
  override render(width: number): string[] {
    const columns = Math.max(1, width);
    const entries = this.shown(columns);
    const rendered = entries.map(({ component }) => component.render(columns));
    const sizes = sizesOf(entries, rendered.map((lines) => lines.length), this.gap);
    return rendered.flatMap((lines, index) => [
      ...rows(index > 0 ? this.gap : 0),
      ...lines.slice(0, sizes[index]),
      ...rows(sizes[index] - lines.length),
    ]);
  }
}

/** Stacks entries horizontally. */
export class HStack extends Stack {
  override render(width: number): string[] {
    const columns = Math.max(1, width);
    const entries = this.shown(columns);
    const widest = (lines: string[]) => lines.reduce((most, line) => Math.max(most, visibleWidth(line)), 0);
    const natural = entries.map(({ component }) => widest(component.render(columns)));
    const widths = sizesOf(entries, natural, this.gap, columns);
    const rendered = entries.map(({ component }, index) => widths[index] === 0 ? [] : component.render(widths[index]));
    const height = Math.max(0, ...rendered.map((lines) => lines.length));
    const result = rows(height);
    let column = 0;
    rendered.forEach((lines, index) => {
      const free = height - lines.length;
      const top = this.align === "center" ? Math.floor(free / 2) : this.align === "end" ? free : 0;
      lines.forEach((line, row) => {
        result[top + row] = drawOver(result[top + row], line, column, widths[index], columns);
      });
      column += widths[index] + this.gap;
    });
    return result;
  }
}
