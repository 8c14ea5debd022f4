// Detects the image formats that models accept, by the first bytes of a file.
import { host } from "pi:host.ts";
import { path } from "pi:node.ts";

/** The type of a file that is a picture of a kind that models take; `null` for any other. */
export async function detectSupportedImageMimeTypeFromFile(filePath: string): Promise<string | null> {
  return (await host<string | null>("image.type", { path: path().resolve(filePath) })) ?? null;
}
