// One deployment behind an endpoint: how it is, and what its replica writes.
import { useState } from "react";
import { ask } from "../../api/call.ts";
import { online_deployment_logs } from "../../api/routes.ts";
import type { Deployment } from "../../api/shapes.ts";
import { useData } from "../../parts/data.ts";
import { Anchor } from "../../parts/linked.tsx";
import { at } from "../../parts/place.ts";
import { useScope } from "../../parts/scope.ts";
import { Badge, Card, Facts, Link, Wait } from "../../parts/show.tsx";
import { short } from "../../parts/words.ts";

export function DeploymentCard({ endpoint, deployment }: { endpoint: string; deployment: Deployment }) {
  const { names, workspace } = useScope();
  const [open, setOpen] = useState(false);
  const params = { ...names, name: endpoint, deployment: deployment.name };
  const log = useData(
    `log ${endpoint} ${deployment.name} ${open}`,
    (signal) => (open ? ask<{ content?: string }>(online_deployment_logs, params, { body: { tail: 500 }, signal }) : Promise.resolve({ content: "" })),
    open ? 3000 : 0,
  );
  const { properties } = deployment;
  return (
    <Card title={deployment.name} aside={<span className="aside"><Badge status={properties.provisioningState ?? ""} /><Anchor to={at(workspace.name, ["endpoints", endpoint], { deployment: deployment.name })} name={deployment.name} /></span>}>
      <Facts
        facts={[
          ["State", properties.properties?.["peregrine.state"]],
          ["Model", properties.model && <ModelLink id={properties.model} />],
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

/** A model that is registered is found by its version. */
function ModelLink({ id }: { id: string }) {
  const { workspace } = useScope();
  const [, name, version] = /\/models\/([^/]+)\/versions\/([^/]+)$/.exec(id) ?? [];
  if (name === undefined || version === undefined) return <>{short(id)}</>;
  return <Link to={at(workspace.name, ["models", name], { version })}>{short(id)}</Link>;
}
