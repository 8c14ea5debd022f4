// Detects the image formats that models accept, by the first bytes of a file.
import { host } from "pi:host.ts";
import { path } from "pi:node.ts";

/** The MIME type of an image file that models accept; `null` for any other file. */
export async function detectSupportedImageMimeTypeFromFile(filePath: string): Promise<string | null> {
  return (await host<string | null>("image.type", { path: path().resolve(filePath) })) ?? null;
}
