// The trials of a sweep as they come: the best so far, the values of each, and why some were stopped.
import { useMemo } from "react";
import { ask } from "../../api/call.ts";
import { job_graph } from "../../api/routes.ts";
import type { Job, Run } from "../../api/shapes.ts";
import { Chart, type Look, type Series } from "../../parts/chart.tsx";
import { useData } from "../../parts/data.ts";
import { at } from "../../parts/place.ts";
import { search } from "../../parts/runs.ts";
import { useScope } from "../../parts/scope.ts";
import { Badge, Card, Empty, Facts, Link, List, Said, Wait } from "../../parts/show.tsx";
import { number, status } from "../../parts/words.ts";
import type { Step } from "./layers.ts";

const EVERY_MS = 2000;
const MOST = 1000;
const LOOK: Look = { x: "step", xs: "nr." };

interface Objective {
  primaryMetric?: string;
  goal?: string;
}

interface Trial {
  run: Run;
  /** The value of the primary metric. */
  score: number | undefined;
  /** Why it was stopped or has failed. */
  message: string;
}

export function Trials({ job, over }: { job: Job; over: boolean }) {
  const { names } = useScope();
  const { primaryMetric = "", goal } = (job.properties["objective"] ?? {}) as Objective;
  const sign = goal?.toLowerCase() === "minimize" ? 1 : -1;
  const found = useData(
    `trials ${job.name}`,
    async (signal) => {
      const filter = `tags.\`mlflow.parentRunId\` = '${job.name}'`;
      const [{ runs, more }, { steps }] = await Promise.all([
        search(names, { filter, limit: MOST }, signal),
        ask<{ steps: Step[] }>(job_graph, { ...names, name: job.name }, { signal }),
      ]);
      const said = new Map(steps.map((step) => [step.job, step.message ?? ""]));
      const trials = runs.map((run): Trial => {
        const value = Number(run.data.metrics?.find(({ key }) => key === primaryMetric)?.value ?? NaN);
        return { run, score: Number.isNaN(value) ? undefined : value, message: said.get(run.info.run_id) ?? "" };
      });
      return { trials, more };
    },
    over ? 0 : EVERY_MS,
  );
  return (
    <Wait on={found}>
      {({ trials, more }) => {
        if (trials.length === 0) return <Empty>No trial has started yet.</Empty>;
        const sorted = [...trials].sort((a, b) => sign * ((a.score ?? sign * Infinity) - (b.score ?? sign * Infinity)) || 0);
        return (
          <>
            <Summary trials={trials} best={sorted[0]} metric={primaryMetric} sign={sign} />
            <Table trials={sorted} metric={primaryMetric} />
            {more && <p className="dim">The newest {MOST} are shown.</p>}
          </>
        );
      }}
    </Wait>
  );
}

function Summary({ trials, best, metric, sign }: { trials: Trial[]; best: Trial | undefined; metric: string; sign: number }) {
  const { workspace } = useScope();
  const series = useMemo(() => progress(trials, sign), [trials, sign]);
  const stopped = trials.filter(({ run, message }) => run.info.status === "KILLED" && message !== "");
  const failed = trials.filter(({ run }) => run.info.status === "FAILED").length;
  const count = (word: string) => trials.filter(({ run }) => run.info.status === word).length;
  return (
    <div className="cards">
      <Card title="So far">
        <Facts
          facts={[
            ["Best", best?.score !== undefined && <Link to={at(workspace.name, ["jobs", best.run.info.run_id])}>{`${metric} = ${number(best.score)}`}</Link>],
            ["With", best?.score !== undefined && values(best.run)],
            ["Trials", `${trials.length}: ${count("FINISHED")} completed, ${count("RUNNING")} running, ${count("SCHEDULED")} waiting, ${failed} failed`],
            ["Stopped early", stopped.length > 0 ? `${stopped.length}, each with its reason below` : "none"],
          ]}
        />
      </Card>
      {series.length > 0 && <Chart title={`${metric}, trial by trial`} series={series} look={LOOK} group="trials" />}
    </div>
  );
}

/** What each trial came to, in the order they began, and the best up to there. */
function progress(trials: Trial[], sign: number): Series[] {
  const scored = trials.filter(({ score }) => score !== undefined).sort((a, b) => a.run.info.start_time - b.run.info.start_time);
  if (scored.length < 2) return [];
  const xs = scored.map((_, index) => index + 1);
  const ys = scored.map(({ score = 0 }) => score);
  let best = Infinity * sign;
  const bests = ys.map((y) => (best = sign > 0 ? Math.min(best, y) : Math.max(best, y)));
  return [{ label: "best so far", xs, ys: bests }, { label: "this trial", xs, ys, dots: true }];
}

function values(run: Run): string {
  return (run.data.params ?? []).map(({ key, value }) => `${key} = ${value}`).join(", ");
}

function Table({ trials, metric }: { trials: Trial[]; metric: string }) {
  const { workspace } = useScope();
  const params = [...new Set(trials.flatMap(({ run }) => (run.data.params ?? []).map(({ key }) => key)))].slice(0, 8);
  const all = trials.map(({ run }) => run.info.run_id).join(",");
  const said = trials.some(({ message }) => message !== "");
  return (
    <Card title={`Trials (${trials.length}), the best first`} aside={<Link to={at(workspace.name, ["compare"], { runs: all })}>Compare them</Link>}>
      <List
        label="Trials"
        rows={trials}
        id={({ run }) => run.info.run_id}
        columns={[
          ["Name", ({ run }) => <Link to={at(workspace.name, ["jobs", run.info.run_id])}>{run.info.run_name}</Link>],
          ["Status", ({ run }) => <Badge status={status(run.info.status)} />],
          [metric || "Metric", ({ score }) => (score === undefined ? "" : number(score))],
          ...params.map((key): [string, (trial: Trial) => string] => [key, ({ run }) => run.data.params?.find((one) => one.key === key)?.value ?? ""]),
          ...(said ? ([["Why it ended", ({ message }) => <Said>{message}</Said>]] as [string, (trial: Trial) => React.ReactNode][]) : []),
        ]}
      />
    </Card>
  );
}
