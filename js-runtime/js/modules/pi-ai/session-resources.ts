// Resources of streams of extensions for a session (connections, for example) and how they are
// released; an API of newer versions. The program has no such resources.

type Cleanup = (sessionId?: string) => void;

const cleanups = new Set<Cleanup>();

/** Returns a function that unregisters it. */
export function registerSessionResourceCleanup(cleanup: Cleanup): () => void {
  cleanups.add(cleanup);
  return () => {
    cleanups.delete(cleanup);
  };
}

/** Calls all registered functions, even if one throws. */
export function cleanupSessionResources(sessionId?: string): void {
  const errors: unknown[] = [];
  for (const cleanup of cleanups) {
    try {
      cleanup(sessionId);
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length > 0) throw new AggregateError(errors, "Cleanup functions of the session have failed: see `errors`");
}
