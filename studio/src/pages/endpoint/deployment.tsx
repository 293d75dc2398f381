// One deployment behind an endpoint: how it is, and what its replica writes.
import { useState } from "react";
import { ask } from "../../api/call.ts";
import { online_deployment_logs } from "../../api/routes.ts";
import type { Deployment } from "../../api/shapes.ts";
import { useData } from "../../parts/data.ts";
import { useScope } from "../../parts/scope.ts";
import { Badge, Card, Facts, Wait } from "../../parts/show.tsx";
import { short } from "../../parts/words.ts";

export function DeploymentCard({ endpoint, deployment }: { endpoint: string; deployment: Deployment }) {
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
