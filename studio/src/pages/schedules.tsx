// Schedules: when each starts what it starts, what it has started, and switching it on and off.
import { useState } from "react";
import { ask } from "../api/call.ts";
import { schedule_get, schedule_put, schedule_trigger, schedules } from "../api/routes.ts";
import type { Schedule } from "../api/shapes.ts";
import { all, onlyIf } from "../parts/all.ts";
import { useData } from "../parts/data.ts";
import { at } from "../parts/place.ts";
import { useScope } from "../parts/scope.ts";
import { Ago, Badge, Card, Copy, Empty, Facts, Link, List, Problem, Said, Wait } from "../parts/show.tsx";
import { time } from "../parts/words.ts";
import { yaml } from "../parts/yaml.ts";

const EVERY_MS = 4000;

export function Schedules({ name }: { name: string | undefined }) {
  return name === undefined ? <All /> : <One name={name} />;
}

const isOn = (one: Schedule) => one.properties.isEnabled !== false;
const words = (one: Schedule) => one.properties.properties?.["peregrine.state"] ?? "";

function All() {
  const { names, workspace } = useScope();
  // Whoever looks for one that is off wants to find it here.
  const found = useData("schedules", (signal) => all<Schedule>(schedules, names, { query: { listViewType: "All" }, signal }), EVERY_MS);
  return (
    <>
      <h1>Schedules</h1>
      <Wait on={found}>
        {({ value, nextLink }) =>
          value.length === 0 ? (
            <Empty command="peregrine schedule create -f schedule.yml">No schedule yet. One starts a job at times, or when data, a model or a job is new:</Empty>
          ) : (
            <List
              label="Schedules"
              more={Boolean(nextLink)}
              rows={value}
              id={(one) => one.name}
              columns={[
                ["Name", (one) => <Link to={at(workspace.name, ["schedules", one.name])}>{one.name}</Link>],
                ["State", (one) => <Badge status={isOn(one) ? "On" : "Off"} />],
                ["When", (one) => <Said>{words(one)}</Said>],
                ["Started last", (one) => <Ago at={one.properties.peregrine?.runs[0]?.dueAt} />],
                ["Description", (one) => one.properties.description],
              ]}
            />
          )
        }
      </Wait>
    </>
  );
}

function One({ name }: { name: string }) {
  const { names, workspace, works } = useScope();
  const params = { ...names, name };
  const [problem, setProblem] = useState<Error>();
  const found = useData(`schedule ${name}`, (signal) => ask<Schedule>(schedule_get, params, { signal }), EVERY_MS);
  const done = () => {
    setProblem(undefined);
    found.again();
  };
  const switched = (one: Schedule) => {
    ask(schedule_put, params, { body: { ...one, properties: { ...one.properties, isEnabled: !isOn(one) } }, headers: onlyIf(one) }).then(done, setProblem);
  };
  const start = () => ask(schedule_trigger, params, { body: {} }).then(done, setProblem);
  return (
    <>
      <p className="crumbs">
        <Link to={at(workspace.name, ["schedules"])}>Schedules</Link> / {name}
      </p>
      <Wait on={found}>
        {(one) => (
          <>
            <header className="bar">
              <h1>{name}</h1>
              <Badge status={isOn(one) ? "On" : "Off"} />
              <span className="grow" />
              {works && <button type="button" onClick={() => switched(one)}>{isOn(one) ? "Switch off" : "Switch on"}</button>}
              {works && <button type="button" onClick={() => void start()}>Start now</button>}
            </header>
            {problem !== undefined && <Problem error={problem} />}
            <div className="cards">
              <Card title="About">
                <Facts
                  facts={[
                    ["Description", one.properties.description],
                    ["When", <Said key="when">{words(one)}</Said>],
                    ["Starts", one.properties.action?.actionType],
                    ["Next", one.properties.peregrine?.next.map(time).join("\n")],
                    ["Made", <Ago key="made" at={one.systemData?.createdAt} />],
                    ["By", one.systemData?.createdBy],
                  ]}
                />
              </Card>
              <Card title="What it has started">
                <Started schedule={one} />
              </Card>
            </div>
            <Card title="Definition" aside={<Copy text={`peregrine schedule show -n ${name}`} />}>
              <pre tabIndex={0} aria-label="Definition">{yaml({ trigger: one.properties.trigger, action: one.properties.action })}</pre>
            </Card>
          </>
        )}
      </Wait>
    </>
  );
}

function Started({ schedule }: { schedule: Schedule }) {
  const { workspace } = useScope();
  const runs = schedule.properties.peregrine?.runs ?? [];
  if (runs.length === 0) return <Empty>It has started nothing yet.</Empty>;
  return (
    <List
      label="What it has started"
      rows={runs}
      id={(run) => `${run.dueAt} ${run.made ?? run.problem}`}
      columns={[
        ["Due", (run) => <time title={time(run.dueAt)}>{time(run.dueAt)}</time>],
        ["Because", (run) => <Said>{run.cause}</Said>],
        ["Job", (run) => run.made && <Link to={at(workspace.name, ["jobs", run.made])}>{run.made}</Link>],
        ["Problem", (run) => run.problem && <Said>{run.problem}</Said>],
      ]}
    />
  );
}
