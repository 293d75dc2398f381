// Jobs that a job started: the steps of a pipeline as a graph, the trials of a sweep as they come.
import { ask } from "../../api/call.ts";
import { run_children } from "../../api/routes.ts";
import type { Job } from "../../api/shapes.ts";
import { useData } from "../../parts/data.ts";
import { at, go } from "../../parts/place.ts";
import { useScope } from "../../parts/scope.ts";
import { Badge, Card, Empty, Link, List, Wait } from "../../parts/show.tsx";
import { mood } from "../../parts/words.ts";
import { layers } from "./layers.ts";

interface Child {
  runId: string;
  displayName?: string;
  status: string;
  properties?: Record<string, string>;
  tags?: Record<string, string>;
}

export function Children({ name, job, over }: { name: string; job: Job | undefined; over: boolean }) {
  const { names, workspace } = useScope();
  const children = useData(
    `children ${name}`,
    async (signal) => (await ask<{ value?: Child[] }>(run_children, { ...names, name }, { signal })).value ?? [],
    over ? 0 : 3000,
  );
  const steps = job?.properties.jobs;
  return (
    <Wait on={children}>
      {(value) => (
        <>
          {steps && <Graph steps={steps} children={value} />}
          {value.length === 0 ? (
            <Empty>Nothing has started yet.</Empty>
          ) : (
            <Card title={steps ? "Steps" : "Trials"}>
              <List
                label="Jobs it started"
                rows={value}
                id={(child) => child.runId}
                columns={[
                  ["Name", (child) => <Link to={at(workspace.name, ["jobs", child.runId])}>{child.displayName ?? child.runId}</Link>],
                  ["Status", (child) => <Badge status={child.status} />],
                ]}
              />
            </Card>
          )}
        </>
      )}
    </Wait>
  );
}

const [WIDTH, HEIGHT, GAP_X, GAP_Y] = [190, 44, 50, 22];

function Graph({ steps, children }: { steps: Record<string, Record<string, unknown>>; children: Child[] }) {
  const { workspace } = useScope();
  const { places, edges, columns, rows } = layers(steps);
  const x = (column: number) => column * (WIDTH + GAP_X) + 8;
  const y = (row: number) => row * (HEIGHT + GAP_Y) + 8;
  const childOf = (step: string) => children.find((child) => child.displayName === step || child.runId.endsWith(`_${step}`) || child.tags?.["peregrine.step"] === step);
  return (
    <div className="graph scroll" tabIndex={0}>
      <svg width={x(columns) + 8} height={y(rows) + 8} role="img" aria-label={`Graph of ${places.size} steps`}>
        {edges.map(([from, to]) => {
          const [a, b] = [places.get(from), places.get(to)];
          if (!a || !b) return null;
          const [x1, y1, x2, y2] = [x(a.column) + WIDTH, y(a.row) + HEIGHT / 2, x(b.column), y(b.row) + HEIGHT / 2];
          return <path key={`${from} ${to}`} d={`M${x1} ${y1}C${x1 + 30} ${y1} ${x2 - 30} ${y2} ${x2} ${y2}`} />;
        })}
        {[...places].map(([step, place]) => {
          const child = childOf(step);
          return (
            <g
              key={step}
              className={mood(child?.status ?? "")}
              transform={`translate(${x(place.column)} ${y(place.row)})`}
              onClick={() => child && go(at(workspace.name, ["jobs", child.runId]))}
            >
              <rect width={WIDTH} height={HEIGHT} rx={6} />
              <text x={10} y={19}>{step.length > 24 ? `${step.slice(0, 23)}…` : step}</text>
              <text x={10} y={35} className="small">{child?.status ?? "not started"}</text>
            </g>
          );
        })}
      </svg>
    </div>
  );
}
