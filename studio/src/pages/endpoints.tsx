// Online endpoints: their addresses, the deployments behind them, trying them, what they answer, and their keys.
import { lazy } from "react";
import { ask } from "../api/call.ts";
import { online_deployments, online_endpoint_get, online_endpoints } from "../api/routes.ts";
import type { Deployment, Endpoint } from "../api/shapes.ts";
import { all } from "../parts/all.ts";
import { useData } from "../parts/data.ts";
import { Linked } from "../parts/linked.tsx";
import { at, usePlace } from "../parts/place.ts";
import { useScope } from "../parts/scope.ts";
import { Card, Copy, Empty, Facts, Link, List, Tabs, Wait } from "../parts/show.tsx";
import { DeploymentCard } from "./endpoint/deployment.tsx";
import { Health } from "./endpoint/health.tsx";
import { Keys } from "./endpoint/keys.tsx";
import { Traffic } from "./endpoint/traffic.tsx";
import { Try } from "./endpoint/try.tsx";

// What draws charts is fetched when a chart is wanted.
const Activity = lazy(async () => ({ default: (await import("./endpoint/activity.tsx")).Activity }));

const EVERY_MS = 4000;

export function Endpoints({ name, tab }: { name: string | undefined; tab: string }) {
  return name === undefined ? <All /> : <One name={name} tab={tab} />;
}

function All() {
  const { names, workspace } = useScope();
  const found = useData("endpoints", (signal) => all<Endpoint>(online_endpoints, names, { signal }), EVERY_MS);
  return (
    <>
      <h1>Endpoints</h1>
      <Wait on={found}>
        {({ value, nextLink }) =>
          value.length === 0 ? (
            <Empty command="peregrine online-endpoint create -f endpoint.yml">No endpoint yet. Make one, then put a deployment behind it:</Empty>
          ) : (
            <List
              label="Endpoints"
              more={Boolean(nextLink)}
              rows={value}
              id={(one) => one.name}
              columns={[
                ["Name", (one) => <Link to={at(workspace.name, ["endpoints", one.name])}>{one.name}</Link>],
                ["Health", (one) => <Health endpoint={one} />],
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

function One({ name, tab }: { name: string; tab: string }) {
  const { names, workspace, works } = useScope();
  const params = { ...names, name };
  const linked = usePlace().query.get("deployment");
  const endpoint = useData(`endpoint ${name}`, (signal) => ask<Endpoint>(online_endpoint_get, params, { signal }), EVERY_MS);
  const deployments = useData(`deployments ${name}`, (signal) => all<Deployment>(online_deployments, params, { signal }), EVERY_MS);
  const tabs: [string, string][] = [
    ["overview", "Overview"],
    ...(works ? ([["test", "Test"]] as [string, string][]) : []),
    ["activity", "Activity"],
    ...(works ? ([["keys", "Keys"]] as [string, string][]) : []),
  ];
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
              <Health endpoint={one} />
            </header>
            <Tabs label="Parts of the endpoint" tabs={tabs} here={tab} to={(part) => at(workspace.name, ["endpoints", name, part])} />
            {tab === "overview" && (
              <div className="cards">
                <Card title="About">
                  <Facts
                    facts={[
                      ["Description", one.properties.description],
                      ["Opened by", one.properties.authMode],
                      ["Address", one.properties.scoringUri && <Copy text={one.properties.scoringUri} />],
                    ]}
                  />
                </Card>
                <Wait on={deployments}>{({ value }) => <Traffic endpoint={one} deployments={value} works={works} changed={endpoint.again} />}</Wait>
              </div>
            )}
            {tab === "test" && works && <Wait on={deployments}>{({ value }) => <Try endpoint={one} deployments={value.map((each) => each.name)} />}</Wait>}
            {tab === "activity" && <Activity name={name} />}
            {tab === "keys" && works && <Keys endpoint={one} />}
          </>
        )}
      </Wait>
      {tab === "overview" && (
        <Wait on={deployments}>
          {({ value }) => (
            <div className="cards wide">
              {value.map((one) => (
                <Linked key={one.name} here={one.name === linked}>
                  <DeploymentCard endpoint={name} deployment={one} />
                </Linked>
              ))}
            </div>
          )}
        </Wait>
      )}
    </>
  );
}
