// How full a target on a cluster was in the last hours; asked for when someone looks.
import { useMemo, useState } from "react";
import { ask } from "../../api/call.ts";
import { compute_usage } from "../../api/routes.ts";
import type { Amounts, Fullness, Page } from "../../api/shapes.ts";
import { Chart, type Series } from "../../parts/chart.tsx";
import { useData } from "../../parts/data.ts";
import { Choice } from "../../parts/form.tsx";
import { useScope } from "../../parts/scope.ts";
import { Empty, Wait } from "../../parts/show.tsx";

const EVERY_MS = 30_000;
const SHARE = { x: "time", unit: (value: number) => `${Math.round(value)} %`, top: 100 } as const;
const COUNT = { x: "time" } as const;
const KINDS: [string, keyof Amounts][] = [["Cores", "cpu_milli"], ["Memory", "memory_bytes"], ["GPUs", "gpus"]];

export function Past({ name }: { name: string }) {
  const [open, setOpen] = useState(false);
  return (
    <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>Use over time</summary>
      {open && <Hours name={name} />}
    </details>
  );
}

function Hours({ name }: { name: string }) {
  const { names } = useScope();
  const [hours, setHours] = useState("24");
  const past = useData(`past ${name} ${hours}`, (signal) => ask<Page<Fullness>>(compute_usage, { ...names, name }, { query: { hours }, signal }), EVERY_MS);
  return (
    <>
      <div className="bar">
        <Choice label="The last" value={hours} set={setHours} options={[["1", "hour"], ["24", "24 hours"], ["168", "7 days"]]} />
      </div>
      <Wait on={past}>{({ value }) => <Charts name={name} past={value} />}</Wait>
    </>
  );
}

function Charts({ name, past }: { name: string; past: Fullness[] }) {
  const [shares, jobs] = useMemo(() => lines(past), [past]);
  if (past.length === 0) return <Empty>The cluster was not heard of in this time. While it is, a sample is kept every minute.</Empty>;
  return (
    <div className="charts">
      {shares.length > 0 && <Chart title="In use" series={shares} look={SHARE} group={`past ${name}`} />}
      <Chart title="Jobs and nodes" series={jobs} look={COUNT} group={`past ${name}`} />
    </div>
  );
}

function lines(past: Fullness[]): [Series[], Series[]] {
  const xs = past.map(({ at }) => Date.parse(at) / 1000);
  const line = (label: string, of: (one: Fullness) => number | null): Series => ({ label, xs, ys: past.map(of) });
  const share = (key: keyof Amounts) => ({ allocatable, free }: Fullness) => (allocatable[key] ? (1 - free[key] / allocatable[key]) * 100 : null);
  const there = KINDS.filter(([, key]) => past.some(({ allocatable }) => allocatable[key] > 0));
  const counts = [line("Running", ({ runningJobs }) => runningJobs), line("Waiting", ({ waitingJobs }) => waitingJobs), line("Nodes ready", ({ readyNodes }) => readyNodes)];
  return [there.map(([label, key]) => line(label, share(key))), counts];
}
