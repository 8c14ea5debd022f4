// The interface of everything on the screen, and the plain container.

export interface Component {
  /** The lines of the component, none wider than `width` columns. */
  render(width: number): string[];
  handleInput?(data: string): void;
  /** Set by components that need key releases as well (Kitty protocol). */
  wantsKeyRelease?: boolean;
  /** Drops rendered lines, because the theme or the size has changed. */
  invalidate(): void;
}

/** A component that shows a cursor while it has the focus. */
export interface Focusable {
  focused: boolean;
}

/** Marks the position of the hardware cursor in a rendered line; occupies no column. */
export const CURSOR_MARKER = "\x1b_pi:c\x07";

export function isFocusable(component: Component | null): component is Component & Focusable {
  return component !== null && "focused" in component;
}

/** Arranges components vertically. */
export class Container implements Component {
  children: Component[] = [];

  addChild(component: Component): void {
    this.children.push(component);
  }

  removeChild(component: Component): void {
    const index = this.children.indexOf(component);
    if (index >= 0) this.children.splice(index, 1);
  }

  clear(): void {
    this.children = [];
  }

  invalidate(): void {
    // Components of extensions may lack this method.
    for (const child of this.children) child.invalidate?.();
  }

  render(width: number): string[] {
    return this.children.flatMap((child) => child.render(width));
  }
}
