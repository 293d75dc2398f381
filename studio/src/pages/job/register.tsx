// Making a model or a data asset of what a job wrote.
import { useState } from "react";
import { ask, Refused } from "../../api/call.ts";
import { asset_container, asset_put } from "../../api/routes.ts";
import type { Asset, Job } from "../../api/shapes.ts";
import { Choice, Field, Form } from "../../parts/form.tsx";
import { at, go } from "../../parts/place.ts";
import { useScope } from "../../parts/scope.ts";

const KINDS: [string, string][] = [
  ["models mlflow_model", "a model of MLflow's"],
  ["models custom_model", "a model"],
  ["data uri_folder", "a folder of data"],
  ["data uri_file", "a file of data"],
];

export function Register({ job, close }: { job: Job; close: () => void }) {
  const { names, workspace } = useScope();
  const outputs = Object.keys(job.properties.outputs ?? {}).filter((name) => name !== "default");
  const [what, setWhat] = useState("models custom_model");
  const [output, setOutput] = useState(outputs[0] ?? "artifacts");
  const [path, setPath] = useState(outputs.length > 0 ? "" : "outputs");
  const [name, setName] = useState("");
  const [kind = "models", type = "custom_model"] = what.split(" ");
  const send = async () => {
    const version = await ask<Asset>(asset_container, { ...names, kind, name }).then(
      (found) => String(found.properties["nextVersion"] ?? "1"),
      (error: unknown) => {
        if (error instanceof Refused && error.status === 404) return "1";
        throw error;
      },
    );
    const uri = `azureml://jobs/${job.name}/outputs/${output}/paths/${path}`;
    const properties = kind === "models" ? { modelType: type, modelUri: uri, jobName: job.name } : { dataType: type, dataUri: uri };
    await ask(asset_put, { ...names, kind, name, version }, { body: { properties } });
    go(at(workspace.name, [kind, name]));
  };
  return (
    <Form title="Register" does="Register" send={send} close={close}>
      <Choice label="As" value={what} set={setWhat} options={KINDS} />
      <Field label="Name" value={name} set={setName} hint="A name that is there gets another version" />
      <Choice label="Of" value={output} set={setOutput} options={[...outputs.map((one): [string, string] => [one, `output ${one}`]), ["artifacts", "the files it wrote"]]} />
      <Field label="Path in it" optional value={path} set={setPath} hint="Empty for all of it" />
    </Form>
  );
}
