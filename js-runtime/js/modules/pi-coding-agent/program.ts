// Services of the program: text diffs, image resizing, the clipboard.
import { host, hostSync } from "pi:host.ts";
import { buffer } from "pi:node.ts";

/** The number of unchanged lines around a change. */
const CONTEXT_LINES = 4;

interface EditDiffResult {
  diff: string;
  firstChangedLine: number | undefined;
}

/** The numbered diff of an edit for display. */
export function generateDiffString(
  oldContent: string,
  newContent: string,
  contextLines = CONTEXT_LINES,
): EditDiffResult {
  const args = { old: oldContent, new: newContent, context: contextLines };
  const { diff, firstChangedLine } = hostSync<EditDiffResult>("diff.display", args);
  return { diff, firstChangedLine: firstChangedLine ?? undefined };
}

export function generateUnifiedPatch(
  path: string,
  oldContent: string,
  newContent: string,
  contextLines = CONTEXT_LINES,
): string {
  return hostSync("diff.unified", { path, old: oldContent, new: newContent, context: contextLines });
}

interface ImageResizeOptions {
  maxWidth?: number;
  maxHeight?: number;
  /** The limit for the encoded text. */
  maxBytes?: number;
  jpegQuality?: number;
}

interface ResizedImage {
  data: string;
  mimeType: string;
  originalWidth: number;
  originalHeight: number;
  width: number;
  height: number;
  wasResized: boolean;
}

interface Image {
  data: string;
  mimeType: string;
}

/** Newer versions pass the bytes and their type. */
function imageOf(image: Image | Uint8Array, mimeType: string): Image {
  if (!(image instanceof Uint8Array)) {
    throw new TypeError("resizeImage: before a MIME type there have to be the bytes of the picture, as a Uint8Array");
  }
  const { buffer: bytes, byteOffset, byteLength } = image;
  return { data: buffer().from(bytes, byteOffset, byteLength).toString("base64"), mimeType };
}

/** `null` for data that cannot be read, or made small enough. */
export async function resizeImage(
  image: Image | Uint8Array,
  mimeTypeOrOptions: string | ImageResizeOptions = {},
  newerOptions: ImageResizeOptions = {},
): Promise<ResizedImage | null> {
  const isNewer = typeof mimeTypeOrOptions === "string";
  const { data, mimeType } = isNewer ? imageOf(image, mimeTypeOrOptions) : image as Image;
  const options = isNewer ? newerOptions : mimeTypeOrOptions;
  return (await host<ResizedImage | undefined>("image.resize", { ...options, data, mimeType })) ?? null;
}

/** Returns a PNG unchanged; `null` for data that cannot be read. */
export async function convertToPng(
  data: string,
  mimeType: string,
): Promise<{ data: string; mimeType: string } | null> {
  if (mimeType === "image/png") return { data, mimeType };
  return (await host<{ data: string; mimeType: string } | undefined>("image.png", { data, mimeType })) ?? null;
}

/** Tells a model how to map the coordinates of a resized image. */
export function formatDimensionNote(image: ResizedImage): string | undefined {
  if (!image.wasResized) return undefined;
  const { originalWidth, originalHeight, width, height } = image;
  const scale = (originalWidth / width).toFixed(2);
  return `[Image: original ${originalWidth}x${originalHeight}, displayed at ${width}x${height}. ` +
    `Multiply coordinates by ${scale} to map to original image.]`;
}

export function copyToClipboard(text: string): Promise<void> {
  return host("clipboard.copy", { text });
}
