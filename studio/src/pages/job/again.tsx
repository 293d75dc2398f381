// Run a job again, with changes.
import { useState } from "react";
import { ask } from "../../api/call.ts";
import { job_put } from "../../api/routes.ts";
import type { Job } from "../../api/shapes.ts";
import { Field, Form } from "../../parts/form.tsx";
import { at, go } from "../../parts/place.ts";
import { useScope } from "../../parts/scope.ts";
import { definition } from "./definition.tsx";

export function Again({ job, close }: { job: Job; close: () => void }) {
  const { names, workspace } = useScope();
  const { inputs = {}, command = "", displayName } = job.properties;
  const literal = Object.entries(inputs).filter(([, input]) => input.jobInputType === "literal");
  const [title, setTitle] = useState(displayName);
  const [words, setWords] = useState(command);
  const [values, setValues] = useState<Record<string, string>>(() => Object.fromEntries(literal.map(([name, input]) => [name, input.value ?? ""])));
  const send = async () => {
    const changed = Object.fromEntries(Object.entries(inputs).map(([name, input]) => [name, name in values ? { ...input, value: values[name] } : input]));
    const outputs = Object.fromEntries(Object.entries(job.properties.outputs ?? {}).map(([name, { uri, ...rest }]) => [name, (void uri, rest)]));
    const body = { properties: { ...definition(job), displayName: title, command: words, inputs: changed, outputs } };
    const name = `${job.name.replace(/_again_\w+$/, "").slice(0, 200)}_again_${crypto.randomUUID().slice(0, 8)}`;
    const made = await ask<Job>(job_put, { ...names, name }, { body });
    go(at(workspace.name, ["jobs", made.name]));
  };
  return (
    <Form title="Run again" does="Submit" send={send} close={close}>
      <Field label="Display name" value={title} set={setTitle} />
      {literal.map(([name]) => (
        <Field key={name} label={`Input ${name}`} optional value={values[name] ?? ""} set={(value) => setValues({ ...values, [name]: value })} />
      ))}
      <Field label="Command" lines={5} value={words} set={setWords} />
    </Form>
  );
}
