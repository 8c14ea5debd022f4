// Diagnostics that a stream of an extension attaches to a response about a failure from which it
// recovered; an API of newer versions. pi does not read them.

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

/** The message of a thrown value; for an error without one, its name. */
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
