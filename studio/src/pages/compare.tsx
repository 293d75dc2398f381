// Many runs side by side: their lines in one chart, what differs in a table, all of them across parallel axes.
import { useMemo, useState } from "react";
import { ask } from "../api/call.ts";
import { job_metrics } from "../api/routes.ts";
import type { Metrics, Run } from "../api/shapes.ts";
import { Chart, COLOURS, type Look } from "../parts/chart.tsx";
import { useData } from "../parts/data.ts";
import { at, usePlace } from "../parts/place.ts";
import { search } from "../parts/runs.ts";
import { useScope } from "../parts/scope.ts";
import { Badge, Card, Empty, Link, Wait } from "../parts/show.tsx";
import { number, status } from "../parts/words.ts";
import { importance, numeric, Parallel } from "./compare/parallel.tsx";
import { Scatter } from "./compare/scatter.tsx";
import { lineOf } from "./job/metrics.tsx";

const MOST_LINES = 20;
const POINTS = 500;

export function Compare() {
  const { names } = useScope();
  const { query } = usePlace();
  const ids = useMemo(() => (query.get("runs") ?? "").split(",").filter(Boolean), [query.get("runs")]);
  const runs = useData(`compare ${ids.join()}`, async (signal) => {
    if (ids.length === 0) return [];
    const list = ids.map((id) => `'${id.replaceAll("'", "")}'`).join(",");
    const found = await search(names, { filter: `attributes.run_id IN (${list})`, limit: 1000 }, signal);
    return found.runs;
  }, 5000);
  return (
    <>
      <h1>Compare</h1>
      <Wait on={runs}>
        {(found) =>
          found.length === 0 ? (
            <Empty>Choose some jobs in the table of jobs, then press “Compare”.</Empty>
          ) : (
            <>
              <Overlays runs={found} />
              {found.length > 1 && <Axes runs={found} />}
              <Differences runs={found} />
            </>
          )
        }
      </Wait>
    </>
  );
}

function Overlays({ runs }: { runs: Run[] }) {
  const { names } = useScope();
  const shown = runs.slice(0, MOST_LINES);
  const key = shown.map(({ info }) => info.run_id).join();
  const [look, setLook] = useState<Look>({ x: "step", log: false, smooth: 0 });
  const lines = useData(
    `lines ${key}`,
    async (signal) => {
      // All of them in one answer.
      const [first = "", ...others] = shown.map(({ info }) => info.run_id);
      const { also = [], ...own } = await ask<Metrics>(job_metrics, { ...names, name: first }, { query: { points: POINTS, also: others.join(",") || undefined }, signal });
      const by = new Map([own, ...also].map((one) => [one.name, one.value]));
      return shown.map(({ info }) => by.get(info.run_id) ?? []);
    },
    shown.every(({ info }) => info.end_time !== undefined) ? 0 : 4000,
  );
  const charts = useMemo(() => {
    const by = new Map<string, ReturnType<typeof lineOf>[]>();
    lines.data?.forEach((value, index) => {
      const name = shown[index]?.info.run_name ?? "";
      const colour = COLOURS[index % COLOURS.length] ?? "";
      for (const { key, points } of value) by.set(key, [...(by.get(key) ?? []), lineOf(name, points, look.x ?? "step", { colour })]);
    });
    return [...by].sort(([a], [b]) => a.localeCompare(b));
  }, [lines.data, look.x]);
  return (
    <>
      <div className="bar">
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
        {runs.length > MOST_LINES && <span className="dim">lines of the first {MOST_LINES}</span>}
      </div>
      <Wait on={lines}>
        {() =>
          charts.length === 0 ? (
            <p className="dim">None of them has logged a metric.</p>
          ) : (
            <div className="charts">
              {charts.slice(0, 40).map(([key, series]) => (
                <Chart key={key} title={key} series={series} look={look} group="compare" />
              ))}
            </div>
          )
        }
      </Wait>
    </>
  );
}

function Axes({ runs }: { runs: Run[] }) {
  const axes = useMemo(() => numeric(runs), [runs]);
  const metrics = axes.filter(({ name }) => name.startsWith("metrics."));
  const [goal, setGoal] = useState("");
  const chosen = metrics.find(({ name }) => name === goal) ?? metrics[0];
  if (axes.length < 2) return null;
  const weights = chosen ? importance(axes, chosen) : [];
  return (
    <div className="cards">
      <Card
        title="Across all axes"
        aside={
          chosen && (
            <label>
              Coloured by{" "}
              <select value={chosen.name} onChange={(event) => setGoal(event.target.value)}>
                {metrics.map(({ name }) => (
                  <option key={name}>{name}</option>
                ))}
              </select>
            </label>
          )
        }
      >
        <Parallel axes={axes} goal={chosen} names={runs.map(({ info }) => info.run_name)} />
      </Card>
      <Scatter axes={axes} runs={runs.map(({ info }) => ({ id: info.run_id, name: info.run_name }))} />
      {chosen && weights.length > 0 && runs.length > 3 && (
        <Card title={`What goes along with ${chosen.name}`}>
          <p className="dim">Rank correlation over {runs.length} runs: 1 rises with it, −1 falls as it rises. It says nothing about causes.</p>
          <ul className="plain meters">
            {weights.map(({ name, weight }) => (
              <li key={name}>
                <span>{name}</span>
                <meter min={0} max={1} value={Math.abs(weight)} aria-label={name} />
                <span className="dim">{weight.toFixed(2)}</span>
              </li>
            ))}
          </ul>
        </Card>
      )}
    </div>
  );
}

function Differences({ runs }: { runs: Run[] }) {
  const { workspace } = useScope();
  const [all, setAll] = useState(false);
  const rows = useMemo(() => {
    const table = new Map<string, Map<string, string>>();
    for (const { info, data } of runs) {
      const put = (key: string, value: string) => table.set(key, (table.get(key) ?? new Map<string, string>()).set(info.run_id, value));
      for (const { key, value } of data.params ?? []) put(`params.${key}`, value);
      for (const { key, value } of data.metrics ?? []) put(`metrics.${key}`, number(value));
      for (const { key, value } of data.tags ?? []) if (!key.startsWith("mlflow.")) put(`tags.${key}`, value);
    }
    return [...table].sort(([a], [b]) => a.localeCompare(b)).map(([key, values]) => ({ key, values, same: values.size === runs.length && new Set(values.values()).size === 1 }));
  }, [runs]);
  const shown = rows.filter(({ same }) => all || !same);
  return (
    <Card
      title="Differences"
      aside={
        <label>
          <input type="checkbox" checked={all} onChange={(event) => setAll(event.target.checked)} /> also what is the same
        </label>
      }
    >
      <div className="scroll" tabIndex={0}>
        <table aria-label="Differences">
          <thead>
            <tr>
              <th scope="col">Key</th>
              {runs.map(({ info }) => (
                <th key={info.run_id} scope="col">
                  <Link to={at(workspace.name, ["jobs", info.run_id])}>{info.run_name}</Link> <Badge status={status(info.status)} />
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {shown.map(({ key, values, same }) => (
              <tr key={key} className={same ? "dim" : ""}>
                <th scope="row">{key}</th>
                {runs.map(({ info }) => (
                  <td key={info.run_id}>{values.get(info.run_id) ?? ""}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {shown.length === 0 && <p className="dim">They do not differ.</p>}
    </Card>
  );
}
