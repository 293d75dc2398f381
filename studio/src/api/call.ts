// The one way to the server. Every answer that is not what was asked for becomes a Refused or an Unreachable; a session
// that is over is told to whoever listens, so that the page can ask to sign in again.
import type { Params, Route } from "./route.ts";

export class Refused extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

export class Unreachable extends Error {}

export interface Options {
  query?: Record<string, string | number | undefined>;
  body?: unknown;
  signal?: AbortSignal | undefined;
  /** Sent instead of the session's cookie. */
  token?: string;
  headers?: Record<string, string>;
}

/** The address of a route. */
export function address<Path extends string, Reply>(
  route: Route<Path, Reply>,
  params: Params<Path>,
  query: Options["query"] = {},
): string {
  const named = params as Record<string, string>;
  const path = route.path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = named[name] ?? "";
    // What remains of a path keeps its slashes.
    return name === "path" ? value.split("/").map(encodeURIComponent).join("/") : encodeURIComponent(value);
  });
  const asked = Object.entries(query).flatMap(([key, value]) => (value === undefined ? [] : [[key, String(value)]]));
  return asked.length === 0 ? path : `${path}?${new URLSearchParams(asked)}`;
}

/** Asks and gives back the answer as it is. */
export async function send<Path extends string, Reply>(
  route: Route<Path, Reply>,
  params: Params<Path>,
  options: Options = {},
): Promise<Response> {
  const headers: Record<string, string> = { ...options.headers, "x-peregrine-studio": "1" };
  if (options.body !== undefined) headers["content-type"] = "application/json";
  if (options.token !== undefined) headers["authorization"] = `Bearer ${options.token}`;
  const init: RequestInit = { method: route.method, headers, credentials: "same-origin", redirect: "error" };
  if (options.body !== undefined) init.body = JSON.stringify(options.body);
  if (options.signal !== undefined) init.signal = options.signal;
  let answer: Response;
  try {
    answer = await fetch(address(route, params, options.query), init);
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new Unreachable("the server cannot be reached");
  }
  if (answer.ok) return answer;
  throw await refusal(answer);
}

/** Reads what was answered; a line that is cut on the way is a server that cannot be reached. */
async function whole<T>(read: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  try {
    return await read;
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Unreachable("the answer was cut off");
  }
}

/** The bytes of an answer. */
export async function bytesOf(answer: Response, signal?: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await whole(answer.arrayBuffer(), signal));
}

/** Whether asking again later may succeed. */
export function passes(error: unknown): boolean {
  return error instanceof Unreachable || (error instanceof Refused && (error.status === 429 || error.status >= 500));
}

/** How long to wait before the next of several tries: longer each time, up to half a minute. */
export function patience(tries: number): number {
  return Math.min(30_000, 1000 * 2 ** tries);
}

/** Asks and reads the answer; `Shape` says more of it than the document of the API does. */
export async function ask<Shape extends Reply, Path extends string = string, Reply = unknown>(
  route: Route<Path, Reply>,
  params: Params<Path>,
  options: Options = {},
): Promise<Shape> {
  const answer = await send(route, params, options);
  const text = await whole(answer.text(), options.signal);
  return (text === "" ? {} : JSON.parse(text)) as Shape;
}

interface Told {
  error?: { code?: string; message?: string };
  error_code?: string;
  message?: string;
}

async function refusal(answer: Response): Promise<Refused> {
  const told = (await answer.json().catch(() => ({}))) as Told;
  const code = told.error?.code ?? told.error_code ?? "Unknown";
  const message = told.error?.message ?? told.message ?? `the server answered ${answer.status}`;
  if (answer.status === 401) window.dispatchEvent(new Event(SIGNED_OUT));
  return new Refused(answer.status, code, message);
}

/** The event that tells that the session is over. */
export const SIGNED_OUT = "peregrine-signed-out";
