// Who has which role in the workspace; owners give roles and take them away.
import { useState } from "react";
import { ask } from "../../api/call.ts";
import { principals, role_grant, role_revoke, roles } from "../../api/routes.ts";
import type { Page, Principal } from "../../api/shapes.ts";
import { useData } from "../../parts/data.ts";
import { Choice, Field, Form } from "../../parts/form.tsx";
import { useScope } from "../../parts/scope.ts";
import { Card, Empty, List, Problem, Wait } from "../../parts/show.tsx";

export const ROLES: [string, string][] = [
  ["reader", "reader: looks"],
  ["contributor", "contributor: works"],
  ["owner", "owner: works, and says who may"],
];

interface Person {
  principal: string;
  name: string;
  role: string;
  workspace: string;
}

export function People() {
  const { names } = useScope();
  const [giving, setGiving] = useState<Person | "someone">();
  const [problem, setProblem] = useState<Error>();
  const found = useData("roles", (signal) => ask<Page<Person>>(roles, names, { signal }), 10_000);
  const remove = ({ name, principal }: Person) => {
    setProblem(undefined);
    if (window.confirm(`Take the role of ${name} in ${names.workspace} away?`)) ask(role_revoke, { ...names, name: principal }).then(found.again, setProblem);
  };
  return (
    <Card title="People" aside={<button type="button" onClick={() => setGiving("someone")}>Give a role…</button>}>
      {problem !== undefined && <Problem error={problem} />}
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
                [
                  "",
                  (one) =>
                    one.workspace !== "*" && (
                      <>
                        <button type="button" className="quiet" aria-label={`Change the role of ${one.name}`} onClick={() => setGiving(one)}>Change…</button>
                        <button type="button" className="quiet" aria-label={`Remove ${one.name}`} onClick={() => remove(one)}>Remove…</button>
                      </>
                    ),
                ],
              ]}
            />
          )
        }
      </Wait>
      {giving !== undefined && <Give to={giving === "someone" ? undefined : giving} close={() => setGiving(undefined)} done={found.again} />}
    </Card>
  );
}

/** A role for someone who is known to the server. */
function Give({ to, close, done }: { to: Person | undefined; close: () => void; done: () => void }) {
  const { names, session } = useScope();
  const [principal, setPrincipal] = useState(to?.principal ?? "");
  const [role, setRole] = useState(to?.role ?? "contributor");
  // Only owners of the server see everyone it knows.
  const all = session.everywhere === "owner" && to === undefined;
  const known = useData("principals", (signal) => (all ? ask<Page<Principal>>(principals, {}, { signal }) : Promise.resolve({ value: [] })));
  const active = known.data?.value.filter(({ state }) => state === "active") ?? [];
  const send = async () => {
    await ask(role_grant, { ...names, name: principal }, { body: { role } });
    done();
  };
  return (
    <Form title={to ? `Role of ${to.name}` : `A role in ${names.workspace}`} does="Give it" send={send} close={close}>
      {to === undefined &&
        (active.length > 0 ? (
          <Choice label="To" value={principal} set={setPrincipal} options={[["", "choose"], ...active.map(({ clientId, name }): [string, string] => [clientId, `${name} (${clientId.slice(0, 8)})`])]} />
        ) : (
          <Field label="Client id" value={principal} set={setPrincipal} hint="As peregrine principal list shows it" />
        ))}
      <Choice label="Role" value={role} set={setRole} options={ROLES} />
    </Form>
  );
}
