// Which deployment gets how much of the traffic, and which is sent a copy of some of it. A change is made to the endpoint as it
// was when it was begun: where someone else has changed it meanwhile, it is refused.
import { useState } from "react";
import { ask } from "../../api/call.ts";
import { online_endpoint_put } from "../../api/routes.ts";
import type { Deployment, Endpoint } from "../../api/shapes.ts";
import { onlyIf } from "../../parts/all.ts";
import { useScope } from "../../parts/scope.ts";
import { Card, Empty, Problem } from "../../parts/show.tsx";

type Shares = Record<string, number>;

interface Draft {
  /** The endpoint as it was when the change was begun. */
  from: Endpoint;
  live: Shares;
  copied: Shares;
}

export function Traffic({ endpoint, deployments, works, changed }: { endpoint: Endpoint; deployments: Deployment[]; works: boolean; changed: () => void }) {
  const { names } = useScope();
  const [draft, setDraft] = useState<Draft>();
  const [problem, setProblem] = useState<Error>();
  const given: Draft = { from: endpoint, live: endpoint.properties.traffic ?? {}, copied: endpoint.properties.mirrorTraffic ?? {} };
  const now = draft ?? given;
  const sum = Object.values(now.live).reduce((total, share) => total + share, 0);
  const mirrored = Object.keys(now.copied).find((name) => (now.copied[name] ?? 0) > 0) ?? "";
  const leave = () => {
    setDraft(undefined);
    setProblem(undefined);
  };
  const put = () => {
    const { from, live, copied } = now;
    const body = { ...from, properties: { ...from.properties, traffic: live, mirrorTraffic: copied } };
    ask(online_endpoint_put, { ...names, name: endpoint.name }, { body, headers: onlyIf(from) }).then(() => {
      leave();
      changed();
    }, setProblem);
  };
  const share = (name: string, value: number) => setDraft({ ...now, live: { ...now.live, [name]: Math.min(100, Math.max(0, Math.round(value || 0))) } });
  return (
    <Card title="Traffic">
      {deployments.length === 0 && <Empty command="peregrine online-deployment create -f deployment.yml --all-traffic">No deployment yet.</Empty>}
      <ul className="plain meters">
        {deployments.map((deployment) => (
          <Share key={deployment.name} deployment={deployment} value={now.live[deployment.name] ?? 0} works={works} set={(value) => share(deployment.name, value)} />
        ))}
      </ul>
      {deployments.length > 1 && (
        <Mirror deployments={deployments.filter(({ name }) => !now.live[name])} name={mirrored} share={now.copied[mirrored] ?? 0} works={works} set={(copied) => setDraft({ ...now, copied })} />
      )}
      {draft !== undefined && (
        <div className="bar">
          <button type="button" disabled={sum !== 100 && sum !== 0} onClick={put}>Apply</button>
          {deployments.length > 1 && <button type="button" className="quiet" onClick={() => setDraft({ ...now, live: even(deployments) })}>All alike</button>}
          <button type="button" className="quiet" onClick={leave}>Leave it</button>
          {sum !== 100 && sum !== 0 && <span className="dim">the shares add up to {sum}%, not 100%</span>}
        </div>
      )}
      {problem !== undefined && <Problem error={problem} />}
    </Card>
  );
}

/** As equal as whole percents can be. */
function even(deployments: Deployment[]): Shares {
  const least = Math.floor(100 / deployments.length);
  const over = 100 - least * deployments.length;
  return Object.fromEntries(deployments.map(({ name }, index) => [name, least + (index >= deployments.length - over ? 1 : 0)]));
}

function Share({ deployment: { name, properties }, value, works, set }: { deployment: Deployment; value: number; works: boolean; set: (share: number) => void }) {
  const silent = value > 0 && !/^[1-9]/.test(properties.properties?.["peregrine.state"] ?? "");
  return (
    <li>
      <span>
        {name}
        {silent && <small className="warn"> no replica is ready; requests it gets wait or fail</small>}
      </span>
      <input type="range" min={0} max={100} step={1} disabled={!works} aria-label={`Share of ${name}`} value={value} onChange={(event) => set(Number(event.target.value))} />
      <span className="dim">
        <input type="number" className="percent" min={0} max={100} disabled={!works} aria-label={`Percent of ${name}`} value={value} onChange={(event) => set(Number(event.target.value))} />%
      </span>
    </li>
  );
}

/** One deployment without traffic of its own may be sent copies, whose answers nobody sees. */
function Mirror({ deployments, name, share, works, set }: { deployments: Deployment[]; name: string; share: number; works: boolean; set: (copied: Shares) => void }) {
  return (
    <div className="bar">
      <label>
        Copies go to{" "}
        <select value={name} disabled={!works} onChange={(event) => set(event.target.value === "" ? {} : { [event.target.value]: share || 10 })}>
          <option value="">nobody</option>
          {[...new Set([name, ...deployments.map((one) => one.name)])].filter(Boolean).map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
      </label>
      {name !== "" && (
        <label>
          of <input type="number" className="percent" min={1} max={50} disabled={!works} aria-label={`Percent copied to ${name}`} value={share} onChange={(event) => set({ [name]: Number(event.target.value) })} />% of the requests
        </label>
      )}
    </div>
  );
}
