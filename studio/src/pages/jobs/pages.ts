// The rows of the jobs table: pages of a search, loaded when they come into sight and again while they are.
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { Unreachable } from "../../api/call.ts";
import type { Run } from "../../api/shapes.ts";
import { setAway } from "../../parts/data.ts";
import { search } from "../../parts/runs.ts";
import type { Scope } from "../../parts/scope.ts";

const PAGE = 100;
const EVERY_MS = 3000;

export interface Asked {
  filter: string;
  order: string;
  experiment: string;
}

export interface Table {
  count: number;
  more: boolean;
  ready: boolean;
  /** How many rows are here, and all of them. */
  known: number;
  loaded: () => Run[];
  /** Every param, metric and tag seen so far; another list only when there is another. */
  keys: string[];
  error: Error | undefined;
  row: (index: number) => Run | undefined;
  sight: (first: number, last: number) => void;
  again: () => void;
}

interface Held {
  pages: ReadonlyMap<number, Run[]>;
  keys: string[];
  more: boolean;
  ready: boolean;
  error?: Error;
}

const NOTHING: Held = { pages: new Map(), keys: [], more: false, ready: false };

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
        ...(asked.order ? { order: [asked.order] } : {}),
        ...(asked.experiment ? { experiments: [asked.experiment] } : {}),
      };
      const { runs, more } = await search(names, wanted, signal);
      if (!signal.aborted) setHeld((old) => merged(old, page, runs, more));
    },
    [key],
  );
  const [turn, setTurn] = useState(0);
  const look = useRef<() => void>(() => undefined);
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
    inSight.current = [0, 0];
    // What was seen before is offered on: a filter that is wrong shows no rows to learn from.
    if (turn === 0) setHeld(({ keys }) => ({ ...NOTHING, keys }));
    fetchPages(() => true);
    look.current = () => fetchPages((page) => !current.current.pages.has(page));
    const timer = window.setInterval(() => !document.hidden && fetchPages(() => true), EVERY_MS);
    return () => {
      stop.abort();
      window.clearInterval(timer);
    };
  }, [load, turn]);
  const sight = useCallback((first: number, last: number) => {
    inSight.current = [Math.floor(first / PAGE), Math.max(0, Math.floor(last / PAGE))];
    look.current();
  }, []);
  return useMemo(() => {
    const last = Math.max(-1, ...held.pages.keys());
    const known = last < 0 ? 0 : last * PAGE + (held.pages.get(last)?.length ?? 0);
    return {
      // A few rows more than are known: to see them is to ask for them.
      count: known + (held.more ? 20 : 0),
      more: held.more,
      ready: held.ready,
      known: [...held.pages.values()].reduce((sum, page) => sum + page.length, 0),
      loaded: () => [...held.pages.values()].flat(),
      keys: held.keys,
      error: held.error,
      row: (index: number) => held.pages.get(Math.floor(index / PAGE))?.[index % PAGE],
      sight,
      again: () => setTurn((turn) => turn + 1),
    };
  }, [held, sight]);
}

function merged(old: Held, page: number, runs: Run[], more: boolean): Held {
  const before = old.pages.get(0)?.[0]?.info.run_id;
  // Something new at the top moves everything below; what is not in sight is asked for again when it is.
  const moved = page === 0 && before !== undefined && before !== runs[0]?.info.run_id;
  const pages = new Map(moved ? [] : old.pages);
  pages.set(page, runs);
  for (const other of [...pages.keys()]) if (!more && other > page) pages.delete(other);
  const last = Math.max(...pages.keys());
  return { pages, keys: withKeys(old.keys, runs), more: page === last ? more : old.more, ready: true };
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
