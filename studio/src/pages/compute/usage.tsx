// Who has what now and who has used how much lately: the people and the teams of this workspace, and the workspaces as a whole.
import { ask } from "../../api/call.ts";
import { teams, usage } from "../../api/routes.ts";
import type { Page, PersonUse, Team, UsageOf } from "../../api/shapes.ts";
import { useData } from "../../parts/data.ts";
import { useScope } from "../../parts/scope.ts";
import { Card, List, Wait } from "../../parts/show.tsx";
import { bytes } from "../../parts/words.ts";

const EVERY_MS = 10_000;

export function UsageByTeam() {
  const { workspace, names } = useScope();
  const found = useData(
    `usage ${workspace.name}`,
    (signal) => Promise.all([ask<Page<Team>>(teams, names, { signal }), ask<UsageOf>(usage, names, { query: { workspaces: "true" }, signal })]),
    EVERY_MS,
  );
  return (
    <Card title="Use, now and in the last seven days">
      <Wait on={found}>
        {([{ value: groups }, { value: people, workspaces = [] }]) => (
          <>
            <Table label={`Use in ${workspace.name}`} first="Person" rows={people} />
            {groups.length > 0 && (
              <>
                <h3>By team</h3>
                <Table label="Use by team" first="Team" rows={groups.map((team) => total(team.name, people.filter(({ user }) => team.people.includes(user))))} />
              </>
            )}
            {workspaces.length > 1 && (
              <>
                <h3>By workspace</h3>
                <Table label="Use by workspace" first="Workspace" rows={workspaces.map((one) => ({ ...one, user: one.workspace }))} />
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
