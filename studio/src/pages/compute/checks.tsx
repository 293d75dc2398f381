// What attaching has found out about a target, and what to do about it.
import { useState } from "react";
import { ask } from "../../api/call.ts";
import { compute_delete, compute_patch } from "../../api/routes.ts";
import type { Check, Compute } from "../../api/shapes.ts";
import { useScope } from "../../parts/scope.ts";
import { Copy, List, Problem, Said } from "../../parts/show.tsx";

/** The key that a machine shows and nobody has vouched for. */
export function strangeKey(checks: Check[]): string | undefined {
  const failed = checks.find(({ check, passed, detail }) => check === "host key" && !passed && detail.includes("nobody has vouched"));
  return /SHA256:[\w+/=]+/.exec(failed?.detail ?? "")?.[0];
}

export function Checks({ target, changed }: { target: Compute; changed: () => void }) {
  const { names, works, session } = useScope();
  const [problem, setProblem] = useState<Error>();
  const params = { ...names, name: target.name };
  const { checks = [], namespace } = target.properties.properties ?? {};
  const told = () => {
    setProblem(undefined);
    changed();
  };
  // A change of nothing checks all over again.
  const patch = (properties: Record<string, unknown>) => ask(compute_patch, params, { body: { properties: { properties } } }).then(told, setProblem);
  // A cluster's nodes go with it; what else was attached stays as it is.
  const made = target.properties.computeType === "AmlCompute" || target.properties.computeType === "Pool";
  const detach = () => {
    const question = made ? `Delete ${target.name}?` : `Detach ${target.name}? What lies there stays as it is.`;
    if (window.confirm(question)) ask(compute_delete, params, { query: { underlyingResourceAction: "Detach" } }).then(told, setProblem);
  };
  const key = strangeKey(checks);
  const cluster = target.properties.resourceId?.split("/").at(-1);
  const missing = target.properties.computeType === "Kubernetes" && checks.some(({ check, passed }) => check === "extension" && !passed);
  const vouch = () => {
    if (key && window.confirm(`Is ${key} the key of this machine? Compare it with what the machine says of itself.`)) void patch({ hostKey: key });
  };
  return (
    <>
      {checks.length > 0 && (
        <List
          label={`Checks of ${target.name}`}
          rows={checks}
          id={({ check }) => check}
          columns={[
            ["Check", ({ check }) => check],
            ["Passed", ({ passed }) => <span className={`badge ${passed ? "good" : "bad"}`}>{passed ? "yes" : "no"}</span>],
            ["Found", ({ detail }) => <Said>{detail}</Said>],
          ]}
        />
      )}
      {missing && (
        <>
          <p>Run this where a kubeconfig leads to the cluster, then check again:</p>
          <Copy text={`peregrine extension install --cluster-name ${cluster} --server ${session.address} --config enableTraining=True`} />
        </>
      )}
      {works && (
        <div className="bar">
          {key !== undefined && <button type="button" onClick={vouch}>This is its key…</button>}
          {target.properties.provisioningState !== "Creating" && target.properties.computeType !== "Pool" && (
            <button type="button" onClick={() => void patch(namespace === undefined ? {} : { namespace })}>Check again</button>
          )}
          <button type="button" className="quiet" onClick={detach}>{made ? "Delete…" : "Detach…"}</button>
        </div>
      )}
      {problem !== undefined && <Problem error={problem} />}
    </>
  );
}
