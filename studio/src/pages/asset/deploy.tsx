// Putting a model behind an endpoint: one that says itself how it is asked right here, any other with a file to write.
import { useState } from "react";
import { ask } from "../../api/call.ts";
import { online_deployment_put, online_endpoint_put, online_endpoints } from "../../api/routes.ts";
import type { Asset, Endpoint } from "../../api/shapes.ts";
import { all } from "../../parts/all.ts";
import { useData } from "../../parts/data.ts";
import { Choice, Field, Form } from "../../parts/form.tsx";
import { at, go } from "../../parts/place.ts";
import { useScope } from "../../parts/scope.ts";

export function Deploy({ name, version, close }: { name: string; version: Asset; close: () => void }) {
  const { names, workspace } = useScope();
  const known = useData("endpoints", (signal) => all<Endpoint>(online_endpoints, names, { signal }));
  const [chosen, setChosen] = useState("");
  const [fresh, setFresh] = useState(name.replaceAll(/[^A-Za-z0-9-]/g, "-").slice(0, 32));
  const [deployment, setDeployment] = useState(`version-${version.name}`.replaceAll(/[^A-Za-z0-9-]/g, "-").slice(0, 32));
  const [size, setSize] = useState("Standard_DS2_v2");
  const endpoint = chosen === "" ? fresh : chosen;
  const speaks = version.properties.modelType === "mlflow_model";
  const send = async () => {
    if (speaks) {
      if (chosen === "") await ask(online_endpoint_put, { ...names, name: endpoint }, { body: { location: "local", properties: { authMode: "Key" } } });
      const properties = { endpointComputeType: "Managed", model: version.id, instanceType: size };
      await ask(online_deployment_put, { ...names, name: endpoint, deployment }, { body: { location: "local", sku: { name: "Default", capacity: 1 }, properties } });
    }
    go(speaks ? at(workspace.name, ["endpoints", endpoint], { deployment }) : at(workspace.name, ["endpoints"]));
  };
  const file = [`name: ${deployment}`, `endpoint_name: ${endpoint}`, `model: azureml:${name}:${version.name}`, "code_configuration:", "  code: src", "  scoring_script: score.py", "environment: azureml:ENVIRONMENT@latest", `instance_type: ${size}`, "instance_count: 1"];
  return (
    <Form title={`Deploy ${name}:${version.name}`} does={speaks ? "Deploy" : "To the endpoints"} send={send} close={close}>
      <Choice label="Endpoint" value={chosen} set={setChosen} options={[["", "a new one"], ...(known.data?.value.map((one): [string, string] => [one.name, one.name]) ?? [])]} />
      {chosen === "" && <Field label="Name of the endpoint" value={fresh} set={setFresh} />}
      <Field label="Name of the deployment" value={deployment} set={setDeployment} />
      <Field label="Instance type" value={size} set={setSize} />
      {speaks ? (
        <p className="dim">It starts without traffic: try it on the endpoint's page, then give it a share.</p>
      ) : (
        <>
          <p className="dim">A model of this type needs a script that asks it, and an environment to run that in. As a file, for peregrine online-deployment create -f deployment.yml:</p>
          <pre tabIndex={0} aria-label="deployment.yml">{file.join("\n")}</pre>
        </>
      )}
    </Form>
  );
}
