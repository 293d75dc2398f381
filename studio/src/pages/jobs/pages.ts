// The rows of the jobs table: pages of a search, loaded when they come into sight and again while they are.
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { Unreachable } from "../../api/call.ts";
import type { Run } from "../../api/shapes.ts";
import { setAway } from "../../parts/data.ts";
import { type Found, search } from "../../parts/runs.ts";
import type { Scope } from "../../parts/scope.ts";

const PAGE = 100;
const EVERY_MS = 3000;

export interface Asked {
  filter: string;
  order: string;
  experiment: string;
}

export interface Table {
  /** Rows that there are, as far as that is known. */
  count: number;
  /** How many that is in words, once it is known. */
  said: string;
  ready: boolean;
  /** The newest word of a run that is among the loaded ones. */
  find: (id: string) => Run | undefined;
  /** Every param, metric and tag seen so far; another list only when there is another. */
  keys: string[];
  error: Error | undefined;
  row: (index: number) => Run | undefined;
  sight: (first: number, last: number) => void;
  again: () => void;
}

interface Held {
  pages: ReadonlyMap<number, Found>;
  keys: string[];
  total: Found["total"];
  ready: boolean;
  error?: Error;
}

const NOTHING: Held = { pages: new Map(), keys: [], total: undefined, ready: false };

export function useRuns(names: Scope["names"], asked: Asked): Table {
  const [held, setHeld] = useState(NOTHING);
  const inSight = useRef<[number, number]>([0, 0]);
  const current = useRef(held);
  current.current = held;
  const key = JSON.stringify([names, asked]);
  const load = useCallback(
    async (page: number, signal: AbortSignal) => {
      const wanted = {
        filter: asked.filter,
        limit: PAGE,
        from: page * PAGE,
        token: current.current.pages.get(page - 1)?.next,
        counted: page === inSight.current[0],
        ...(asked.order ? { order: [asked.order] } : {}),
        ...(asked.experiment ? { experiments: [asked.experiment] } : {}),
      };
      const found = await search(names, wanted, signal);
      if (!signal.aborted) setHeld((old) => merged(old, page, found));
    },
    [key],
  );
  const [turn, setTurn] = useState(0);
  const look = useRef<() => void>(() => undefined);
  const shown = useRef(load);
  useEffect(() => {
    const stop = new AbortController();
    const busy = new Set<number>();
    const fetchPages = (which: (page: number) => boolean) => {
      for (let page = inSight.current[0]; page <= inSight.current[1]; page++) {
        if (busy.has(page) || !which(page)) continue;
        busy.add(page);
        load(page, stop.signal)
          .then(() => setAway(false))
          .catch((error: unknown) => {
            if (stop.signal.aborted) return;
            // What is shown stays while the server is away; it is asked again before long.
            if (error instanceof Unreachable) setAway(true);
            else setHeld((old) => ({ ...old, ready: true, error: error instanceof Error ? error : new Error(String(error)) }));
          })
          .finally(() => busy.delete(page));
      }
    };
    if (shown.current !== load) {
      shown.current = load;
      inSight.current = [0, 0];
      // Nothing of another question is shown. What was seen before is offered on: a filter that is wrong shows no rows to learn from.
      current.current = NOTHING;
      setHeld(({ keys }) => ({ ...NOTHING, keys }));
    }
    fetchPages(() => true);
    look.current = () => fetchPages((page) => !current.current.pages.has(page));
    const timer = window.setInterval(() => !document.hidden && fetchPages(() => true), EVERY_MS);
    return () => {
      stop.abort();
      window.clearInterval(timer);
    };
  }, [load, turn]);
  // What is in sight and was put aside is asked for at once.
  useEffect(() => {
    if (held.error === undefined) look.current();
  }, [held]);
  const sight = useCallback((first: number, last: number) => {
    inSight.current = [Math.floor(first / PAGE), Math.max(0, Math.floor(last / PAGE))];
    look.current();
  }, []);
  return useMemo(() => {
    const filled = [...held.pages].filter(([, { runs }]) => runs.length > 0).map(([page]) => page);
    const last = Math.max(-1, ...filled);
    const end = held.pages.get(last);
    const known = end === undefined ? 0 : last * PAGE + end.runs.length;
    const { runs = 0, at_least = false } = held.total ?? {};
    return {
      // Of rows that nobody has counted there are a few more than are known: to see them is to ask for them.
      count: end?.more ? Math.max(known + 20, runs) : known,
      said: held.total === undefined ? "" : `${runs.toLocaleString("en")}${at_least ? "+" : ""} ${runs === 1 ? "job" : "jobs"}`,
      ready: held.ready,
      find: (id: string) => [...held.pages.values()].flatMap((page) => page.runs).find(({ info }) => info.run_id === id),
      keys: held.keys,
      error: held.error,
      row: (index: number) => held.pages.get(Math.floor(index / PAGE))?.runs[index % PAGE],
      sight,
      again: () => setTurn((turn) => turn + 1),
    };
  }, [held, sight]);
}

function merged(old: Held, page: number, found: Found): Held {
  const before = old.pages.get(0)?.runs[0]?.info.run_id;
  // Something new at the top moves everything below; what is not in sight is asked for again when it is.
  const moved = page === 0 && before !== undefined && before !== found.runs[0]?.info.run_id;
  const pages = new Map(moved ? [] : old.pages);
  pages.set(page, found);
  for (const other of [...pages.keys()]) if (!found.more && other > page) pages.delete(other);
  return { pages, keys: withKeys(old.keys, found.runs), total: found.total ?? old.total, ready: true };
}

/** The names of params, metrics and tags as the filter says them, with those of some more runs. */
function withKeys(known: string[], runs: Run[]): string[] {
  const all = new Set(known);
  for (const { data } of runs) {
    for (const { key } of data.metrics ?? []) all.add(`metrics.${key}`);
    for (const { key } of data.params ?? []) all.add(`params.${key}`);
    for (const { key } of data.tags ?? []) if (!key.startsWith("mlflow.")) all.add(`tags.${key}`);
  }
  return all.size === known.length ? known : [...all].sort();
}
