// `pi.events`: the bus on which extensions of one session exchange events.
import { describe } from "ext:js_runtime/bridge/host.ts";
import { checkStale } from "ext:js_runtime/bridge/stale.ts";
import { attributed } from "ext:js_runtime/bridge/registry.ts";
import { aFunction } from "ext:js_runtime/bridge/validate/arguments.ts";

type Listener = (data: unknown) => unknown;

export interface EventBus {
  emit(channel: string, data: unknown): void;
  on(channel: string, listener: Listener): () => void;
}

/**
 * Listeners that emit events for each other nest. At the end of the stack there is no room left to
 * report that.
 */
const MAX_NESTED_EMITS = 200;

export function createEventBus(): EventBus & { clear(): void } {
  const channels = new Map<string, Map<Listener, Listener>>();
  let depth = 0;
  const failed = (channel: string, error: unknown) =>
    console.error(`Event handler error (${channel}):`, describe(error));
  return {
    emit(channel, data) {
      if (depth >= MAX_NESTED_EMITS) {
        throw new RangeError(`The listeners of "${channel}" emit in a circle`);
      }
      depth += 1;
      try {
        // Iterates over a copy, because a listener may unsubscribe itself or add others.
        for (const listener of [...(channels.get(channel)?.values() ?? [])]) {
          try {
            const result = listener(data);
            if (result instanceof Promise) result.catch((error) => failed(channel, error));
          } catch (error) {
            failed(channel, error);
          }
        }
      } finally {
        depth -= 1;
      }
    },
    on(channel, listener) {
      aFunction(`pi.events.on: the listener of "${channel}"`, listener);
      let listeners = channels.get(channel);
      if (!listeners) channels.set(channel, (listeners = new Map()));
      // A listener that is added twice is called once.
      if (!listeners.has(listener)) listeners.set(listener, attributed("pi.events", listener));
      return () => void listeners.delete(listener);
    },
    clear() {
      channels.clear();
    },
  };
}

/** The bus of this generation: after a replacement it has no other listeners. */
function ownBus(): EventBus {
  const bus = createEventBus();
  return {
    emit(channel, data) {
      checkStale();
      bus.emit(channel, data);
    },
    on(channel, listener) {
      checkStale();
      return bus.on(channel, listener);
    },
  };
}

export const events: EventBus = ownBus();
