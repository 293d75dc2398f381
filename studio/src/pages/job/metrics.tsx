// What a job logs, drawn as it comes. The stream resumes by itself where it was cut off; where the server refused it, it is
// asked for again after a while.
import { useEffect, useMemo, useRef, useState } from "react";
import { address, patience } from "../../api/call.ts";
import { job_metrics_stream } from "../../api/routes.ts";
import type { Line, Metrics, Point } from "../../api/shapes.ts";
import { Chart, type Look, type Series } from "../../parts/chart.tsx";
import { useInSight } from "../../parts/data.ts";
import { ask, usePlace } from "../../parts/place.ts";
import { useScope } from "../../parts/scope.ts";
import { Empty } from "../../parts/show.tsx";

const POINTS = 1000;
/** The most points of a line that are kept; of more, the lowest and the highest of each few stay. */
const MOST_POINTS = 4 * POINTS;
const CHARTS = 60;

interface Held {
  lines: Map<string, Point[]>;
  leftOut: number;
  ready: boolean;
  over: boolean;
  /** The stream is not there at the moment. */
  cut: boolean;
}

const NOTHING: Held = { lines: new Map(), leftOut: 0, ready: false, over: false, cut: false };

/** The same line with half as many points: of every four, the lowest and the highest, and the last in any case. */
export function thinned(points: Point[]): Point[] {
  const kept: Point[] = [];
  for (let at = 0; at < points.length; at += 4) {
    const four = points.slice(at, at + 4);
    const [low, high] = [least(four, 1), least(four, -1)];
    kept.push(...four.filter((one, index) => one === low || one === high || at + index === points.length - 1));
  }
  return kept;
}

/** The point with the least value, or with the greatest where `sign` is negative. */
function least(points: Point[], sign: 1 | -1): Point | undefined {
  return points.reduce((best, one) => (sign * Number(one.value) < sign * Number(best.value) ? one : best), points[0] as Point);
}

function longer(line: Point[], points: Point[]): Point[] {
  let all = [...line, ...points];
  while (all.length > MOST_POINTS) all = thinned(all);
  return all;
}

/** The lines of a run; of one with very many metrics, those with `part` in their name. */
function useStream(name: string, part: string): Held {
  const { names } = useScope();
  const [held, setHeld] = useState(NOTHING);
  const inSight = useInSight();
  const asked = useRef(part);
  useEffect(() => {
    const same = asked.current === part;
    if (!inSight || (held.over && same)) return;
    if (!same) setHeld((old) => ({ ...old, over: false }));
    asked.current = part;
    const asking = address(job_metrics_stream, { ...names, name }, { points: POINTS, part: part || undefined });
    let source: EventSource;
    let [tries, timer] = [0, 0];
    const open = () => {
      source = new EventSource(asking);
      source.addEventListener("open", () => {
        tries = 0;
        setHeld((old) => ({ ...old, cut: false }));
      });
      source.addEventListener("error", () => {
        setHeld((old) => ({ ...old, cut: true }));
        // A browser tries again by itself where the line broke, and never where the server refused.
        if (source.readyState === EventSource.CLOSED) timer = window.setTimeout(open, patience(tries++));
      });
      source.addEventListener("metrics", (event: MessageEvent<string>) => {
        const { value, leftOut } = JSON.parse(event.data) as Metrics;
        setHeld((old) => ({ ...old, ready: true, leftOut, lines: new Map(value.map(({ key, points }) => [key, points])) }));
      });
      source.addEventListener("points", (event: MessageEvent<string>) => {
        const { value } = JSON.parse(event.data) as { value: Line[] };
        setHeld((old) => {
          const lines = new Map(old.lines);
          for (const { key, points } of value) lines.set(key, longer(lines.get(key) ?? [], points));
          return { ...old, lines };
        });
      });
      source.addEventListener("end", () => {
        source.close();
        setHeld((old) => ({ ...old, over: true, cut: false }));
      });
    };
    open();
    return () => {
      source.close();
      window.clearTimeout(timer);
    };
  }, [names, name, part, inSight]);
  return held;
}

export function MetricsTab({ name }: { name: string }) {
  const [look, setLook] = useState<Look>({ x: "step", smooth: 0, log: false });
  const [wanted, setWanted] = useState("");
  const [part, setPart] = useState("");
  const { lines, leftOut, ready, over, cut } = useStream(name, part);
  const chosen = useChosen();
  // What is not here is asked for, once typing rests; what was asked for once is asked for anew.
  const wide = leftOut > 0 || part !== "";
  useEffect(() => {
    const timer = window.setTimeout(() => wide && setPart(wanted), 300);
    return () => window.clearTimeout(timer);
  }, [wanted, wide]);
  const keys = useMemo(() => [...lines.keys()].filter((key) => key.includes(wanted)).sort(), [lines, wanted]);
  if (!ready && cut) return <p role="status">{CUT}</p>;
  if (!ready) return <div className="skeleton" aria-busy="true" aria-label="loading" />;
  if (lines.size === 0 && part === "") {
    return <Empty command={'mlflow.log_metric("loss", loss, step=step)'}>{over ? "Nothing was logged." : "Nothing was logged yet; what is will be drawn here."} In a job&apos;s script:</Empty>;
  }
  return (
    <>
      <div className="bar">
        <input data-filter aria-label="Find a metric" placeholder="Find a metric   ( / )" value={wanted} onChange={(event) => setWanted(event.target.value)} />
        <label>
          Over{" "}
          <select value={look.x} onChange={(event) => setLook({ ...look, x: event.target.value as "step" })}>
            <option value="step">step</option>
            <option value="time">time</option>
            <option value="relative">time since start</option>
          </select>
        </label>
        <label>
          Smoothing{" "}
          <input type="range" min={0} max={0.99} step={0.01} value={look.smooth} onChange={(event) => setLook({ ...look, smooth: Number(event.target.value) })} />
        </label>
        <label>
          <input type="checkbox" checked={look.log} onChange={(event) => setLook({ ...look, log: event.target.checked })} /> log scale
        </label>
        <span className="dim" role="status">{over ? "the job is over" : cut ? CUT : "live"}</span>
      </div>
      <div className="charts">
        <Together names={chosen} lines={lines} look={look} />
        {keys.slice(0, CHARTS).map((key) => (
          <OneLine key={key} name={key} points={lines.get(key) ?? []} look={look} chosen={chosen} />
        ))}
      </div>
      {keys.length > CHARTS && leftOut === 0 && <p className="dim">{keys.length - CHARTS} more; type a part of a name to see others.</p>}
      {keys.length === 0 && <p className="dim">No metric has this in its name.</p>}
      {leftOut > 0 && <p className="dim">{leftOut} more metrics are there; type a part of a name to see others.</p>}
    </>
  );
}

const CUT = "not live: the server does not send what is logged; trying again";

/** The metrics that are drawn in one chart, as the address names them. Their names have no commas. */
function useChosen(): string[] {
  const asked = usePlace().query.get("together") ?? "";
  return useMemo(() => asked.split(",").filter(Boolean), [asked]);
}

function OneLine({ name, points, look, chosen }: { name: string; points: Point[]; look: Look; chosen: string[] }) {
  const series = useMemo(() => [lineOf(name, points, look.x ?? "step")], [name, points, look.x]);
  const checked = chosen.includes(name);
  const turn = () => ask({ together: (checked ? chosen.filter((one) => one !== name) : [...chosen, name]).join(",") });
  const aside = (
    <label className="dim">
      <input type="checkbox" aria-label={`Draw ${name} together with others`} checked={checked} onChange={turn} /> together
    </label>
  );
  return <Chart title={name} series={series} look={look} group="metrics" aside={aside} />;
}

/** Several metrics in one chart. */
function Together({ names, lines, look }: { names: string[]; lines: Map<string, Point[]>; look: Look }) {
  const x = look.x ?? "step";
  const first = useMemo(() => Math.min(...names.map((name) => begin(lines.get(name) ?? []))), [names, lines]);
  const series = useMemo(() => names.flatMap((name) => (lines.has(name) ? [lineOf(name, lines.get(name) ?? [], x, { first })] : [])), [names, lines, x, first]);
  return series.length < 2 ? null : <Chart title={names.join(", ")} series={series} look={look} group="metrics" />;
}

/** When the first of some points was logged. */
function begin(points: Point[]): number {
  return points.reduce((first, point) => Math.min(first, point.timestamp), Infinity);
}

/** Points as a line over steps, or over seconds. */
export function lineOf(label: string, points: Point[], x: NonNullable<Look["x"]>, { colour, first = begin(points) }: { colour?: string; first?: number } = {}): Series {
  const at = { step: (one: Point) => one.step, time: (one: Point) => one.timestamp / 1000, relative: (one: Point) => (one.timestamp - first) / 1000 }[x];
  const value = (one: Point) => (typeof one.value === "number" && Number.isFinite(one.value) ? one.value : null);
  // Steps that were all logged as 0 tell nothing: then the order does.
  const flat = x === "step" && points.length > 1 && points.every((one) => one.step === points[0]?.step);
  const sorted = flat ? points : [...points].sort((a, b) => at(a) - at(b));
  const series = { label, xs: sorted.map((one, index) => (flat ? index : at(one))), ys: sorted.map(value) };
  return colour === undefined ? series : { ...series, colour };
}
