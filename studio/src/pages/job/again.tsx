// Run a job again, with changes.
import { type FormEvent, useEffect, useRef, useState } from "react";
import { ask } from "../../api/call.ts";
import { job_put } from "../../api/routes.ts";
import type { Job } from "../../api/shapes.ts";
import { at, go } from "../../parts/place.ts";
import { useScope } from "../../parts/scope.ts";
import { Problem } from "../../parts/show.tsx";
import { definition } from "./definition.tsx";

export function Again({ job, close }: { job: Job; close: () => void }) {
  const { names, workspace } = useScope();
  const dialog = useRef<HTMLDialogElement>(null);
  const { inputs = {}, command = "", displayName } = job.properties;
  const literal = Object.entries(inputs).filter(([, input]) => input.jobInputType === "literal");
  const [title, setTitle] = useState(displayName);
  const [words, setWords] = useState(command);
  const [values, setValues] = useState<Record<string, string>>(() => Object.fromEntries(literal.map(([name, input]) => [name, input.value ?? ""])));
  const [problem, setProblem] = useState<Error>();
  useEffect(() => dialog.current?.showModal(), []);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    const changed = Object.fromEntries(Object.entries(inputs).map(([name, input]) => [name, name in values ? { ...input, value: values[name] } : input]));
    const outputs = Object.fromEntries(Object.entries(job.properties.outputs ?? {}).map(([name, { uri, ...rest }]) => [name, (void uri, rest)]));
    const body = { properties: { ...definition(job), displayName: title, command: words, inputs: changed, outputs } };
    const name = `${job.name.replace(/_again_\w+$/, "").slice(0, 200)}_again_${crypto.randomUUID().slice(0, 8)}`;
    try {
      const made = await ask<Job>(job_put, { ...names, name }, { body });
      close();
      go(at(workspace.name, ["jobs", made.name]));
    } catch (error) {
      setProblem(error instanceof Error ? error : new Error(String(error)));
    }
  };
  return (
    <dialog ref={dialog} className="form" onClose={close} aria-labelledby="again">
      <form onSubmit={(event) => void submit(event)}>
        <h2 id="again">Run again</h2>
        <label>
          Display name
          <input value={title} onChange={(event) => setTitle(event.target.value)} />
        </label>
        {literal.map(([name]) => (
          <label key={name}>
            Input {name}
            <input value={values[name]} onChange={(event) => setValues({ ...values, [name]: event.target.value })} />
          </label>
        ))}
        <label>
          Command
          <textarea rows={5} spellCheck={false} value={words} onChange={(event) => setWords(event.target.value)} />
        </label>
        {problem !== undefined && <Problem error={problem} />}
        <div className="bar">
          <button type="submit">Submit</button>
          <button type="button" className="quiet" onClick={close}>Leave it</button>
        </div>
      </form>
    </dialog>
  );
}
