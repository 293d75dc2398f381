// One value of each run against another, coloured by a third.
import { useState } from "react";
import { at, go } from "../../parts/place.ts";
import { useScope } from "../../parts/scope.ts";
import { Card, Link, List } from "../../parts/show.tsx";
import { Choice } from "../../parts/form.tsx";
import { number } from "../../parts/words.ts";
import { type Axis, shade, spread } from "./parallel.tsx";

const [WIDTH, HEIGHT, LEFT, BOTTOM, EDGE] = [640, 320, 70, 34, 14];
const TICKS = [0, 0.25, 0.5, 0.75, 1];

export interface Named {
  id: string;
  name: string;
}

export function Scatter({ axes, runs }: { axes: Axis[]; runs: Named[] }) {
  const { workspace } = useScope();
  const metric = axes.find(({ name }) => name.startsWith("metrics."))?.name ?? "";
  const [chosen, setChosen] = useState<{ x?: string; y?: string; by?: string }>({});
  const axis = (name: string | undefined, usual: Axis | undefined) => axes.find((one) => one.name === name) ?? usual;
  const x = axis(chosen.x, axes[0]);
  const y = axis(chosen.y, axes.find(({ name }) => name === metric) ?? axes[1]);
  const by = axis(chosen.by, y);
  if (!x || !y || !by) return null;
  const options = axes.map(({ name }): [string, string] => [name, name]);
  const place = (of: Axis, value: number, from: number, to: number) => {
    const [low, high] = spread(of);
    return from + ((value - low) / (high - low)) * (to - from);
  };
  const px = (value: number) => place(x, value, LEFT, WIDTH - EDGE);
  const py = (value: number) => place(y, value, HEIGHT - BOTTOM, EDGE);
  const between = (of: Axis, share: number) => spread(of)[0] + (spread(of)[1] - spread(of)[0]) * share;
  return (
    <Card title="One against another">
      <div className="bar">
        <Choice label="Across" value={x.name} set={(name) => setChosen({ ...chosen, x: name })} options={options} />
        <Choice label="Up" value={y.name} set={(name) => setChosen({ ...chosen, y: name })} options={options} />
        <Choice label="Colour" value={by.name} set={(name) => setChosen({ ...chosen, by: name })} options={options} />
      </div>
      <svg className="scatter" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={`${runs.length} runs: ${y.name} over ${x.name}`}>
        {TICKS.map((share) => (
          <g key={share}>
            <line x1={LEFT} x2={WIDTH - EDGE} y1={py(between(y, share))} y2={py(between(y, share))} />
            <text x={LEFT - 8} y={py(between(y, share)) + 4} textAnchor="end">{number(between(y, share))}</text>
            <text x={px(between(x, share))} y={HEIGHT - BOTTOM + 18} textAnchor={share === 1 ? "end" : "middle"}>{number(between(x, share))}</text>
          </g>
        ))}
        {runs.map(({ id, name }, run) => {
          const [a, b, c] = [x.values[run], y.values[run], by.values[run]];
          if (typeof a !== "number" || typeof b !== "number") return null;
          return (
            <circle key={id} cx={px(a)} cy={py(b)} r={5} fill={shade(by, c ?? null)} onClick={() => go(at(workspace.name, ["jobs", id]))}>
              <title>{`${name}: ${x.name} ${number(a)}, ${y.name} ${number(b)}`}</title>
            </circle>
          );
        })}
      </svg>
      <details>
        <summary>As a table</summary>
        <List
          label={`${y.name} over ${x.name}`}
          rows={runs.map((run, index) => ({ ...run, x: x.values[index], y: y.values[index] }))}
          id={({ id }) => id}
          columns={[
            ["Run", ({ id, name }) => <Link to={at(workspace.name, ["jobs", id])}>{name}</Link>],
            [x.name, (run) => (typeof run.x === "number" ? number(run.x) : "")],
            [y.name === x.name ? `${y.name} (up)` : y.name, (run) => (typeof run.y === "number" ? number(run.y) : "")],
          ]}
        />
      </details>
    </Card>
  );
}
