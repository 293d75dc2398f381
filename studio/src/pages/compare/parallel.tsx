// Parallel axes on a canvas: a line for each run, coloured by one of the axes.
import { useEffect, useRef, useState } from "react";
import type { Run } from "../../api/shapes.ts";
import { number } from "../../parts/words.ts";

export interface Axis {
  name: string;
  /** A value for each run, in their order. */
  values: (number | null)[];
}

const HEIGHT = 300;
const [TOP, BOTTOM, SIDE] = [34, 26, 70];
const MOST_AXES = 12;

/** Params and metrics that are numbers and not all the same. */
export function numeric(runs: Run[]): Axis[] {
  const names = new Set<string>();
  const tables = runs.map(({ data }) => {
    const table = new Map<string, number>();
    const put = (name: string, value: number | string) => {
      if (value !== "" && Number.isFinite(Number(value))) table.set(name, Number(value));
    };
    for (const { key, value } of data.params ?? []) put(`params.${key}`, value);
    for (const { key, value } of data.metrics ?? []) put(`metrics.${key}`, value);
    for (const name of table.keys()) names.add(name);
    return table;
  });
  // Params first: lines run from what was chosen to what came of it.
  const sorted = [...names].sort((a, b) => b.localeCompare(a));
  const axes = sorted.map((name) => ({ name, values: tables.map((table) => table.get(name) ?? null) }));
  const varies = ({ values }: Axis) => new Set(values.filter((value) => value !== null)).size > 1;
  return axes.filter(varies).slice(0, MOST_AXES);
}

/** The least and the largest value. */
export function spread({ values }: Axis): [number, number] {
  const known = values.filter((value) => value !== null);
  return [Math.min(...known), Math.max(...known)];
}

/** From blue for the least to red for the most. */
export function shade(axis: Axis | undefined, value: number | null | undefined, alpha = 1): string {
  const [low, high] = axis ? spread(axis) : [0, 1];
  const share = typeof value === "number" ? (value - low) / (high - low) : 0;
  return `hsl(${220 - 190 * share} 70% 50% / ${alpha})`;
}

/** How much each param goes along with a metric, the strongest first. */
export function importance(axes: Axis[], goal: Axis): { name: string; weight: number }[] {
  const params = axes.filter(({ name }) => name.startsWith("params."));
  const weighed = params.map((axis) => ({ name: axis.name, weight: rankCorrelation(axis.values, goal.values) }));
  return weighed.filter(({ weight }) => Number.isFinite(weight)).sort((a, b) => Math.abs(b.weight) - Math.abs(a.weight));
}

function rankCorrelation(a: (number | null)[], b: (number | null)[]): number {
  const pairs = a.flatMap((x, index) => {
    const y = b[index];
    return x !== null && y !== null && y !== undefined ? [[x, y] as const] : [];
  });
  const [xs, ys] = [ranks(pairs.map(([x]) => x)), ranks(pairs.map(([, y]) => y))];
  const mean = (pairs.length - 1) / 2;
  const sum = (of: (index: number) => number) => pairs.reduce((total, _, index) => total + of(index), 0);
  const dx = (index: number) => (xs[index] ?? 0) - mean;
  const dy = (index: number) => (ys[index] ?? 0) - mean;
  return sum((i) => dx(i) * dy(i)) / Math.sqrt(sum((i) => dx(i) ** 2) * sum((i) => dy(i) ** 2));
}

function ranks(values: number[]): number[] {
  const sorted = [...values].sort((a, b) => a - b);
  return values.map((value) => (sorted.indexOf(value) + sorted.lastIndexOf(value)) / 2);
}

export function Parallel({ axes, goal, names }: { axes: Axis[]; goal: Axis | undefined; names: string[] }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [near, setNear] = useState<number>();
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const element = canvas.current?.parentElement;
    if (!element) return;
    const watch = new ResizeObserver(() => setWidth(element.clientWidth));
    watch.observe(element);
    return () => watch.disconnect();
  }, []);
  const x = (index: number) => SIDE + (index * (width - 2 * SIDE)) / Math.max(1, axes.length - 1);
  const y = (axis: Axis, value: number) => {
    const [low, high] = spread(axis);
    return HEIGHT - BOTTOM - ((value - low) / (high - low)) * (HEIGHT - TOP - BOTTOM);
  };
  useEffect(() => {
    const element = canvas.current;
    const pen = element?.getContext("2d");
    if (!element || !pen || width === 0) return;
    const ratio = window.devicePixelRatio;
    element.width = width * ratio;
    element.height = HEIGHT * ratio;
    pen.scale(ratio, ratio);
    const style = getComputedStyle(element);
    const line = (run: number, alpha: number) => {
      pen.strokeStyle = shade(goal, goal?.values[run], alpha);
      pen.beginPath();
      axes.forEach((axis, index) => {
        const value = axis.values[run];
        if (typeof value === "number") pen.lineTo(x(index), y(axis, value));
      });
      pen.stroke();
    };
    pen.lineWidth = 1.3;
    const faint = near === undefined ? Math.max(0.15, Math.min(0.9, 40 / names.length)) : 0.12;
    names.forEach((_, run) => line(run, faint));
    if (near !== undefined) {
      pen.lineWidth = 3;
      line(near, 1);
    }
    pen.font = `12px ${style.fontFamily}`;
    pen.textAlign = "center";
    axes.forEach((axis, index) => {
      const [low, high] = spread(axis);
      pen.strokeStyle = style.getPropertyValue("--line");
      pen.lineWidth = 1;
      pen.beginPath();
      pen.moveTo(x(index), TOP);
      pen.lineTo(x(index), HEIGHT - BOTTOM);
      pen.stroke();
      pen.fillStyle = style.getPropertyValue("--ink");
      pen.fillText(axis.name.replace(/^\w+\./, ""), x(index), 14);
      pen.fillStyle = style.getPropertyValue("--dim");
      pen.fillText(number(high), x(index), 28);
      pen.fillText(number(low), x(index), HEIGHT - 10);
    });
  }, [axes, goal, names, near, width]);
  const pick = (event: React.MouseEvent<HTMLCanvasElement>) => {
    const box = event.currentTarget.getBoundingClientRect();
    const [px, py] = [event.clientX - box.left, event.clientY - box.top];
    const index = Math.round(((px - SIDE) / (width - 2 * SIDE)) * (axes.length - 1));
    const axis = axes[Math.max(0, Math.min(axes.length - 1, index))];
    let best: { run: number; far: number } | undefined;
    axis?.values.forEach((value, run) => {
      const far = value === null ? Infinity : Math.abs(y(axis, value) - py);
      if (far < (best?.far ?? 12)) best = { run, far };
    });
    setNear(best?.run);
  };
  return (
    <>
      <canvas ref={canvas} className="parallel" role="img" aria-label={`${names.length} runs across ${axes.length} axes`} onMouseMove={pick} onMouseLeave={() => setNear(undefined)} />
      <p className="dim" role="status">{near === undefined ? "Point at a line to see which run it is." : names[near]}</p>
    </>
  );
}
