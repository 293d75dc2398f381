// How much may be held at once, and by whom what of it is in use; owners set it.
import { useState } from "react";
import { ask } from "../../api/call.ts";
import { quota_put, quotas } from "../../api/routes.ts";
import type { Limits, Page, Quota } from "../../api/shapes.ts";
import { useData } from "../../parts/data.ts";
import { Choice, Field, Form } from "../../parts/form.tsx";
import { useScope } from "../../parts/scope.ts";
import { Card, Empty, List, Problem, Wait } from "../../parts/show.tsx";
import { bytes } from "../../parts/words.ts";

export function Quotas() {
  const { names, owns } = useScope();
  const [setting, setSetting] = useState(false);
  const [problem, setProblem] = useState<Error>();
  const found = useData("quotas", (signal) => ask<Page<Quota>>(quotas, names, { signal }), 10_000);
  const clear = ({ user, target }: Quota) => {
    setProblem(undefined);
    ask(quota_put, names, { body: { user, ...(target === null ? {} : { target }) } }).then(found.again, setProblem);
  };
  return (
    <Card title="Quotas" aside={owns && <button type="button" onClick={() => setSetting(true)}>Set a quota…</button>}>
      {problem !== undefined && <Problem error={problem} />}
      <Wait on={found}>
        {({ value }) =>
          value.length === 0 ? (
            <Empty command={`peregrine workspace quota -n ${names.workspace} --each-user --jobs 10`}>Everyone may use all there is.</Empty>
          ) : (
            <List
              label="Quotas"
              rows={value}
              id={({ user, target }) => `${user} ${target}`}
              columns={[
                ["Whose", whose],
                ["On", ({ target }) => target ?? "all targets"],
                ["At most", ({ limits }) => amounts(limits)],
                ["In use", ({ inUse }) => (inUse.length === 0 ? <span className="dim">nothing</span> : inUse.map((one) => <div key={one.user}>{one.user === "" ? "" : `${one.user}: `}{amounts(one)}</div>))],
                ["", (quota) => owns && <button type="button" className="quiet" aria-label={`Clear the quota of ${whose(quota)}`} onClick={() => clear(quota)}>Clear</button>],
              ]}
            />
          )
        }
      </Wait>
      {setting && <Set close={() => setSetting(false)} done={found.again} />}
    </Card>
  );
}

function whose({ user, team }: Quota): string {
  if (team !== null) return `team ${team}`;
  return user === "" ? "the workspace" : user === "*" ? "everyone, each" : user;
}

function amounts({ cpus, memoryBytes, gpus, jobs }: Limits): string {
  const parts = [cpus !== null && `${cpus} cores`, memoryBytes !== null && bytes(memoryBytes), gpus !== null && `${gpus} GPUs`, jobs !== null && `${jobs} jobs`];
  return parts.filter(Boolean).join(", ");
}

function Set({ close, done }: { close: () => void; done: () => void }) {
  const { names, session } = useScope();
  const [draft, setDraft] = useState<Record<string, string>>({ whose: "*" });
  const field = (key: string) => ({ value: draft[key] ?? "", set: (value: string) => setDraft({ ...draft, [key]: value }) });
  const send = async () => {
    const { whose, person, team, target, cpus, memory, gpus, jobs } = draft;
    const count = (text: string | undefined) => (text ? Number(text) : undefined);
    const whom = whose === "team" ? { team } : { user: whose === "one" ? person : whose };
    const body = { ...whom, target: target || undefined, cpus: cpus || undefined, memory: memory || undefined, gpus: count(gpus), jobs: count(jobs) };
    if (![cpus, memory, gpus, jobs].some(Boolean)) throw new Error("say how much of something: cores, memory, GPUs or jobs");
    await ask(quota_put, names, { body });
    done();
  };
  // What a workspace may have as a whole is for owners of the server to say.
  const options: [string, string][] = [["*", "everyone in it, each alone"], ["one", "one person"], ["team", "a team as a whole"], ...(session.everywhere === "owner" ? ([["", "the workspace as a whole"]] as [string, string][]) : [])];
  return (
    <Form title="Set a quota" does="Set it" send={send} close={close}>
      <Choice label="For" {...field("whose")} options={options} />
      {draft["whose"] === "one" && <Field label="Person" {...field("person")} />}
      {draft["whose"] === "team" && <Field label="Team" {...field("team")} />}
      <Field label="On target" optional {...field("target")} hint="All targets where it is empty" />
      <Field label="Cores" optional {...field("cpus")} />
      <Field label="Memory" optional {...field("memory")} hint="As in 64Gi" />
      <Field label="GPUs" optional type="number" {...field("gpus")} />
      <Field label="Jobs at a time" optional type="number" {...field("jobs")} />
    </Form>
  );
}
