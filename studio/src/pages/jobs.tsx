// All jobs and runs of the workspace: MLflow's filter and order, any param, metric or tag as a column, live.
import { useCallback, useMemo, useState } from "react";
import { ask } from "../api/call.ts";
import { job_cancel, job_delete, mlflow_run_delete, mlflow_set_tag } from "../api/routes.ts";
import type { Run } from "../api/shapes.ts";
import { ask as askPlace, at, go, usePlace } from "../parts/place.ts";
import { type Column, Rows, type Sorted } from "../parts/rows.tsx";
import { isJob, isOver } from "../parts/runs.ts";
import { useScope } from "../parts/scope.ts";
import { Ago, Badge, Empty, Link, Problem } from "../parts/show.tsx";
import { number, span, status } from "../parts/words.ts";
import { Chooser, Filter, Views } from "./jobs/asking.tsx";
import { useRuns } from "./jobs/pages.ts";

export function Jobs() {
  const { names, workspace, works } = useScope();
  const { query } = usePlace();
  const filter = query.get("q") ?? "";
  const order = query.get("order") ?? "";
  const columns = useMemo(() => (query.get("columns") ?? "").split("\n").filter(Boolean), [query.get("columns")]);
  const runs = useRuns(names, { filter, order, experiment: query.get("experiment") ?? "" });
  // The runs themselves: one that was chosen stays chosen when its page is no longer loaded.
  const [chosen, setChosen] = useState<ReadonlyMap<string, Run>>(new Map());
  const [problem, setProblem] = useState<Error>();
  const choose = (run: Run) =>
    setChosen((old) => {
      const next = new Map(old);
      if (!next.delete(run.info.run_id)) next.set(run.info.run_id, run);
      return next;
    });
  const each = async (work: (run: Run) => Promise<unknown>) => {
    setProblem(undefined);
    const all = [...chosen].map(([id, run]): [string, Run] => [id, runs.find(id) ?? run]);
    const done = await Promise.allSettled(all.map(([, run]) => work(run)));
    const failed = done.find((one) => one.status === "rejected");
    if (failed?.reason instanceof Error) setProblem(failed.reason);
    // What was refused stays chosen, to be tried again.
    setChosen(new Map(all.filter((_, index) => done[index]?.status === "rejected")));
    runs.again();
  };
  const cancel = (run: Run) => (isJob(run) && !isOver(run.info.status) ? ask(job_cancel, { ...names, name: run.info.run_id }) : Promise.resolve());
  const archive = (run: Run) =>
    isJob(run)
      ? ask(job_delete, { ...names, name: run.info.run_id })
      : ask(mlflow_run_delete, names, { body: { run_id: run.info.run_id } });
  const tag = (pair: string) => (run: Run) => {
    const [key = "", ...value] = pair.split("=");
    return ask(mlflow_set_tag, names, { body: { run_id: run.info.run_id, key: key.trim(), value: value.join("=").trim() } });
  };
  const addTag = () => {
    const pair = window.prompt("Tag to add, as key=value");
    if (pair) void each(tag(pair));
  };
  const shown = useMemo(() => tableColumns(workspace.name, columns, chosen, choose, order), [workspace.name, columns, chosen, order]);
  const row = useCallback((index: number) => runs.row(index), [runs]);
  return (
    <div className="page-full">
      <header className="bar">
        <h1>Jobs</h1>
        <span className="dim" role="status">
          {runs.said}
        </span>
      </header>
      <div className="bar">
        <Filter value={filter} keys={runs.keys} set={(q) => askPlace({ q })} />
        <Views />
        <Chooser seen={runs.keys} chosen={columns} set={(list) => askPlace({ columns: list.join("\n") })} />
      </div>
      {chosen.size > 0 && (
        <div className="bar chosen" role="toolbar" aria-label="Chosen jobs">
          <b>{chosen.size} chosen</b>
          <button type="button" onClick={() => go(at(workspace.name, ["compare"], { runs: [...chosen.keys()].join(",") }))}>Compare</button>
          {works && (
            <>
              <button type="button" onClick={() => void each(cancel)}>Cancel</button>
              <button type="button" onClick={() => void each(archive)}>Archive</button>
              <button type="button" onClick={addTag}>Tag…</button>
            </>
          )}
          <button type="button" className="quiet" onClick={() => setChosen(new Map())}>Clear</button>
        </div>
      )}
      {problem !== undefined && <Problem error={problem} />}
      {runs.error !== undefined && <Problem error={runs.error} />}
      {runs.ready && runs.count === 0 ? (
        filter === "" ? (
          <Empty command="peregrine job create -f job.yml --stream">No job yet. Submit a first one:</Empty>
        ) : (
          <Empty>No job fits this filter.</Empty>
        )
      ) : (
        <Rows count={runs.count} row={row} columns={shown} onSight={runs.sight} label="Jobs" />
      )}
    </div>
  );
}

function tableColumns(workspace: string, extra: string[], chosen: ReadonlyMap<string, Run>, choose: (run: Run) => void, order: string): Column<Run>[] {
  const sort = (key: string, title: string) => {
    const next = order === `${key} DESC` ? `${key} ASC` : `${key} DESC`;
    const mark = order === `${key} DESC` ? " ▾" : order === `${key} ASC` ? " ▴" : "";
    return (
      <button type="button" className="sort" onClick={() => askPlace({ order: next })}>
        {title}
        {mark}
      </button>
    );
  };
  const sorted = (key: string): Sorted => (order === `${key} DESC` ? "descending" : order === `${key} ASC` ? "ascending" : "none");
  const fixed: Column<Run>[] = [
    {
      key: "choose",
      title: <span className="hidden">Choose</span>,
      px: 32,
      cell: (run) => (
        <input type="checkbox" checked={chosen.has(run.info.run_id)} onChange={() => choose(run)} aria-label={`Choose ${run.info.run_name}`} />
      ),
    },
    {
      key: "name",
      sorted: sorted("attributes.run_name"),
      title: sort("attributes.run_name", "Name"),
      px: 180,
      grow: 2,
      cell: ({ info }) => <Link to={at(workspace, ["jobs", info.run_id])}>{info.run_name}</Link>,
    },
    { key: "status", title: "Status", px: 110, cell: ({ info }) => <Badge status={status(info.status)} /> },
    { key: "start", sorted: sorted("attributes.start_time"), title: sort("attributes.start_time", "Started"), px: 130, cell: ({ info }) => <Ago at={info.start_time} /> },
    {
      key: "took",
      title: "Took",
      px: 100,
      cell: ({ info }) => (info.end_time ? span(info.end_time - info.start_time) : ""),
    },
    { key: "user", title: "By", px: 80, grow: 1, cell: ({ info }) => info.user_id },
  ];
  return [...fixed, ...extra.map((name) => extraColumn(name, sort, sorted))];
}

function extraColumn(name: string, sort: (key: string, title: string) => React.ReactNode, sorted: (key: string) => Sorted): Column<Run> {
  const [kind = "", ...rest] = name.split(".");
  const key = rest.join(".");
  const quoted = `${kind}.\`${key}\``;
  const value = (run: Run) => {
    const list = kind === "metrics" ? run.data.metrics : kind === "params" ? run.data.params : run.data.tags;
    const found = list?.find((one) => one.key === key)?.value;
    return found === undefined ? "" : kind === "metrics" ? number(found) : String(found);
  };
  return { key: name, sorted: sorted(quoted), title: sort(quoted, key), px: 90, grow: 1, cell: (run) => <span title={value(run)}>{value(run)}</span> };
}
