// The workspace itself: who may work in it and have how much, where its data lies, what was changed.
import { useState } from "react";
import { ask } from "../api/call.ts";
import { datastores, workspace_audit } from "../api/routes.ts";
import type { AuditLine, Page, Resource } from "../api/shapes.ts";
import { all } from "../parts/all.ts";
import { useData } from "../parts/data.ts";
import { useScope } from "../parts/scope.ts";
import { Ago, Badge, Card, Copy, Facts, List, Wait } from "../parts/show.tsx";
import { People } from "./workspace/people.tsx";
import { Quotas } from "./workspace/quotas.tsx";
import { Teams } from "./workspace/teams.tsx";
import { Tokens } from "./workspace/tokens.tsx";

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
        <Teams />
        <Quotas />
      </div>
      {session.everywhere === "owner" && <Tokens />}
      {owns && <Audit />}
    </>
  );
}

function Stores() {
  const { names } = useScope();
  const found = useData("datastores", (signal) => all<Resource<{ datastoreType: string; isDefault?: boolean; description?: string }>>(datastores, names, { signal }));
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
