// Which deployment gets how much of the traffic.
import { useState } from "react";
import { ask } from "../../api/call.ts";
import { online_endpoint_put } from "../../api/routes.ts";
import type { Deployment, Endpoint } from "../../api/shapes.ts";
import { useScope } from "../../parts/scope.ts";
import { Card, Empty, Problem } from "../../parts/show.tsx";

export function Traffic({ endpoint, deployments, works, changed }: { endpoint: Endpoint; deployments: Deployment[]; works: boolean; changed: () => void }) {
  const { names } = useScope();
  const given = endpoint.properties.traffic ?? {};
  const [shares, setShares] = useState<Record<string, number>>();
  const [problem, setProblem] = useState<Error>();
  const now = shares ?? given;
  const sum = Object.values(now).reduce((total, share) => total + share, 0);
  const put = () => {
    const body = { ...endpoint, properties: { ...endpoint.properties, traffic: now } };
    ask(online_endpoint_put, { ...names, name: endpoint.name }, { body }).then(() => {
      setShares(undefined);
      setProblem(undefined);
      changed();
    }, setProblem);
  };
  return (
    <Card title="Traffic">
      {deployments.length === 0 && <Empty command="peregrine online-deployment create -f deployment.yml --all-traffic">No deployment yet.</Empty>}
      <ul className="plain meters">
        {deployments.map(({ name }) => (
          <li key={name}>
            <span>{name}</span>
            <input type="range" min={0} max={100} step={5} disabled={!works} aria-label={`Share of ${name}`} value={now[name] ?? 0} onChange={(event) => setShares({ ...now, [name]: Number(event.target.value) })} />
            <span className="dim">{now[name] ?? 0}%</span>
          </li>
        ))}
      </ul>
      {shares !== undefined && (
        <div className="bar">
          <button type="button" disabled={sum !== 100 && sum !== 0} onClick={put}>Apply</button>
          <button type="button" className="quiet" onClick={() => setShares(undefined)}>Leave it</button>
          {sum !== 100 && sum !== 0 && <span className="dim">the shares add up to {sum}%, not 100%</span>}
        </div>
      )}
      {problem !== undefined && <Problem error={problem} />}
    </Card>
  );
}
