// The text of a log as it grows: pieces of the file side by side, of which the outermost are let go when there are too
// many. A piece begins where a line does, so that it can be joined to what stands before it at any time.
import { useEffect, useMemo, useRef, useState } from "react";
import { bytesOf, passes, patience, send } from "../../api/call.ts";
import { job_artifact } from "../../api/routes.ts";
import { type Scope, useScope } from "../../parts/scope.ts";

/** What of a long log is shown at first, how much more is asked for at a time, and the most lines that are kept. */
const TAIL = 1 << 20;
const EARLIER = 8 * TAIL;
const KEPT_LINES = 200_000;
/** What comes slowly is gathered into pieces of this size. */
const PIECE = 1 << 18;
const WAIT_SECONDS = 20;
const NEWLINE = 10;

interface Piece {
  /** The first byte of the file that is in it, and the first that is not. */
  from: number;
  to: number;
  /** The last is not over where the piece does not end with a line. */
  lines: string[];
}

interface Held {
  pieces: Piece[];
  over: boolean;
  /** The end of the file was let go. */
  more: boolean;
  /** How many lines were put before those that were there first, less those let go. */
  base: number;
}

const NOTHING: Held = { pieces: [], over: false, more: false, base: 0 };

export interface Text {
  lines: string[];
  /** How many bytes stand before them. */
  from: number;
  base: number;
  over: boolean;
  more: boolean;
  /** What keeps it from being live, if anything does. */
  said: string;
  problem: Error | undefined;
  earlier: () => void;
  toEnd: () => void;
}

export function useLog(name: string, path: string, size: number): Text {
  const { names } = useScope();
  const [start, setStart] = useState(() => Math.max(0, size - TAIL));
  const [held, setHeld] = useState(NOTHING);
  const [said, setSaid] = useState("");
  const [problem, setProblem] = useState<Error>();
  const [turn, setTurn] = useState(0);
  const reached = useRef(start);
  const asking = useRef(false);
  const follows = !held.more;
  useEffect(() => {
    if (!follows) return;
    const stop = new AbortController();
    const decoder = new TextDecoder();
    const log = { names, name, path };
    let [offset, tries] = [start, 0];
    setHeld(NOTHING);
    setProblem(undefined);
    const follow = async () => {
      while (!stop.signal.aborted) {
        await sight();
        try {
          const { piece, over } = await part(log, offset, WAIT_SECONDS, stop.signal);
          const skipped = offset === start && start > 0 ? lineStart(piece) : 0;
          const [from, added] = [offset + skipped, decoder.decode(piece.subarray(skipped), { stream: true })];
          offset += piece.length;
          reached.current = offset;
          const to = offset;
          tries = 0;
          setSaid("");
          setHeld((old) => appended({ ...old, over }, { from, to, lines: added.split("\n") }));
          if (over && piece.length === 0) return;
        } catch (error) {
          if (stop.signal.aborted) return;
          if (!passes(error)) return setProblem(error as Error);
          setSaid(`not live: ${(error as Error).message}; trying again`);
          await pause(patience(tries++), stop.signal);
        }
      }
    };
    void follow();
    return () => stop.abort();
  }, [names, name, path, start, turn, follows]);
  const lines = useMemo(() => joined(held.pieces), [held.pieces]);
  const from = held.pieces[0]?.from ?? start;
  const earlier = async () => {
    if (asking.current) return;
    asking.current = true;
    try {
      const pieces = await between({ names, name, path }, Math.max(0, from - EARLIER), from);
      setHeld((old) => (old.pieces[0]?.from === from ? prepended(old, pieces) : old));
    } catch (error) {
      setProblem(error as Error);
    } finally {
      asking.current = false;
    }
  };
  const toEnd = () => {
    setStart(Math.max(0, reached.current - TAIL));
    setTurn((turn) => turn + 1);
    setHeld(NOTHING);
  };
  return { lines, from, base: held.base, over: held.over, more: held.more, said, problem, earlier: () => void earlier(), toEnd };
}

interface Log {
  names: Scope["names"];
  name: string;
  path: string;
}

/** One piece of the file from an offset, as much as the server gives at a time. */
async function part({ names, name, path }: Log, offset: number, wait: number, signal?: AbortSignal): Promise<{ piece: Uint8Array<ArrayBuffer>; over: boolean }> {
  const answer = await send(job_artifact, { ...names, name, path }, { query: { offset, wait }, signal });
  return { piece: await bytesOf(answer, signal), over: answer.headers.get("x-peregrine-over") === "true" };
}

/** What stands between two offsets, from the first line that begins there. */
async function between(log: Log, from: number, to: number): Promise<Piece[]> {
  const pieces: Piece[] = [];
  const decoder = new TextDecoder();
  for (let offset = from; offset < to; ) {
    const { piece } = await part(log, offset, 0);
    if (piece.length === 0) break;
    const own = piece.subarray(0, to - offset);
    const skipped = offset === from && from > 0 ? lineStart(own) : 0;
    const text = decoder.decode(own.subarray(skipped), { stream: true });
    pieces.push({ from: offset + skipped, to: offset + own.length, lines: text.split("\n") });
    offset += own.length;
  }
  return pieces;
}

/** Where the first line of a piece begins that was cut out of a file; at its own beginning where none does. */
function lineStart(piece: Uint8Array): number {
  const end = piece.indexOf(NEWLINE);
  return end < 0 || end + 1 === piece.length ? 0 : end + 1;
}

/** All lines of some pieces, those that were cut put together. */
function joined(pieces: Piece[]): string[] {
  const all: string[] = [];
  for (const { lines } of pieces) {
    const [first = "", ...rest] = lines;
    if (all.length === 0) all.push(first);
    else all[all.length - 1] += first;
    for (const line of rest) all.push(line);
  }
  return all;
}

/** How many ends of lines are in a piece. */
function height({ lines }: Piece): number {
  return lines.length - 1;
}

function tall(pieces: Piece[]): number {
  return pieces.reduce((sum, piece) => sum + height(piece), 0);
}

function appended(held: Held, piece: Piece): Held {
  if (piece.from === piece.to) return held;
  const last = held.pieces.at(-1);
  const small = last !== undefined && last.to - last.from < PIECE;
  const pieces = small ? [...held.pieces.slice(0, -1), { from: last.from, to: piece.to, lines: joined([last, piece]) }] : [...held.pieces, piece];
  let base = held.base;
  while (pieces.length > 1 && tall(pieces) > KEPT_LINES) base -= height(pieces.shift() as Piece);
  return { ...held, pieces, base };
}

function prepended(held: Held, earlier: Piece[]): Held {
  const pieces = [...earlier, ...held.pieces];
  let more = held.more;
  while (pieces.length > 1 && tall(pieces) > KEPT_LINES) more = pieces.pop() !== undefined;
  return { ...held, pieces, more, base: held.base + tall(earlier) };
}

/** Waits until the page is in sight. */
async function sight(): Promise<void> {
  while (document.hidden) await new Promise((wake) => document.addEventListener("visibilitychange", wake, { once: true }));
}

/** Waits some time, and no longer than the page wants to know. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await new Promise((wake) => {
    signal.addEventListener("abort", wake, { once: true });
    window.setTimeout(wake, ms);
  });
}
