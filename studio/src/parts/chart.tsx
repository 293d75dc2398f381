// A chart of lines: drawn when it comes into sight, cursor and zoom shared with the others of its group. Each shows all
// it has until the reader zooms into one of them.
import { type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { number, span } from "./words.ts";

export interface Series {
  label: string;
  xs: number[];
  ys: (number | null)[];
  colour?: string;
  /** Drawn as points that no line connects. */
  dots?: boolean;
}

export interface Look {
  log?: boolean;
  /** 0 for none, up to nearly 1. */
  smooth?: number;
  x?: "step" | "time" | "relative";
  /** What a step is called. */
  xs?: string;
  unit?: (value: number) => string;
  top?: number;
}

const HEIGHT = 220;
/** The charts that are read together, and the stretch that the reader has zoomed into. */
interface Group {
  plots: Set<uPlot>;
  zoom?: { min: number; max: number } | undefined;
}
const GROUPS = new Map<string, Group>();
/** Told apart on light and on dark ground, and by most who see colours differently. */
export const COLOURS = ["#2f7ed8", "#d9730d", "#2a9d5c", "#b04ac0", "#c9372c", "#0e8a8a", "#8a6d00", "#6b62d9"];

interface ChartProps {
  title: string;
  series: Series[];
  look?: Look;
  group: string;
  /** What else stands beside the title. */
  aside?: ReactNode;
}

export function Chart({ title, series, look = {}, group, aside }: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  // Steps and seconds have no stretch in common.
  const key = `${group} ${look.x ?? "step"}`;
  const plot = useRef<uPlot>(null);
  const [seen, setSeen] = useState(false);
  const theme = useTheme();
  const data = useMemo(() => (seen ? aligned(series, look) : undefined), [seen, series, look]);
  const shape = `${series.map((one) => one.label).join("\n")}|${look.log}|${look.smooth ? 1 : 0}|${look.x}|${theme}`;
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    const watch = new IntersectionObserver(([entry]) => entry?.isIntersecting && setSeen(true), { rootMargin: "300px" });
    watch.observe(element);
    return () => watch.disconnect();
  }, []);
  useEffect(() => {
    const element = box.current;
    if (element === null || data === undefined) return;
    const all = GROUPS.get(key) ?? { plots: new Set() };
    GROUPS.set(key, all);
    const made = new uPlot(options(element, series, look, [key, all]), data, element);
    plot.current = made;
    all.plots.add(made);
    if (all.zoom) made.setScale("x", all.zoom);
    // The first call tells the size it has: to set it again would be to draw it twice.
    const watch = new ResizeObserver(() => element.clientWidth !== made.width && made.setSize({ width: element.clientWidth, height: HEIGHT }));
    watch.observe(element);
    return () => {
      watch.disconnect();
      all.plots.delete(made);
      if (all.plots.size === 0) GROUPS.delete(key);
      made.destroy();
      plot.current = null;
    };
  }, [shape, data === undefined]);
  useEffect(() => {
    const drawn = plot.current;
    if (drawn === null || data === undefined || drawn.data === data) return;
    const zoom = GROUPS.get(key)?.zoom;
    drawn.setData(data, zoom === undefined);
    if (zoom) drawn.setScale("x", zoom);
  }, [data]);
  const last = series.length === 1 ? series[0]?.ys.at(-1) : undefined;
  return (
    <figure className="chart">
      <figcaption>
        <b title={title}>{title}</b>
        {last !== undefined && last !== null && <span className="dim">{(look.unit ?? number)(last)}</span>}
        {aside}
      </figcaption>
      <div ref={box} className="plot" role="img" aria-label={`${title}: ${describe(series)}`} />
    </figure>
  );
}

function describe(series: Series[]): string {
  return series.map(({ label, ys }) => `${label} with ${ys.length} points, last ${number(ys.at(-1) ?? "none")}`).join("; ");
}

function useTheme(): number {
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const changed = () => setTurn((turn) => turn + 1);
    const media = matchMedia("(prefers-color-scheme: dark)");
    media.addEventListener("change", changed);
    window.addEventListener("peregrine-theme", changed);
    return () => {
      media.removeEventListener("change", changed);
      window.removeEventListener("peregrine-theme", changed);
    };
  }, []);
  return turn;
}

function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Shows a stretch in every chart of a group; without one, each shows all it has. */
function zoomTo(group: Group, zoom: Group["zoom"]): void {
  group.zoom = zoom;
  for (const plot of group.plots) {
    if (zoom) plot.setScale("x", zoom);
    else plot.setData(plot.data);
    plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  }
}

function options(box: HTMLDivElement, series: Series[], look: Look, [key, group]: [string, Group]): uPlot.Options {
  const [ink, grid] = [colour("--dim"), colour("--line")];
  const shown = look.unit ?? number;
  const axis = { stroke: ink, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 } };
  const x = (value: number) => (look.x === "relative" ? span(value * 1000) : look.x === "time" ? new Date(value * 1000).toLocaleString() : number(value));
  const dragged = (drawn: uPlot) => {
    const { left, width } = drawn.select;
    if (width > 0) zoomTo(group, { min: drawn.posToVal(left, "x"), max: drawn.posToVal(left + width, "x") });
  };
  const told = (drawn: uPlot, scale: string) => {
    if (scale === "x") box.dataset["shown"] = `${drawn.scales["x"]?.min} ${drawn.scales["x"]?.max}`;
  };
  const smooth = (look.smooth ?? 0) > 0;
  return {
    width: box.clientWidth,
    height: HEIGHT,
    cursor: {
      // Only where the pointer is goes to the others; the stretch they show is set by value.
      sync: { key, filters: { pub: (type) => type === "mousemove" || type === "mouseleave" } },
      focus: { prox: 24 },
      drag: { setScale: false, x: true, y: false },
      bind: {
        dblclick: () => () => {
          zoomTo(group, undefined);
          return null;
        },
      },
    },
    legend: { show: series.length > 1 },
    scales: {
      x: { time: look.x === "time" },
      y: { distr: look.log ? 3 : 1, ...(look.top === undefined ? {} : { range: [0, look.top] as [number, number] }) },
    },
    axes: [
      { ...axis, ...(look.x === "relative" ? { values: (_: uPlot, ticks: number[]) => ticks.map((tick) => span(tick * 1000)) } : {}) },
      { ...axis, size: 62, values: (_: uPlot, ticks: (number | null)[]) => ticks.map((tick) => (tick === null ? "" : shown(tick))) },
    ],
    series: [
      { label: look.xs ?? look.x ?? "step", value: (_: uPlot, value: number | null) => (value === null ? "" : x(value)) },
      ...series.flatMap(({ label, colour, ys, dots = false }, index) => {
        const stroke = colour ?? COLOURS[index % COLOURS.length] ?? "#2f7ed8";
        const line = { label, stroke, width: dots ? 0 : 1.5, spanGaps: true, points: { show: dots || ys.length < 40, ...(dots ? { fill: stroke } : {}) }, ...(dots ? { paths: () => null } : {}) };
        const value = (_: uPlot, value: number | null) => (value === null ? "" : shown(value));
        return smooth ? [{ ...line, value }, { ...line, stroke: `${stroke}55`, label: `${label} (as logged)`, value }] : [{ ...line, value }];
      }),
    ],
    hooks: { setScale: [told], setSelect: [dragged] },
  };
}

/** Lines over one common axis. */
function aligned(series: Series[], look: Look): uPlot.AlignedData {
  const clean = (ys: (number | null)[]) => (look.log ? ys.map((y) => (y !== null && y > 0 ? y : null)) : ys);
  const lines = series.flatMap(({ xs, ys }) => {
    const raw: uPlot.AlignedData = [xs, clean(ys)];
    return look.smooth ? [[xs, clean(smoothed(ys, look.smooth))] as uPlot.AlignedData, raw] : [raw];
  });
  if (lines.length === 1 && lines[0]) return lines[0];
  return lines.length === 0 ? [[]] : uPlot.join(lines);
}

/** An exponential mean that starts without a bias. */
export function smoothed(ys: (number | null)[], weight: number): (number | null)[] {
  let [mean, seen] = [0, 0];
  return ys.map((y) => {
    if (y === null) return null;
    mean = mean * weight + (1 - weight) * y;
    seen = seen * weight + (1 - weight);
    return mean / seen;
  });
}
