// Cuts a text to its last rows, counted as displayed.
import { Text } from "pi:pi-tui/text.ts";

export interface VisualTruncateResult {
  visualLines: string[];
  /** The number of rows above them. */
  skippedCount: number;
}

export function truncateToVisualLines(
  text: string,
  maxVisualLines: number,
  width: number,
  paddingX = 0,
): VisualTruncateResult {
  const lines = text ? new Text(text, paddingX, 0).render(width) : [];
  const skippedCount = Math.max(0, lines.length - maxVisualLines);
  return { visualLines: lines.slice(skippedCount), skippedCount };
}
