// Logs that follow: a file by its offset, the last part of it first, only the lines in sight in the page.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { ask, send, Unreachable } from "../../api/call.ts";
import { job_artifact, job_artifacts } from "../../api/routes.ts";
import type { Artifact, Page } from "../../api/shapes.ts";
import { useData } from "../../parts/data.ts";
import { ask as askPlace, usePlace } from "../../parts/place.ts";
import { useScope } from "../../parts/scope.ts";
import { Empty, Wait } from "../../parts/show.tsx";
import { bytes } from "../../parts/words.ts";

const LINE_PX = 19;
/** What of a long log is shown at first, and the most that is kept. */
const TAIL = 1 << 20;
const KEPT_LINES = 200_000;
const WAIT_SECONDS = 20;

export function Logs({ name }: { name: string }) {
  const { names } = useScope();
  const { query } = usePlace();
  const files = useData(`logs ${name}`, (signal) => ask<Page<Artifact>>(job_artifacts, { ...names, name }, { signal }), 5000);
  return (
    <Wait on={files}>
      {({ value }) => {
        const logs = value.filter(({ path }) => /(^|\/)(user_logs|system_logs|logs)\//.test(path)).sort((a, b) => order(a.path) - order(b.path));
        const path = query.get("file") ?? logs[0]?.path;
        const log = logs.find((one) => one.path === path);
        if (path === undefined) return <Empty>There is no log yet. It is shown here as soon as the command starts.</Empty>;
        return (
          <>
            <div className="bar">
              <div className="tabs small" role="tablist" aria-label="Log files">
                {logs.map((one) => (
                  <button key={one.path} type="button" role="tab" aria-selected={one.path === path} onClick={() => askPlace({ file: one.path })}>
                    {one.path.replace("user_logs/", "").replace(".txt", "")}
                  </button>
                ))}
              </div>
            </div>
            <Log key={path} name={name} path={path} size={log?.size ?? 0} />
          </>
        );
      }}
    </Wait>
  );
}

function order(path: string): number {
  return path.includes("system_logs") ? 2 : path.startsWith("retry-") ? 0 : 1;
}

interface Text {
  lines: string[];
  from: number;
  over: boolean;
}

function useLog(name: string, path: string, start: number): Text {
  const { names } = useScope();
  const [text, setText] = useState<Text>({ lines: [], from: start, over: false });
  useEffect(() => {
    const stop = new AbortController();
    const decoder = new TextDecoder();
    let offset = start;
    setText({ lines: [], from: start, over: false });
    const follow = async () => {
      while (!stop.signal.aborted) {
        await sight();
        try {
          const params = { ...names, name, path };
          const answer = await send(job_artifact, params, { query: { offset, wait: WAIT_SECONDS }, signal: stop.signal });
          const piece = new Uint8Array(await answer.arrayBuffer());
          offset += piece.length;
          const over = answer.headers.get("x-peregrine-over") === "true";
          const added = decoder.decode(piece, { stream: true });
          setText((old) => ({ ...old, over, lines: appended(old.lines, added) }));
          if (over && piece.length === 0) return;
        } catch (error) {
          if (stop.signal.aborted || !(error instanceof Unreachable)) return;
          await new Promise((wake) => window.setTimeout(wake, 2000));
        }
      }
    };
    void follow();
    return () => stop.abort();
  }, [names, name, path, start]);
  return text;
}

/** Waits until the page is in sight. */
async function sight(): Promise<void> {
  while (document.hidden) await new Promise((wake) => document.addEventListener("visibilitychange", wake, { once: true }));
}

function appended(lines: string[], text: string): string[] {
  if (text === "") return lines;
  const fresh = text.split("\n");
  const joined = [...lines.slice(0, -1), (lines.at(-1) ?? "") + (fresh[0] ?? ""), ...fresh.slice(1)];
  return joined.length > KEPT_LINES ? joined.slice(-KEPT_LINES) : joined;
}

/** Colours of terminals are left out, and of a line that was written over, what was written last stays. */
function plain(line: string): string {
  const shown = line.replace(/\u001b\[[0-9;?]*[A-Za-z]/g, "").replace(/\r+$/, "");
  return shown.slice(shown.lastIndexOf("\r") + 1);
}

function Log({ name, path, size }: { name: string; path: string; size: number }) {
  const [start, setStart] = useState(() => Math.max(0, size - TAIL));
  const { lines, over } = useLog(name, path, start);
  const [wanted, setWanted] = useState("");
  const [only, setOnly] = useState(false);
  const [follow, setFollow] = useState(true);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(500);
  const box = useRef<HTMLDivElement>(null);
  const needle = wanted.toLowerCase();
  const fits = useMemo(
    () => (needle === "" ? [] : lines.flatMap((line, index) => (line.toLowerCase().includes(needle) ? [index] : []))),
    [lines, needle],
  );
  const shown = only && needle !== "" ? fits : undefined;
  const count = shown?.length ?? (lines.at(-1) === "" ? lines.length - 1 : lines.length);
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null) return;
    setHeight(element.clientHeight);
    if (follow) element.scrollTop = element.scrollHeight;
  }, [count, follow]);
  const scrolled = (element: HTMLDivElement) => {
    setTop(element.scrollTop);
    setFollow(element.scrollTop + element.clientHeight >= element.scrollHeight - LINE_PX);
  };
  const find = () => {
    const from = Math.floor(top / LINE_PX) + 1;
    const next = fits.find((index) => index > from) ?? fits[0];
    if (next !== undefined && box.current) box.current.scrollTop = next * LINE_PX;
  };
  const first = Math.max(0, Math.floor(top / LINE_PX) - 20);
  const last = Math.min(count, Math.ceil((top + height) / LINE_PX) + 20);
  return (
    <>
      <div className="bar">
        <input
          data-filter
          aria-label="Search the log"
          placeholder="Search   ( / )"
          value={wanted}
          onChange={(event) => setWanted(event.target.value)}
          onKeyDown={(event) => event.key === "Enter" && find()}
        />
        {needle !== "" && <span className="dim" role="status">{fits.length} lines</span>}
        <label>
          <input type="checkbox" checked={only} onChange={(event) => setOnly(event.target.checked)} /> only these
        </label>
        <label>
          <input type="checkbox" checked={follow} onChange={(event) => setFollow(event.target.checked)} /> follow
        </label>
        {start > 0 && (
          <button type="button" className="quiet" onClick={() => setStart(Math.max(0, start - 8 * TAIL))}>
            Show earlier ({bytes(start)} above)
          </button>
        )}
        <span className="dim" role="status">{over ? "the log is complete" : "live"}</span>
      </div>
      <div className="log" ref={box} role="log" aria-label={`Log ${path}`} tabIndex={0} onScroll={(event) => scrolled(event.currentTarget)}>
        <div style={{ height: count * LINE_PX, position: "relative" }}>
          {Array.from({ length: Math.max(0, last - first) }, (_, offset) => {
            const row = first + offset;
            const index = shown?.[row] ?? row;
            const line = plain(lines[index] ?? "");
            return (
              <div key={row} className="line" style={{ transform: `translateY(${row * LINE_PX}px)` }}>
                <Marked text={line} needle={needle} />
              </div>
            );
          })}
        </div>
      </div>
    </>
  );
}

function Marked({ text, needle }: { text: string; needle: string }) {
  if (needle === "") return <>{text}</>;
  const at = text.toLowerCase().indexOf(needle);
  if (at < 0) return <>{text}</>;
  return (
    <>
      {text.slice(0, at)}
      <mark>{text.slice(at, at + needle.length)}</mark>
      {text.slice(at + needle.length)}
    </>
  );
}
