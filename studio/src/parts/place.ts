// Where the reader is: the address is the state. Views below /studio/<workspace>/ with what they show in the query, so
// that every view can be linked to and gone back to.
import { useSyncExternalStore } from "react";

const BASE = "/studio/";
const CHANGED = "peregrine-place";

export interface Place {
  workspace: string;
  /** The parts behind the workspace: `["jobs", "name"]`. */
  parts: string[];
  query: URLSearchParams;
}

export function read(): Place {
  const [workspace = "", ...parts] = location.pathname.slice(BASE.length).split("/").filter(Boolean).map(decoded);
  return { workspace, parts, query: new URLSearchParams(location.search) };
}

/** A part of an address as it was meant; one that was typed by hand may hold a mark that stands for nothing. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The address of a view. */
export function at(workspace: string, parts: string[] = [], query: Record<string, string> = {}): string {
  const path = BASE + [workspace, ...parts].map(encodeURIComponent).join("/");
  const asked = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== ""));
  return asked.size === 0 ? path : `${path}?${asked}`;
}

export function go(address: string, replace = false): void {
  if (replace) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
  window.dispatchEvent(new Event(CHANGED));
}

/** Changes the query of this view; what becomes empty goes. */
export function ask(changes: Record<string, string>): void {
  const query = new URLSearchParams(location.search);
  for (const [key, value] of Object.entries(changes)) {
    if (value === "") query.delete(key);
    else query.set(key, value);
  }
  go(location.pathname + (query.size === 0 ? "" : `?${query}`), true);
}

function subscribe(told: () => void): () => void {
  const events = [CHANGED, "popstate"];
  for (const name of events) window.addEventListener(name, told);
  return () => {
    for (const name of events) window.removeEventListener(name, told);
  };
}

export function usePlace(): Place {
  const now = useSyncExternalStore(subscribe, () => location.pathname + location.search);
  void now;
  return read();
}
