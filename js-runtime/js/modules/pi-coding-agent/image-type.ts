// Which pictures models can be shown, by how their files begin.
import { host } from "pi:host.ts";
import { path } from "pi:node.ts";

/** The type of a file that is a picture of a kind that models take; `null` for any other. */
export async function detectSupportedImageMimeTypeFromFile(filePath: string): Promise<string | null> {
  return (await host<string | null>("image.type", { path: path().resolve(filePath) })) ?? null;
}
