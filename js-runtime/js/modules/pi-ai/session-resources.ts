// What streams of extensions keep for a session (connections, say), and how it is let go; of
// newer versions. The program keeps nothing of the kind.

type Cleanup = (sessionId?: string) => void;

const cleanups = new Set<Cleanup>();

/** Gives what takes it back. */
export function registerSessionResourceCleanup(cleanup: Cleanup): () => void {
  cleanups.add(cleanup);
  return () => {
    cleanups.delete(cleanup);
  };
}

/** All are called, also when one throws. */
export function cleanupSessionResources(sessionId?: string): void {
  const errors: unknown[] = [];
  for (const cleanup of cleanups) {
    try {
      cleanup(sessionId);
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length > 0) throw new AggregateError(errors, "What is kept for the session could not all be let go");
}
