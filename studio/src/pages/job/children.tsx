// Jobs that a job started: the steps of a pipeline as a graph; those of a sweep are its trials.
import { ask } from "../../api/call.ts";
import { job_graph } from "../../api/routes.ts";
import type { Job } from "../../api/shapes.ts";
import { useData } from "../../parts/data.ts";
import { Choice } from "../../parts/form.tsx";
import { ask as look, at, go, usePlace } from "../../parts/place.ts";
import { useScope } from "../../parts/scope.ts";
import { Badge, Card, Link, List, Said, Wait } from "../../parts/show.tsx";
import { mood } from "../../parts/words.ts";
import { layers, type Step } from "./layers.ts";
import { Trials } from "./trials.tsx";

const EVERY_MS = 2000;

export function Children({ job, over }: { job: Job; over: boolean }) {
  return job.properties.jobType === "Pipeline" ? <Steps name={job.name} over={over} /> : <Trials job={job} over={over} />;
}

function Steps({ name, over }: { name: string; over: boolean }) {
  const { names, workspace } = useScope();
  const graph = useData(`graph ${name}`, (signal) => ask<{ steps: Step[] }>(job_graph, { ...names, name }, { signal }), over ? 0 : EVERY_MS);
  const to = (job: string) => at(workspace.name, ["jobs", job]);
  const within = usePlace().query.get("within") ?? "";
  return (
    <Wait on={graph}>
      {({ steps: all }) => {
        const nested = nests(all);
        const steps = all.filter(({ name }) => within === "" || name.startsWith(`${within}.`));
        return (
          <>
            {nested.length > 0 && (
              <div className="bar">
                <Choice label="Show" value={within} set={(next) => look({ within: next })} options={[["", "the whole pipeline"], ...nested.map((one): [string, string] => [one, `inside ${one}`])]} />
              </div>
            )}
            <Graph steps={steps} />
            <Card title="Steps">
              <List
                label="Steps"
                rows={steps}
                id={(step) => step.name}
                columns={[
                  ["Step", (step) => (step.job ? <Link to={to(step.job)}>{step.name}</Link> : step.name)],
                  ["Status", (step) => <Badge status={step.status} />],
                  ["Reused", (step) => <Reuse step={step} to={to} />],
                  ["After", (step) => step.after.join(", ")],
                  ["Why", (step) => step.message && <Said>{step.message}</Said>],
                ]}
              />
            </Card>
          </>
        );
      }}
    </Wait>
  );
}

/** Which earlier job stands for a step, or why none does. */
function Reuse({ step: { reused, reuse = "" }, to }: { step: Step; to: (job: string) => string }) {
  if (reused) return <>from <Link to={to(reused)}>{reused}</Link></>;
  return reuse === "" ? null : <span className="dim">no: <Said>{reuse.replace(/^it runs anew: /, "")}</Said></span>;
}

/** The pipelines inside a pipeline, by the paths of their steps. */
function nests(steps: Step[]): string[] {
  const paths = steps.flatMap(({ name }) => name.split(".").slice(0, -1).map((_, end, parts) => parts.slice(0, end + 1).join(".")));
  return [...new Set(paths)].sort();
}

/** A text in the room there is. */
function cut(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

const [WIDTH, HEIGHT, GAP_X, GAP_Y] = [190, 44, 50, 22];

function Graph({ steps }: { steps: Step[] }) {
  const { workspace } = useScope();
  const { places, columns, rows } = layers(steps);
  const x = (column: number) => column * (WIDTH + GAP_X) + 8;
  const y = (row: number) => row * (HEIGHT + GAP_Y) + 8;
  const edge = (from: string, to: string) => {
    const [a, b] = [places.get(from), places.get(to)];
    if (!a || !b) return null;
    const [x1, y1, x2, y2] = [x(a.column) + WIDTH, y(a.row) + HEIGHT / 2, x(b.column), y(b.row) + HEIGHT / 2];
    return <path key={`${from} ${to}`} d={`M${x1} ${y1}C${x1 + 30} ${y1} ${x2 - 30} ${y2} ${x2} ${y2}`} />;
  };
  return (
    <div className="graph scroll" tabIndex={0}>
      <svg width={x(columns) + 8} height={y(rows) + 8} role="img" aria-label={`Graph of ${steps.length} steps`}>
        {steps.flatMap(({ name, after }) => after.map((from) => edge(from, name)))}
        {steps.map(({ name, status, job, reused, reuse }) => {
          const place = places.get(name) ?? { column: 0, row: 0 };
          return (
            <g key={name} className={mood(status)} transform={`translate(${x(place.column)} ${y(place.row)})`} onClick={() => job && go(at(workspace.name, ["jobs", job]))}>
              {reuse !== undefined && <title>{reuse}</title>}
              <rect width={WIDTH} height={HEIGHT} rx={6} />
              <text x={10} y={19}>{cut(name, 24)}</text>
              <text x={10} y={35} className="small">{reused ? `reused from ${cut(reused, 14)}` : status}</text>
            </g>
          );
        })}
      </svg>
    </div>
  );
}
