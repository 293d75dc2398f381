// What is going on: at work, waiting and why, failed lately, and how full the machines are.
import { ask } from "../api/call.ts";
import { online_endpoints, queue, workspace_usages } from "../api/routes.ts";
import type { Endpoint, Page, Queue, Run, Usage } from "../api/shapes.ts";
import { all } from "../parts/all.ts";
import { useData } from "../parts/data.ts";
import { at } from "../parts/place.ts";
import { isJob, search } from "../parts/runs.ts";
import { useScope } from "../parts/scope.ts";
import { Ago, Badge, Card, Empty, Link, Said, Wait } from "../parts/show.tsx";
import { span, status } from "../parts/words.ts";
import { Health, worstFirst } from "./endpoint/health.tsx";

const EVERY_MS = 3000;
const SHOWN = 8;

export function Home() {
  const { names, workspace } = useScope();
  const runs = (state: string) => (signal: AbortSignal) =>
    search(names, { filter: `attributes.status = '${state}'`, limit: SHOWN }, signal);
  const running = useData("running", runs("RUNNING"), EVERY_MS);
  const failed = useData("failed", runs("FAILED"), EVERY_MS);
  const waiting = useData("waiting", (signal) => ask<Queue>(queue, names, { signal }), EVERY_MS);
  const usages = useData("usages", (signal) => ask<Page<Usage>>(workspace_usages, names, { signal }), EVERY_MS);
  const endpoints = useData("endpoints", (signal) => all<Endpoint>(online_endpoints, names, { signal }), EVERY_MS);
  const nothing = [running, failed].every(({ data }) => data?.runs.length === 0) && waiting.data?.value.length === 0;
  const latest = useData("latest", (signal) => search(names, { limit: SHOWN }, signal), EVERY_MS);
  return (
    <>
      <h1>Home</h1>
      {nothing && latest.data?.runs.length === 0 && (
        <Empty command="peregrine job create -f job.yml --stream">Nothing has run in this workspace yet. Submit a first job:</Empty>
      )}
      <div className="cards">
        <Card title={`Running${counted(running.data?.runs, running.data?.more)}`}>
          <Wait on={running}>
            {({ runs }) => <RunList runs={runs} none="Nothing runs." about={(run) => `for ${span(Date.now() - run.info.start_time)}`} />}
          </Wait>
        </Card>
        <Card title={`Waiting${counted(waiting.data?.value, waiting.data?.more)}`} aside={<Link to={at(workspace.name, ["compute"])}>The queue</Link>}>
          <Wait on={waiting}>
            {({ value }) =>
              value.length === 0 ? (
                <p className="dim">Nothing waits.</p>
              ) : (
                <ul className="plain">
                  {value.slice(0, SHOWN).map((job) => (
                    <li key={job.name}>
                      <Link to={at(workspace.name, ["jobs", job.name])}>{job.displayName}</Link>
                      <span className="dim">
                        <Said>{job.note}</Said>
                      </span>
                    </li>
                  ))}
                </ul>
              )
            }
          </Wait>
        </Card>
        <Card title="Failed lately">
          <Wait on={failed}>
            {({ runs }) => <RunList runs={runs} none="Nothing has failed." about={(run) => <Ago at={run.info.end_time} />} />}
          </Wait>
        </Card>
        <Card title="Compute in use" aside={<Link to={at(workspace.name, ["compute"])}>All compute</Link>}>
          <Wait on={usages}>{({ value }) => <Meters usages={value} />}</Wait>
        </Card>
        <Card title="Endpoints" aside={<Link to={at(workspace.name, ["endpoints"])}>All endpoints</Link>}>
          <Wait on={endpoints}>
            {({ value }) =>
              value.length === 0 ? (
                <Empty command="peregrine online-endpoint create -f endpoint.yml">No endpoint yet.</Empty>
              ) : (
                <ul className="plain">
                  {worstFirst(value).slice(0, SHOWN).map((one) => (
                    <li key={one.name}>
                      <Link to={at(workspace.name, ["endpoints", one.name])}>{one.name}</Link>
                      <Health endpoint={one} />
                    </li>
                  ))}
                </ul>
              )
            }
          </Wait>
        </Card>
        <Card title="Latest" aside={<Link to={at(workspace.name, ["jobs"])}>All jobs</Link>}>
          <Wait on={latest}>
            {({ runs }) => <RunList runs={runs} none="No job yet." about={(run) => <Badge status={status(run.info.status)} />} />}
          </Wait>
        </Card>
      </div>
    </>
  );
}

function counted(found: unknown[] | undefined, more = false): string {
  if (found === undefined || found.length === 0) return "";
  return ` (${found.length}${more ? "+" : ""})`;
}

function RunList({ runs, none, about }: { runs: Run[]; none: string; about: (run: Run) => React.ReactNode }) {
  const { workspace } = useScope();
  if (runs.length === 0) return <p className="dim">{none}</p>;
  return (
    <ul className="plain">
      {runs.map((run) => (
        <li key={run.info.run_id}>
          <Link to={at(workspace.name, ["jobs", run.info.run_id])}>{run.info.run_name}</Link>
          <span className="dim">{about(run)}</span>
          {!isJob(run) && <span className="tag">run</span>}
        </li>
      ))}
    </ul>
  );
}

export function Meters({ usages }: { usages: Usage[] }) {
  const real = usages.filter(({ limit }) => limit > 0);
  if (real.length === 0) return <p className="dim">Nothing is counted yet.</p>;
  return (
    <ul className="plain meters">
      {real.map(({ name, currentValue, limit }) => (
        <li key={name.value}>
          <span>{name.value.replaceAll("`", "")}</span>
          <meter min={0} max={limit} value={currentValue} aria-label={name.value} />
          <span className="dim">
            {currentValue} of {limit}
          </span>
        </li>
      ))}
    </ul>
  );
}
