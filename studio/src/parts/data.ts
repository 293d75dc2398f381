// Data of a view: loaded when its key changes, and again every so often while the page is in sight. What was shown stays
// while the server is away, and it is asked again as soon as it is back.
import { useCallback, useEffect, useRef, useState, useSyncExternalStore } from "react";
import { passes, Unreachable } from "../api/call.ts";

export interface Loaded<T> {
  data: T | undefined;
  error: Error | undefined;
  again: () => void;
}

const RETRY_MS = 2000;
/** While a server is away its callers may be kept waiting instead of refused. */
const SILENT_MS = 4000;
let away = false;
const listeners = new Set<() => void>();

/** Tells whether the server could be reached just now. */
export function setAway(now: boolean): void {
  if (away === now) return;
  away = now;
  for (const told of listeners) told();
}

/** Whether the server could not be reached when it was last asked, or has not answered for a while. */
export function useAway(): boolean {
  return useSyncExternalStore(
    (told) => {
      listeners.add(told);
      return () => listeners.delete(told);
    },
    () => away,
  );
}

function watchSight(told: () => void): () => void {
  document.addEventListener("visibilitychange", told);
  return () => document.removeEventListener("visibilitychange", told);
}

/** Whether the page is in sight. A browser keeps few connections to a server, so a page that nobody sees holds none. */
export function useInSight(): boolean {
  return useSyncExternalStore(watchSight, () => !document.hidden);
}

export function useData<T>(key: string, load: (signal: AbortSignal) => Promise<T>, every = 0): Loaded<T> {
  const [state, setState] = useState<{ key: string; data?: T; error?: Error }>({ key });
  const [turn, setTurn] = useState(0);
  const loader = useRef(load);
  loader.current = load;
  useEffect(() => {
    const stop = new AbortController();
    let [timer, silent] = [0, 0];
    const next = (wait: number) => {
      timer = window.setTimeout(run, wait);
    };
    const run = async () => {
      if (document.hidden) return next(1000);
      silent = window.setTimeout(() => setAway(true), SILENT_MS);
      try {
        const data = await loader.current(stop.signal);
        if (stop.signal.aborted) return;
        setAway(false);
        setState({ key, data });
        if (every > 0) next(every);
      } catch (thrown) {
        if (stop.signal.aborted) return;
        const error = thrown instanceof Error ? thrown : new Error(String(thrown));
        const gone = error instanceof Unreachable;
        setAway(gone);
        setState((old) => (old.key === key && old.data !== undefined ? { ...old, error } : { key, error }));
        if (passes(error) || every > 0) next(Math.max(every, RETRY_MS));
      } finally {
        window.clearTimeout(silent);
      }
    };
    void run();
    return () => {
      stop.abort();
      window.clearTimeout(timer);
      window.clearTimeout(silent);
    };
  }, [key, every, turn]);
  const again = useCallback(() => setTurn((turn) => turn + 1), []);
  const current = state.key === key;
  return { data: current ? state.data : undefined, error: current ? state.error : undefined, again };
}
