// What a stream of an extension notes in its answer of a failure that it went past; of newer
// versions. Nothing of pi looks at it.

interface ErrorInfo {
  name?: string;
  message: string;
  stack?: string;
  code?: string | number;
}

interface Diagnostic {
  type: string;
  timestamp: number;
  error?: ErrorInfo;
  details?: Record<string, unknown>;
}

/** What was thrown in words; of an error without a message, its name. */
export function formatThrownValue(value: unknown): string {
  return value instanceof Error ? value.message || value.name : String(value);
}

export function extractDiagnosticError(error: unknown): ErrorInfo {
  const message = formatThrownValue(error);
  if (!(error instanceof Error)) return { name: "ThrownValue", message };
  const { code } = error as { code?: unknown };
  const isCode = typeof code === "string" || typeof code === "number";
  return { name: error.name || undefined, message, stack: error.stack, code: isCode ? code : undefined };
}

export function createAssistantMessageDiagnostic(
  type: string,
  error: unknown,
  details?: Record<string, unknown>,
): Diagnostic {
  return { type, timestamp: Date.now(), error: extractDiagnosticError(error), details };
}

export function appendAssistantMessageDiagnostic(message: { diagnostics?: Diagnostic[] }, diagnostic: Diagnostic): void {
  message.diagnostics = [...message.diagnostics ?? [], diagnostic];
}
