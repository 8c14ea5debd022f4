// Converts output of programs to text that can be shown: without escape sequences and without
// characters on which terminals act.

const ESCAPE_SEQUENCES =
  // Matches OSC and other strings with their end, CSI, and short sequences.
  /\x1b(?:[\]P_^X][^]*?(?:\x07|\x1b\\)|\[[0-?]*[ -/]*[@-~]|[ -/]*[0-~])|\x9b[0-?]*[ -/]*[@-~]/g;

export function plainText(text: string): string {
  return text.includes("\x1b") || text.includes("\x9b") ? text.replace(ESCAPE_SEQUENCES, "") : text;
}

/** Removes control characters and others that have no place in a text. */
export function printable(text: string): string {
  return plainText(text).replace(/[\x00-\x08\x0b\x0c\x0e-\x1f\ufff9-\ufffb]/g, "");
}
