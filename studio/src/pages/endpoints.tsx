// Online endpoints: their addresses, the deployments behind them, their share of traffic and their logs.
import { useState } from "react";
import { ask } from "../api/call.ts";
import { online_deployment_logs, online_deployments, online_endpoint_get, online_endpoint_put, online_endpoints } from "../api/routes.ts";
import type { DeploymentProperties, EndpointProperties, Page, Resource } from "../api/shapes.ts";
import { useData } from "../parts/data.ts";
import { at } from "../parts/place.ts";
import { useScope } from "../parts/scope.ts";
import { Badge, Card, Copy, Empty, Facts, Link, List, Problem, Wait } from "../parts/show.tsx";
import { short } from "../parts/words.ts";

type Endpoint = Resource<EndpointProperties>;
type Deployment = Resource<DeploymentProperties>;
const EVERY_MS = 4000;

export function Endpoints({ name }: { name: string | undefined }) {
  return name === undefined ? <All /> : <One name={name} />;
}

function All() {
  const { names, workspace } = useScope();
  const found = useData("endpoints", (signal) => ask<Page<Endpoint>>(online_endpoints, names, { signal }), EVERY_MS);
  return (
    <>
      <h1>Endpoints</h1>
      <Wait on={found}>
        {({ value }) =>
          value.length === 0 ? (
            <Empty command="peregrine online-endpoint create -f endpoint.yml">No endpoint yet. Make one, then put a deployment behind it:</Empty>
          ) : (
            <List
              label="Endpoints"
              rows={value}
              id={(one) => one.name}
              columns={[
                ["Name", (one) => <Link to={at(workspace.name, ["endpoints", one.name])}>{one.name}</Link>],
                ["State", (one) => <Badge status={one.properties.provisioningState ?? ""} />],
                ["Traffic", (one) => traffic(one.properties.traffic)],
                ["Opened by", (one) => one.properties.authMode],
              ]}
            />
          )
        }
      </Wait>
    </>
  );
}

function traffic(shares: Record<string, number> | undefined): string {
  return Object.entries(shares ?? {})
    .map(([name, share]) => `${name} ${share}%`)
    .join(", ");
}

function One({ name }: { name: string }) {
  const { names, workspace, works } = useScope();
  const params = { ...names, name };
  const endpoint = useData(`endpoint ${name}`, (signal) => ask<Endpoint>(online_endpoint_get, params, { signal }), EVERY_MS);
  const deployments = useData(`deployments ${name}`, (signal) => ask<Page<Deployment>>(online_deployments, params, { signal }), EVERY_MS);
  return (
    <>
      <p className="crumbs">
        <Link to={at(workspace.name, ["endpoints"])}>Endpoints</Link> / {name}
      </p>
      <Wait on={endpoint}>
        {(one) => (
          <>
            <header className="bar">
              <h1>{name}</h1>
              <Badge status={one.properties.provisioningState ?? ""} />
            </header>
            <div className="cards">
              <Card title="About">
                <Facts
                  facts={[
                    ["Description", one.properties.description],
                    ["Opened by", one.properties.authMode],
                    ["Address", one.properties.scoringUri && <Copy text={one.properties.scoringUri} />],
                    ["Its keys", <Copy key="keys" text={`peregrine online-endpoint get-credentials -n ${name}`} />],
                    ["Try it", <Copy key="try" text={`peregrine online-endpoint invoke -n ${name} --request-file request.json`} />],
                  ]}
                />
              </Card>
              <Wait on={deployments}>{({ value }) => <Traffic endpoint={one} deployments={value} works={works} changed={endpoint.again} />}</Wait>
            </div>
          </>
        )}
      </Wait>
      <Wait on={deployments}>
        {({ value }) => (
          <div className="cards wide">
            {value.map((one) => (
              <DeploymentCard key={one.name} endpoint={name} deployment={one} />
            ))}
          </div>
        )}
      </Wait>
    </>
  );
}

function Traffic({ endpoint, deployments, works, changed }: { endpoint: Endpoint; deployments: Deployment[]; works: boolean; changed: () => void }) {
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

function DeploymentCard({ endpoint, deployment }: { endpoint: string; deployment: Deployment }) {
  const { names } = useScope();
  const [open, setOpen] = useState(false);
  const params = { ...names, name: endpoint, deployment: deployment.name };
  const log = useData(
    `log ${endpoint} ${deployment.name} ${open}`,
    (signal) => (open ? ask<{ content?: string }>(online_deployment_logs, params, { body: { tail: 500 }, signal }) : Promise.resolve({ content: "" })),
    open ? 3000 : 0,
  );
  const { properties } = deployment;
  return (
    <Card title={deployment.name} aside={<Badge status={properties.provisioningState ?? ""} />}>
      <Facts
        facts={[
          ["State", properties.properties?.["peregrine.state"]],
          ["Model", short(properties.model)],
          ["Instance type", properties.instanceType],
        ]}
      />
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>Log</summary>
        <Wait on={log}>{({ content }) => <pre tabIndex={0}>{content || "nothing yet"}</pre>}</Wait>
      </details>
    </Card>
  );
}
