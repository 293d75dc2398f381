// The tokens of the server: made, shown once, ended.
import { useState } from "react";
import { ask } from "../../api/call.ts";
import { principal_create, principal_revoke, principals } from "../../api/routes.ts";
import type { Page, Principal } from "../../api/shapes.ts";
import { useData } from "../../parts/data.ts";
import { Choice, Field, Form } from "../../parts/form.tsx";
import { useScope } from "../../parts/scope.ts";
import { Ago, Badge, Card, Copy, Empty, List, Problem, Wait } from "../../parts/show.tsx";
import { ROLES } from "./people.tsx";

export function Tokens() {
  const [making, setMaking] = useState(false);
  const [made, setMade] = useState<{ name: string; token: string }>();
  const [problem, setProblem] = useState<Error>();
  const found = useData("principals", (signal) => ask<Page<Principal>>(principals, {}, { signal }), 10_000);
  const revoke = ({ clientId, name }: Principal) => {
    setProblem(undefined);
    if (window.confirm(`End the access of ${name}? Whoever holds this token is refused from then on.`)) ask(principal_revoke, { id: clientId }).then(found.again, setProblem);
  };
  return (
    <Card title="Tokens of this server" aside={<button type="button" onClick={() => setMaking(true)}>New token…</button>}>
      {made !== undefined && (
        <div className="problem good" role="status">
          <strong>The token of {made.name}</strong>
          <p>It is shown now and never again. Hand it over where nobody else reads it.</p>
          <p>
            <Copy text={made.token} label={`Copy the token of ${made.name}`} /> <button type="button" className="quiet" onClick={() => setMade(undefined)}>I have it</button>
          </p>
        </div>
      )}
      {problem !== undefined && <Problem error={problem} />}
      <Wait on={found}>
        {({ value }) =>
          value.length === 0 ? (
            <Empty>Nobody was given a token yet.</Empty>
          ) : (
            <List
              label="Tokens"
              rows={value}
              id={(one) => one.clientId}
              columns={[
                ["Name", (one) => one.name],
                ["State", (one) => <Badge status={one.state} />],
                ["Roles", (one) => Object.entries(one.roles ?? {}).map(([where, role]) => `${role} ${where === "*" ? "everywhere" : `in ${where}`}`).join(", ")],
                ["Made", (one) => <Ago at={one.createdAt} />],
                ["Ends", (one) => one.expiresAt && new Date(one.expiresAt).toLocaleDateString()],
                ["", (one) => one.state === "active" && <button type="button" className="quiet" aria-label={`Revoke the token of ${one.name}`} onClick={() => revoke(one)}>Revoke…</button>],
              ]}
            />
          )
        }
      </Wait>
      {making && (
        <Make
          close={() => setMaking(false)}
          done={(next) => {
            setMade(next);
            found.again();
          }}
        />
      )}
    </Card>
  );
}

function Make({ close, done }: { close: () => void; done: (made: { name: string; token: string }) => void }) {
  const { workspace } = useScope();
  const [name, setName] = useState("");
  const [role, setRole] = useState("contributor");
  const [where, setWhere] = useState(workspace.name);
  const [days, setDays] = useState("365");
  const send = async () => {
    const body = { name, role, expiresInDays: Number(days), ...(where === "" ? {} : { workspace: where }) };
    done(await ask<{ name: string; token: string }>(principal_create, {}, { body }));
  };
  return (
    <Form title="A new token" does="Make it" send={send} close={close}>
      <Field label="Whose" value={name} set={setName} hint="A person's or a program's name" />
      <Choice label="Role" value={role} set={setRole} options={ROLES} />
      <Choice label="Where" value={where} set={setWhere} options={[[workspace.name, `in ${workspace.name}`], ["", "everywhere"]]} />
      <Field label="Days until it ends" type="number" value={days} set={setDays} />
    </Form>
  );
}
