// Logs that follow: a file by its offset, the last part of it first, only the lines in sight in the page.
import { useLayoutEffect, useMemo, useRef, useState } from "react";
import { ask } from "../../api/call.ts";
import { job_artifacts } from "../../api/routes.ts";
import type { Artifact, Page } from "../../api/shapes.ts";
import { useData } from "../../parts/data.ts";
import { ask as askPlace, usePlace } from "../../parts/place.ts";
import { useScope } from "../../parts/scope.ts";
import { Empty, Problem, Wait } from "../../parts/show.tsx";
import { bytes } from "../../parts/words.ts";
import { useLog } from "./log.ts";

const LINE_PX = 19;

export function Logs({ name }: { name: string }) {
  const { names } = useScope();
  const { query } = usePlace();
  const files = useData(`logs ${name}`, (signal) => ask<Page<Artifact>>(job_artifacts, { ...names, name }, { signal }), 5000);
  return (
    <Wait on={files}>
      {({ value }) => {
        const logs = value.filter(({ path }) => /(^|\/)(user_logs|system_logs|logs)\//.test(path)).sort((a, b) => before(a.path, b.path));
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

/** What commands wrote before what the system did, the newest attempt first, the parts of one in order. */
function before(a: string, b: string): number {
  const system = (path: string) => (path.includes("system_logs") ? 1 : 0);
  const attempt = (path: string) => Number(/^retry-(\d+)\//.exec(path)?.[1] ?? 0);
  return system(a) - system(b) || attempt(b) - attempt(a) || a.localeCompare(b, "en", { numeric: true });
}

/** Colours of terminals are left out, and of a line that was written over, what was written last stays. */
function plain(line: string): string {
  const shown = line.replace(/\u001b\[[0-9;?]*[A-Za-z]/g, "").replace(/\r+$/, "");
  return shown.slice(shown.lastIndexOf("\r") + 1);
}

function Log({ name, path, size }: { name: string; path: string; size: number }) {
  const { lines, from, base, over, more, said, problem, earlier, toEnd } = useLog(name, path, size);
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
  // What comes or goes above the lines in sight does not move them.
  const known = useRef(base);
  useLayoutEffect(() => {
    const element = box.current;
    const moved = base - known.current;
    known.current = base;
    if (element !== null && moved !== 0 && !follow) element.scrollTop += moved * LINE_PX;
  }, [base]);
  const above = () => {
    setFollow(false);
    earlier();
  };
  const below = () => {
    setFollow(true);
    toEnd();
  };
  const scrolled = (element: HTMLDivElement) => {
    setTop(element.scrollTop);
    setFollow(!more && element.scrollTop + element.clientHeight >= element.scrollHeight - LINE_PX);
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
        {from > 0 && (
          <button type="button" className="quiet" onClick={above}>
            Show earlier ({bytes(from)} above)
          </button>
        )}
        {more && <button type="button" className="quiet" onClick={below}>To the end</button>}
        <span className="dim" role="status">{said !== "" ? said : more ? "the end is not shown" : over ? "the log is complete" : "live"}</span>
      </div>
      {problem !== undefined && <Problem error={problem} />}
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
