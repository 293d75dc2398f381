// Run a job again, with changes; a pipeline or a sweep as it was, under another name.
import { useState } from "react";
import { ask } from "../../api/call.ts";
import { job_put } from "../../api/routes.ts";
import type { Input, Job } from "../../api/shapes.ts";
import { Field, Form } from "../../parts/form.tsx";
import { at, go } from "../../parts/place.ts";
import { useScope } from "../../parts/scope.ts";
import { short } from "../../parts/words.ts";
import { definition } from "./definition.tsx";

export function Again({ job, close }: { job: Job; close: () => void }) {
  const { names, workspace } = useScope();
  const command = job.properties.jobType === "Command";
  const [draft, setDraft] = useState(() => drafted(job));
  const field = (key: string) => ({ value: draft[key] ?? "", set: (value: string) => setDraft({ ...draft, [key]: value }) });
  const send = async () => {
    const name = `${job.name.replace(/_again_\w+$/, "").slice(0, 200)}_again_${crypto.randomUUID().slice(0, 8)}`;
    const made = await ask<Job>(job_put, { ...names, name }, { body: { properties: changed(job, draft) } });
    go(at(workspace.name, ["jobs", made.name]));
  };
  return (
    <Form title="Run again" does="Submit" send={send} close={close}>
      <Field label="Display name" {...field("title")} />
      <Field label="Experiment" {...field("experiment")} />
      {Object.entries(job.properties.inputs ?? {}).map(([name, input]) => (
        <Field key={name} label={`Input ${name}`} optional={literal(input)} {...field(`input ${name}`)} {...(literal(input) ? {} : { hint: `A ${input.jobInputType}: azureml:NAME:VERSION, or where it lies` })} />
      ))}
      {command && (
        <>
          <Field label="Compute target" optional {...field("compute")} />
          <Field label="Instance type" optional {...field("size")} hint="Empty for the usual one of the target" />
          <Field label="Environment variables" optional lines={3} {...field("variables")} hint="One a line: NAME=value" />
          <Field label="Command" lines={5} {...field("command")} />
        </>
      )}
    </Form>
  );
}

function literal(input: Input): boolean {
  return input.jobInputType === "literal";
}

/** What the fields say at first. */
function drafted({ properties }: Job): Record<string, string> {
  const inputs = Object.entries(properties.inputs ?? {}).map(([name, input]) => [`input ${name}`, input.value ?? input.uri ?? ""]);
  return {
    ...(Object.fromEntries(inputs) as Record<string, string>),
    title: properties.displayName,
    experiment: properties.experimentName,
    compute: short(properties.computeId).replace(/^azureml:/, ""),
    size: properties.resources?.instanceType ?? "",
    variables: written(properties.environmentVariables),
    command: properties.command ?? "",
  };
}

/** The definition of a job with what the fields say; what nobody has changed stays word for word. */
function changed(job: Job, draft: Record<string, string>): Record<string, unknown> {
  const { properties } = job;
  const old = drafted(job);
  const differs = (key: string) => draft[key] !== old[key];
  const inputs = Object.entries(properties.inputs ?? {}).map(([name, input]) => {
    const said = draft[`input ${name}`] ?? "";
    return [name, differs(`input ${name}`) ? { ...input, [literal(input) ? "value" : "uri"]: said } : input];
  });
  const outputs = Object.entries(properties.outputs ?? {}).map(([name, { uri, ...rest }]) => {
    // Where it lay the last time was added by the server, unless someone chose it.
    return [name, uri === undefined || uri.includes(`/azureml/${job.name}`) ? rest : { uri, ...rest }];
  });
  return {
    ...definition(job),
    displayName: draft["title"],
    experimentName: draft["experiment"],
    inputs: Object.fromEntries(inputs),
    outputs: Object.fromEntries(outputs),
    ...(differs("compute") ? { computeId: draft["compute"] === "" ? null : `azureml:${draft["compute"]}` } : {}),
    ...(differs("size") ? { resources: { ...properties.resources, instanceType: draft["size"] === "" ? null : draft["size"] } } : {}),
    ...(differs("variables") ? { environmentVariables: read(draft["variables"] ?? "") } : {}),
    ...(properties.jobType === "Command" ? { command: draft["command"] } : {}),
  };
}

/** Values of several lines are written with their ends as JSON has them. */
function written(variables: Record<string, string> | undefined): string {
  return Object.entries(variables ?? {}).map(([name, value]) => `${name}=${/[\n\r]/.test(value) ? JSON.stringify(value) : value}`).join("\n");
}

function read(text: string): Record<string, string> {
  const pairs = text.split("\n").filter((line) => line.trim() !== "").map((line) => {
    const [name = "", ...rest] = line.split("=");
    if (name.trim() === "" || rest.length === 0) throw new Error(`“${line}” is not of the form NAME=value`);
    return [name.trim(), plain(rest.join("="))];
  });
  return Object.fromEntries(pairs) as Record<string, string>;
}

function plain(value: string): string {
  if (!/^".*\\[nr].*"$/.test(value)) return value;
  try {
    return String(JSON.parse(value));
  } catch {
    return value;
  }
}
