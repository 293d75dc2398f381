// How numbers, times and states read.

export function ago(at: string | number, now = Date.now()): string {
  const then = typeof at === "number" ? at : Date.parse(at);
  return Number.isNaN(then) ? "" : `${span(now - then)} ago`;
}

/** A length of time in its two largest units. */
export function span(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  const seconds = Math.floor(ms / 1000);
  const units: [number, string][] = [
    [86400, "d"],
    [3600, "h"],
    [60, "min"],
    [1, "s"],
  ];
  const first = units.findIndex(([size]) => seconds >= size);
  let rest = seconds;
  return units
    .slice(first, first + 2)
    .flatMap(([size, unit]) => {
      const count = Math.floor(rest / size);
      rest -= count * size;
      return count === 0 ? [] : [`${count} ${unit}`];
    })
    .join(" ");
}

export function time(at: string | number): string {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? "" : date.toLocaleString();
}

export function bytes(count: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const power = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, count)) / 10));
  const value = count / 2 ** (10 * power);
  return `${power === 0 ? value : value.toFixed(1)} ${units[power]}`;
}

export function number(value: number | string): string {
  const n = Number(value);
  if (!Number.isFinite(n)) return String(value);
  if (Number.isInteger(n) && Math.abs(n) < 1e9) return String(n);
  return Math.abs(n) >= 1e5 || Math.abs(n) < 1e-3 ? n.toExponential(3) : n.toPrecision(5).replace(/\.?0+$/, "");
}

export type Mood = "good" | "bad" | "busy" | "idle" | "plain";

const MOODS: Record<string, Mood> = {
  completed: "good",
  finished: "good",
  succeeded: "good",
  idle: "idle",
  ready: "good",
  on: "good",
  active: "good",
  done: "good",
  healthy: "good",
  degraded: "bad",
  failing: "bad",
  asleep: "idle",
  empty: "idle",
  running: "busy",
  preparing: "busy",
  starting: "busy",
  leaving: "idle",
  provisioning: "busy",
  finalizing: "busy",
  creating: "busy",
  updating: "busy",
  failed: "bad",
  notresponding: "bad",
  unusable: "bad",
  refused: "bad",
  preempted: "bad",
  queued: "idle",
  scheduled: "idle",
  notstarted: "idle",
};

export function mood(status: string): Mood {
  return MOODS[status.toLowerCase()] ?? "plain";
}

/** MLflow's words for states as the rest of the pages say them. */
export function status(word: string): string {
  const words: Record<string, string> = { SCHEDULED: "Queued", RUNNING: "Running", FINISHED: "Completed", FAILED: "Failed", KILLED: "Canceled" };
  return words[word] ?? word;
}

/** The last part of a resource's id, with the version where it has one. */
export function short(id: string | null | undefined): string {
  if (!id) return "";
  const parts = id.split("/");
  const version = parts.indexOf("versions");
  const named = (text: string) => (/^[0-9a-f]{40,}$/.test(text) ? text.slice(0, 12) : text);
  return version > 0 ? `${named(parts[version - 1] ?? "")}:${named(parts[version + 1] ?? "")}` : (parts.at(-1) ?? id);
}
