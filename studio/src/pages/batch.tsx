// Batch endpoints: the deployments behind each, the jobs it has started, and starting one.
import { useState } from "react";
import { ask } from "../api/call.ts";
import { batch_deployments, batch_endpoint_get, batch_endpoint_jobs, batch_endpoint_put, batch_endpoints, batch_score } from "../api/routes.ts";
import type { BatchDeployment, BatchEndpoint, BatchJob } from "../api/shapes.ts";
import { all, onlyIf } from "../parts/all.ts";
import { useData } from "../parts/data.ts";
import { Choice, Field, Form } from "../parts/form.tsx";
import { at, go } from "../parts/place.ts";
import { useScope } from "../parts/scope.ts";
import { Ago, Badge, Card, Copy, Empty, Facts, Link, List, Problem, Wait } from "../parts/show.tsx";
import { short } from "../parts/words.ts";

const EVERY_MS = 4000;
/** Of a busy endpoint, the newest jobs are enough. */
const JOBS = 500;

export function Batch({ name }: { name: string | undefined }) {
  return name === undefined ? <All /> : <One name={name} />;
}

function All() {
  const { names, workspace } = useScope();
  const found = useData("batch", (signal) => all<BatchEndpoint>(batch_endpoints, names, { signal }), EVERY_MS);
  return (
    <>
      <h1>Batch endpoints</h1>
      <Wait on={found}>
        {({ value, nextLink }) =>
          value.length === 0 ? (
            <Empty command="peregrine batch-endpoint create -f endpoint.yml">No batch endpoint yet. Make one, then put a deployment behind it:</Empty>
          ) : (
            <List
              label="Batch endpoints"
              more={Boolean(nextLink)}
              rows={value}
              id={(one) => one.name}
              columns={[
                ["Name", (one) => <Link to={at(workspace.name, ["batch", one.name])}>{one.name}</Link>],
                ["State", (one) => <Badge status={one.properties.provisioningState ?? ""} />],
                ["Deployment by default", (one) => one.properties.defaults?.deploymentName],
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
  const [calling, setCalling] = useState(false);
  const [problem, setProblem] = useState<Error>();
  const endpoint = useData(`batch ${name}`, (signal) => ask<BatchEndpoint>(batch_endpoint_get, params, { signal }), EVERY_MS);
  const deployments = useData(`batch deployments ${name}`, (signal) => all<BatchDeployment>(batch_deployments, params, { signal }), EVERY_MS);
  const jobs = useData(`batch jobs ${name}`, (signal) => all<BatchJob>(batch_endpoint_jobs, params, { signal }, JOBS), EVERY_MS);
  const prefer = (one: BatchEndpoint, deploymentName: string) =>
    ask(batch_endpoint_put, params, { body: { ...one, properties: { ...one.properties, defaults: { deploymentName } } }, headers: onlyIf(one) }).then(endpoint.again, setProblem);
  return (
    <>
      <p className="crumbs">
        <Link to={at(workspace.name, ["batch"])}>Batch endpoints</Link> / {name}
      </p>
      <Wait on={endpoint}>
        {(one) => (
          <>
            <header className="bar">
              <h1>{name}</h1>
              <Badge status={one.properties.provisioningState ?? ""} />
              <span className="grow" />
              {works && <button type="button" disabled={!deployments.data?.value.length} onClick={() => setCalling(true)}>Score data…</button>}
            </header>
            {problem !== undefined && <Problem error={problem} />}
            <div className="cards">
              <Card title="About">
                <Facts
                  facts={[
                    ["Description", one.properties.description],
                    ["By default", one.properties.defaults?.deploymentName],
                    ["Address", one.properties.scoringUri && <Copy text={one.properties.scoringUri} />],
                    ["In a shell", <Copy key="shell" text={`peregrine batch-endpoint invoke -n ${name} --input FOLDER`} />],
                  ]}
                />
              </Card>
              <Card title="Deployments">
                <Wait on={deployments}>
                  {({ value }) =>
                    value.length === 0 ? (
                      <Empty command="peregrine batch-deployment create -f deployment.yml --set-default">No deployment yet.</Empty>
                    ) : (
                      <List
                        label="Deployments"
                        rows={value}
                        id={(each) => each.name}
                        columns={[
                          ["Name", (each) => each.name],
                          ["Runs", (each) => short(each.properties.model?.assetId ?? each.properties.deploymentConfiguration?.componentId?.assetId)],
                          ["On", (each) => short(each.properties.compute)],
                          ["Files at a time", (each) => each.properties.miniBatchSize],
                          [
                            "Which",
                            (each) =>
                              each.name === one.properties.defaults?.deploymentName ? (
                                <span className="tag">by default</span>
                              ) : (
                                works && <button type="button" className="quiet" onClick={() => void prefer(one, each.name)}>Make it the default</button>
                              ),
                          ],
                        ]}
                      />
                    )
                  }
                </Wait>
              </Card>
            </div>
            <Card title="Jobs">
              <Wait on={jobs}>{({ value, nextLink }) => <Jobs jobs={value} more={Boolean(nextLink)} />}</Wait>
            </Card>
            {calling && <Call name={name} deployments={deployments.data?.value.map((each) => each.name) ?? []} close={() => setCalling(false)} />}
          </>
        )}
      </Wait>
    </>
  );
}

function Jobs({ jobs, more }: { jobs: BatchJob[]; more: boolean }) {
  const { workspace } = useScope();
  if (jobs.length === 0) return <Empty>It was not called yet.</Empty>;
  return (
    <List
      label="Jobs"
      more={more}
      rows={jobs}
      id={(job) => job.name}
      columns={[
        ["Name", (job) => <Link to={at(workspace.name, ["jobs", job.name])}>{job.name}</Link>],
        ["Status", (job) => <Badge status={job.properties.status} />],
        ["Submitted", (job) => <Ago at={job.systemData?.createdAt} />],
        ["By", (job) => job.systemData?.createdBy],
      ]}
    />
  );
}

function Call({ name, deployments, close }: { name: string; deployments: string[]; close: () => void }) {
  const { names, workspace } = useScope();
  const [deployment, setDeployment] = useState("");
  const [kind, setKind] = useState("UriFolder");
  const [uri, setUri] = useState("");
  const send = async () => {
    const body = { properties: { inputData: { data: { jobInputType: kind, uri } } } };
    const headers: Record<string, string> = deployment === "" ? {} : { "azureml-model-deployment": deployment };
    const made = await ask<BatchJob>(batch_score, { ...names, name }, { body, headers });
    go(at(workspace.name, ["jobs", made.name]));
  };
  return (
    <Form title={`Score data with ${name}`} does="Start the job" send={send} close={close}>
      <Choice label="Deployment" value={deployment} set={setDeployment} options={[["", "the default"], ...deployments.map((each): [string, string] => [each, each])]} />
      <Choice label="Data is" value={kind} set={setKind} options={[["UriFolder", "a folder"], ["UriFile", "a file"]]} />
      <Field label="Where" value={uri} set={setUri} hint="A data asset, as in azureml:houses:1, or an address below a datastore, as in azureml://datastores/workspaceblobstore/paths/houses/" />
    </Form>
  );
}
