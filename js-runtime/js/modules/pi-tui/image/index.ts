// Pictures in terminals that can draw them (Kitty's and iTerm2's protocols), and a
// line of text in all others.
import {
  type CellDimensions,
  getCapabilities,
  getCellDimensions,
} from "pi:pi-tui/image/capabilities.ts";
import type { Component } from "pi:pi-tui/component.ts";
import { getImageDimensions, type ImageDimensions } from "pi:pi-tui/image/size.ts";

export interface ImageRenderOptions {
  maxWidthCells?: number;
  maxHeightCells?: number;
  preserveAspectRatio?: boolean;
  /** Kitty: replaces the picture that has this id. */
  imageId?: number;
}

const KITTY = "\x1b_G";
const ITERM2 = "\x1b]1337;File=";
/** The most that Kitty takes in one sequence. */
const KITTY_CHUNK = 4096;

/** Lines with pictures are neither measured nor wrapped. */
export function isImageLine(line: string): boolean {
  return line.includes(KITTY) || line.includes(ITERM2);
}

/** Returns a random id, so that several programs in one terminal do not collide. */
export function allocateImageId(): number {
  return 1 + Math.floor(Math.random() * 0xfffffffe);
}

export function encodeKitty(
  base64Data: string,
  options: { columns?: number; rows?: number; imageId?: number } = {},
): string {
  const { columns, rows, imageId } = options;
  // a=T: transmit and show; f=100: PNG; q=2: no answers.
  const parameters = ["a=T", "f=100", "q=2"];
  if (columns) parameters.push(`c=${columns}`);
  if (rows) parameters.push(`r=${rows}`);
  if (imageId) parameters.push(`i=${imageId}`);
  const chunks = base64Data.match(new RegExp(`[^]{1,${KITTY_CHUNK}}`, "g")) ?? [""];
  return chunks
    .map((chunk, i) => {
      const keys = i === 0 ? [...parameters] : [];
      if (chunks.length > 1) keys.push(`m=${i < chunks.length - 1 ? 1 : 0}`);
      return `${KITTY}${keys.join(",")};${chunk}\x1b\\`;
    })
    .join("");
}

export function deleteKittyImage(imageId: number): string {
  return `${KITTY}a=d,d=I,i=${imageId}\x1b\\`;
}

export function deleteAllKittyImages(): string {
  return `${KITTY}a=d,d=A\x1b\\`;
}

export function encodeITerm2(
  base64Data: string,
  options: {
    width?: number | string;
    height?: number | string;
    name?: string;
    preserveAspectRatio?: boolean;
    inline?: boolean;
  } = {},
): string {
  const { width, height, name, preserveAspectRatio, inline = true } = options;
  const parameters = [`inline=${inline ? 1 : 0}`];
  if (width !== undefined) parameters.push(`width=${width}`);
  if (height !== undefined) parameters.push(`height=${height}`);
  if (name) {
    const bytes = new TextEncoder().encode(name);
    parameters.push(`name=${btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""))}`);
  }
  if (preserveAspectRatio === false) parameters.push("preserveAspectRatio=0");
  return `${ITERM2}${parameters.join(";")}:${base64Data}\x07`;
}

export function calculateImageRows(
  imageDimensions: ImageDimensions,
  targetWidthCells: number,
  cellDimensions: CellDimensions = { widthPx: 9, heightPx: 18 },
): number {
  const scale = (targetWidthCells * cellDimensions.widthPx) / imageDimensions.widthPx;
  const rows = Math.ceil((imageDimensions.heightPx * scale) / cellDimensions.heightPx);
  // A broken file may claim to be 0 pixels wide.
  return Number.isFinite(rows) ? Math.max(1, rows) : 1;
}

export function renderImage(
  base64Data: string,
  imageDimensions: ImageDimensions,
  options: ImageRenderOptions = {},
): { sequence: string; rows: number; imageId?: number } | null {
  const { maxWidthCells: columns = 80, imageId, preserveAspectRatio = true } = options;
  const protocol = getCapabilities().images;
  if (!protocol) return null;
  const rows = calculateImageRows(imageDimensions, columns, getCellDimensions());
  if (protocol === "kitty") {
    return { sequence: encodeKitty(base64Data, { columns, rows, imageId }), rows, imageId };
  }
  const sequence = encodeITerm2(base64Data, { width: columns, height: "auto", preserveAspectRatio });
  return { sequence, rows };
}

export function imageFallback(
  mimeType: string,
  dimensions?: ImageDimensions,
  filename?: string,
): string {
  const size = dimensions ? `${dimensions.widthPx}x${dimensions.heightPx}` : undefined;
  return `[Image: ${[filename, `[${mimeType}]`, size].filter(Boolean).join(" ")}]`;
}

export interface ImageTheme {
  fallbackColor(text: string): string;
}

export interface ImageOptions {
  maxWidthCells?: number;
  maxHeightCells?: number;
  filename?: string;
  imageId?: number;
}

export class Image implements Component {
  private base64Data: string;
  private mimeType: string;
  private theme: ImageTheme;
  private options: ImageOptions;
  private dimensions: ImageDimensions;
  private imageId?: number;
  private _rendered: { width: number; lines: string[] } | undefined;

  constructor(
    base64Data: string,
    mimeType: string,
    theme: ImageTheme,
    options: ImageOptions = {},
    dimensions?: ImageDimensions,
  ) {
    this.base64Data = base64Data;
    this.mimeType = mimeType;
    this.theme = theme;
    this.options = options;
    this.dimensions = dimensions ?? getImageDimensions(base64Data, mimeType) ??
      { widthPx: 800, heightPx: 600 };
    this.imageId = options.imageId;
  }

  getImageId(): number | undefined {
    return this.imageId;
  }

  invalidate(): void {
    this._rendered = undefined;
  }

  render(width: number): string[] {
    if (this._rendered?.width !== width) this._rendered = { width, lines: this._lines(width) };
    return this._rendered.lines;
  }

  private _lines(width: number): string[] {
    const image = renderImage(this.base64Data, this.dimensions, {
      maxWidthCells: Math.min(width - 2, this.options.maxWidthCells ?? 60),
      imageId: this.imageId,
    });
    if (!image) {
      const text = imageFallback(this.mimeType, this.dimensions, this.options.filename);
      return [this.theme.fallbackColor(text)];
    }
    this.imageId = image.imageId ?? this.imageId;
    // As many lines as the image is high; the last one moves back up and draws it.
    const up = image.rows > 1 ? `\x1b[${image.rows - 1}A` : "";
    return [...Array<string>(image.rows - 1).fill(""), up + image.sequence];
  }
}
