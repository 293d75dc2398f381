// Who has what now and who has used how much lately: the people and the teams of this workspace, and the workspaces as a whole.
import { ask } from "../../api/call.ts";
import { teams, usage } from "../../api/routes.ts";
import type { Page, PersonUse, Team } from "../../api/shapes.ts";
import { useData } from "../../parts/data.ts";
import { scopeOf, useScope } from "../../parts/scope.ts";
import { Card, List, Wait } from "../../parts/show.tsx";
import { bytes } from "../../parts/words.ts";

const EVERY_MS = 10_000;
/** Of so many workspaces the use is asked for. */
const MOST = 30;

export function UsageByTeam() {
  const { session, workspace, names } = useScope();
  const workspaces = [workspace, ...session.workspaces.filter(({ name }) => name !== workspace.name)].slice(0, MOST);
  const found = useData(
    `usage ${workspaces.map(({ name }) => name).join()}`,
    (signal) =>
      Promise.all([
        ask<Page<Team>>(teams, names, { signal }),
        Promise.all(workspaces.map((one) => ask<Page<PersonUse>>(usage, scopeOf(session, one).names, { signal }))),
      ]),
    EVERY_MS,
  );
  return (
    <Card title="Use, now and in the last seven days">
      <Wait on={found}>
        {([{ value: groups }, [here, ...others]]) => (
          <>
            <Table label={`Use in ${workspace.name}`} first="Person" rows={here?.value ?? []} />
            {groups.length > 0 && (
              <>
                <h3>By team</h3>
                <Table label="Use by team" first="Team" rows={groups.map(({ name, people }) => total(name, (here?.value ?? []).filter(({ user }) => people.includes(user))))} />
              </>
            )}
            {others.length > 0 && (
              <>
                <h3>By workspace</h3>
                <Table label="Use by workspace" first="Workspace" rows={[here, ...others].map((page, index) => total(workspaces[index]?.name ?? "", page?.value ?? []))} />
              </>
            )}
          </>
        )}
      </Wait>
    </Card>
  );
}

function total(user: string, people: PersonUse[]): PersonUse {
  const sum = (of: (one: PersonUse) => number) => people.reduce((all, one) => all + of(one), 0);
  return { user, jobs: sum((one) => one.jobs), cpus: sum((one) => one.cpus), memoryBytes: sum((one) => one.memoryBytes), gpus: sum((one) => one.gpus), coreHours: sum((one) => one.coreHours) };
}

function Table({ label, first, rows }: { label: string; first: string; rows: PersonUse[] }) {
  if (rows.length === 0) return <p className="dim">Nobody has used anything in the last seven days.</p>;
  const most = Math.max(...rows.map(({ coreHours }) => coreHours), 1e-9);
  return (
    <List
      label={label}
      rows={[...rows].sort((a, b) => b.coreHours - a.coreHours)}
      id={({ user }) => user}
      columns={[
        [first, ({ user }) => user],
        ["Jobs now", ({ jobs }) => String(jobs)],
        ["Cores", ({ cpus }) => String(cpus)],
        ["Memory", ({ memoryBytes }) => bytes(memoryBytes)],
        ["GPUs", ({ gpus }) => String(gpus)],
        [
          "Core-hours",
          ({ user, coreHours }) => (
            <span className="share">
              <meter min={0} max={most} value={coreHours} aria-label={`Core-hours of ${user}`} /> {coreHours.toFixed(coreHours < 10 ? 2 : 0)}
            </span>
          ),
        ],
      ]}
    />
  );
}
