// What an endpoint has answered in the last hours: how much, how fast, with which codes; and how its replicas came and went.
import { useMemo, useState } from "react";
import { ask } from "../../api/call.ts";
import { online_endpoint_activity } from "../../api/routes.ts";
import type { Activity as Past, Answered, ReplicaLife } from "../../api/shapes.ts";
import { Chart, type Series } from "../../parts/chart.tsx";
import { useData } from "../../parts/data.ts";
import { Choice } from "../../parts/form.tsx";
import { useScope } from "../../parts/scope.ts";
import { Card, Empty, Said, Wait } from "../../parts/show.tsx";
import { number, span, time } from "../../parts/words.ts";

const EVERY_MS = 5000;
const RATE = { x: "time", unit: (value: number) => `${number(value)}/s` } as const;
const LATENCY = { x: "time", unit: (value: number) => span(value * 1000) } as const;

export function Activity({ name }: { name: string }) {
  const { names } = useScope();
  const [minutes, setMinutes] = useState("30");
  const past = useData(`activity ${name}`, (signal) => ask<Past>(online_endpoint_activity, { ...names, name }, { signal }), EVERY_MS);
  return (
    <Wait on={past}>
      {(found) => (
        <>
          <div className="bar">
            <Choice label="The last" value={minutes} set={setMinutes} options={[["30", "30 minutes"], ["120", "2 hours"], ["360", "6 hours"]]} />
          </div>
          <Charts past={found} minutes={Number(minutes)} />
          <Scaling replicas={found.replicas} />
        </>
      )}
    </Wait>
  );
}

function Charts({ past, minutes }: { past: Past; minutes: number }) {
  const [codes, latency] = useMemo(() => lines(past, minutes, Date.now()), [past, minutes]);
  if (codes.length === 0) return <Empty>Nothing was asked of it in this time. Counting begins anew when the server starts.</Empty>;
  return (
    <div className="charts">
      <Chart title="Requests by status" series={codes} look={RATE} group="activity" />
      <Chart title="Latency" series={latency} look={LATENCY} group="activity" />
    </div>
  );
}

const COLOUR: Record<string, string> = { "2": "#2a9d5c", "3": "#2f7ed8", "4": "#d9730d", "5": "#c9372c" };
const QUANTILES = [0.5, 0.95, 0.99];

/** A line for each status, and one for each quantile of latency, over the steps of the time that is shown. */
function lines(past: Past, minutes: number, now: number): [Series[], Series[]] {
  const step = past.stepSeconds;
  const last = Math.floor(now / 1000 / step) * step;
  const xs = Array.from({ length: Math.ceil((minutes * 60) / step) }, (_, index, all = (minutes * 60) / step) => last - (all - 1 - index) * step);
  const by = new Map<number, Answered[]>();
  for (const one of past.answers) {
    const at = Date.parse(one.at) / 1000;
    by.set(at, [...(by.get(at) ?? []), one]);
  }
  const at = (x: number) => by.get(x) ?? [];
  const said = (one: Answered) => Object.keys(one.codes).map((code) => named(one, code));
  const codes = [...new Set(xs.flatMap((x) => at(x).flatMap(said)))].sort();
  const count = (one: Answered, label: string) => one.codes[Object.keys(one.codes).find((code) => named(one, code) === label) ?? ""] ?? 0;
  const rate = (x: number, label: string) => at(x).reduce((sum, one) => sum + count(one, label), 0) / step;
  const rates = codes.map((label) => ({ label, xs, ys: xs.map((x) => rate(x, label)), colour: COLOUR[label.charAt(0)] ?? "#6b62d9" }));
  const asked = (x: number) => at(x).filter((one) => !one.mirrored);
  const summed = xs.map((x) => asked(x).reduce<number[]>((sum, { buckets }) => buckets.map((count, index) => count + (sum[index] ?? 0)), []));
  const quantiles = QUANTILES.map((share) => ({ label: `p${share * 100}`, xs, ys: summed.map((buckets) => quantile(buckets, past.boundsSeconds, share)) }));
  return [rates, quantiles];
}

/** A status as it is shown; what became of copies is no answer to anyone. */
function named(one: Answered, code: string): string {
  return one.mirrored ? `${code} (copies)` : code;
}

/** Within the bucket it falls into, requests are taken to lie evenly. */
export function quantile(buckets: number[], bounds: number[], share: number): number | null {
  const total = buckets.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  let before = 0;
  for (const [index, count] of buckets.entries()) {
    const [low, high] = [bounds[index - 1] ?? 0, bounds[index] ?? bounds.at(-1) ?? 0];
    if (before + count >= share * total) return low + (high - low) * (count === 0 ? 0 : (share * total - before) / count);
    before += count;
  }
  return bounds.at(-1) ?? null;
}

function Scaling({ replicas }: { replicas: ReplicaLife[] }) {
  const events = replicas.flatMap((one) => {
    const told: [string | null, string, string][] = [
      [one.askedForAt, "asked for", ""],
      [one.readyAt, "ready", `after ${span(Date.parse(one.readyAt ?? "") - Date.parse(one.askedForAt))}`],
      [one.leavingAt, "taken out of the routes", ""],
      [one.goneAt, "gone", one.note],
    ];
    return told.flatMap(([at, kind, text]) => (at === null ? [] : [{ at, kind, text, replica: one.name, deployment: one.deployment }]));
  });
  events.sort((a, b) => b.at.localeCompare(a.at));
  return (
    <div className="cards">
      <Card title="Scale events">
        {events.length === 0 ? (
          <Empty>No replica was asked for yet.</Empty>
        ) : (
          <ol className="timeline" aria-label="Scale events">
            {events.map(({ at, kind, text, replica, deployment }) => (
              <li key={`${replica} ${kind}`}>
                <time title={time(at)}>{time(at)}</time>
                <b>
                  {deployment}: {kind}
                </b>
                <span>
                  <Said>{[`replica ${replica}`, text].filter(Boolean).join(", ")}</Said>
                </span>
              </li>
            ))}
          </ol>
        )}
      </Card>
    </div>
  );
}
