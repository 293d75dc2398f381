// The workspace itself: who may work in it, where its data lies, what was changed.
import { useState } from "react";
import { ask } from "../api/call.ts";
import { datastores, principals, roles, workspace_audit } from "../api/routes.ts";
import type { AuditLine, Page, Resource } from "../api/shapes.ts";
import { useData } from "../parts/data.ts";
import { useScope } from "../parts/scope.ts";
import { Ago, Badge, Card, Copy, Empty, Facts, List, Wait } from "../parts/show.tsx";

interface Person {
  principal: string;
  name: string;
  role: string;
  workspace: string;
}

interface Principal {
  clientId: string;
  name: string;
  state: string;
  createdAt: string;
  expiresAt: string | null;
}

export function WorkspacePage() {
  const { workspace, session, names, owns } = useScope();
  return (
    <>
      <h1>Workspace {workspace.name}</h1>
      <div className="cards">
        <Card title="About">
          <Facts
            facts={[
              ["Your role", workspace.role],
              ["Resource group", names.group],
              ["Subscription", names.subscription],
              ["Server", session.version],
              ["For the SDK and MLflow", <Copy key="env" text={'eval "$(peregrine sdk env)"'} />],
            ]}
          />
        </Card>
        <Stores />
        {owns ? <People /> : <Card title="People"><p className="dim">Owners of the workspace see who has which role.</p></Card>}
        {session.everywhere === "owner" && <Principals />}
      </div>
      {owns && <Audit />}
    </>
  );
}

function Stores() {
  const { names } = useScope();
  const found = useData("datastores", (signal) => ask<Page<Resource<{ datastoreType: string; isDefault?: boolean; description?: string }>>>(datastores, names, { signal }));
  return (
    <Card title="Datastores">
      <Wait on={found}>
        {({ value }) => (
          <List
            label="Datastores"
            rows={value}
            id={(store) => store.name}
            columns={[
              ["Name", (store) => store.name],
              ["Kind", (store) => store.properties.datastoreType],
              ["Default", (store) => (store.properties.isDefault ? "yes" : null)],
            ]}
          />
        )}
      </Wait>
    </Card>
  );
}

function People() {
  const { names } = useScope();
  const found = useData("roles", (signal) => ask<Page<Person>>(roles, names, { signal }), 10_000);
  return (
    <Card title="People">
      <Wait on={found}>
        {({ value }) =>
          value.length === 0 ? (
            <Empty command="peregrine principal create --name ada --role contributor">Only whoever holds this server&apos;s keys works here. Let someone in:</Empty>
          ) : (
            <List
              label="People"
              rows={value}
              id={(one) => one.principal + one.workspace}
              columns={[
                ["Name", (one) => one.name],
                ["Role", (one) => one.role],
                ["Where", (one) => (one.workspace === "*" ? "everywhere" : one.workspace)],
              ]}
            />
          )
        }
      </Wait>
    </Card>
  );
}

function Principals() {
  const found = useData("principals", (signal) => ask<Page<Principal>>(principals, {}, { signal }), 10_000);
  return (
    <Card title="Tokens of this server">
      <Wait on={found}>
        {({ value }) => (
          <List
            label="Tokens"
            rows={value}
            id={(one) => one.clientId}
            columns={[
              ["Name", (one) => one.name],
              ["State", (one) => one.state],
              ["Made", (one) => <Ago at={one.createdAt} />],
              ["Ends", (one) => one.expiresAt && new Date(one.expiresAt).toLocaleDateString()],
            ]}
          />
        )}
      </Wait>
    </Card>
  );
}

function Audit() {
  const { names } = useScope();
  const [most, setMost] = useState(50);
  const found = useData(`audit ${most}`, (signal) => ask<Page<AuditLine>>(workspace_audit, names, { query: { $top: most }, signal }), 5000);
  return (
    <Card title="Audit">
      <Wait on={found}>
        {({ value, nextLink }) => (
          <>
            <List
              label="Audit"
              rows={value.map((line, index) => ({ ...line, index }))}
              id={(line) => `${line.at} ${line.index}`}
              columns={[
                ["When", (line) => <Ago at={line.at} />],
                ["Who", (line) => line.caller],
                ["What", (line) => line.operation],
                ["Result", (line) => <Badge status={line.result} />],
                ["Where", (line) => <code className="wrap">{line.path.split("/workspaces/")[1] ?? line.path}</code>],
              ]}
            />
            {nextLink && most < 1000 && (
              <button type="button" onClick={() => setMost(Math.min(1000, most * 4))}>Show more</button>
            )}
          </>
        )}
      </Wait>
    </Card>
  );
}
