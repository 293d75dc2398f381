// Teams: people of the workspace who share a quota; owners say who is in them.
import { useState } from "react";
import { ask } from "../../api/call.ts";
import { team_delete, team_put, teams } from "../../api/routes.ts";
import type { Page, Team } from "../../api/shapes.ts";
import { useData } from "../../parts/data.ts";
import { Field, Form } from "../../parts/form.tsx";
import { useScope } from "../../parts/scope.ts";
import { Card, Empty, List, Problem, Wait } from "../../parts/show.tsx";

const NEW: Team = { name: "", people: [] };

export function Teams() {
  const { names, owns } = useScope();
  const [changing, setChanging] = useState<Team>();
  const [problem, setProblem] = useState<Error>();
  const found = useData("teams", (signal) => ask<Page<Team>>(teams, names, { signal }), 10_000);
  const remove = ({ name }: Team) => {
    setProblem(undefined);
    if (window.confirm(`Take team ${name} away? Its people stay.`)) ask(team_delete, { ...names, name }).then(found.again, setProblem);
  };
  return (
    <Card title="Teams" aside={owns && <button type="button" onClick={() => setChanging(NEW)}>New team…</button>}>
      {problem !== undefined && <Problem error={problem} />}
      <Wait on={found}>
        {({ value }) =>
          value.length === 0 ? (
            <Empty command={`peregrine workspace team -n ${names.workspace} --team vision --people ada bob`}>No team yet. One is people of this workspace who share a quota:</Empty>
          ) : (
            <List
              label="Teams"
              rows={value}
              id={({ name }) => name}
              columns={[
                ["Name", ({ name }) => name],
                ["People", ({ people }) => people.join(", ")],
                [
                  "",
                  (team) =>
                    owns && (
                      <>
                        <button type="button" className="quiet" aria-label={`Change team ${team.name}`} onClick={() => setChanging(team)}>Change…</button>
                        <button type="button" className="quiet" aria-label={`Remove team ${team.name}`} onClick={() => remove(team)}>Remove…</button>
                      </>
                    ),
                ],
              ]}
            />
          )
        }
      </Wait>
      {changing !== undefined && <Change team={changing} close={() => setChanging(undefined)} done={found.again} />}
    </Card>
  );
}

function Change({ team, close, done }: { team: Team; close: () => void; done: () => void }) {
  const { names } = useScope();
  const [name, setName] = useState(team.name);
  const [people, setPeople] = useState(team.people.join("\n"));
  const send = async () => {
    const each = people.split("\n").map((line) => line.trim()).filter(Boolean);
    await ask(team_put, { ...names, name }, { body: { people: each } });
    done();
  };
  return (
    <Form title={team === NEW ? `A team of ${names.workspace}` : `Team ${team.name}`} does={team === NEW ? "Make it" : "Change it"} send={send} close={close}>
      {team === NEW && <Field label="Name" value={name} set={setName} />}
      <Field label="People" lines={4} value={people} set={setPeople} hint="Their names, one a line" />
    </Form>
  );
}
