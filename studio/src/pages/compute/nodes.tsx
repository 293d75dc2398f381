// The nodes of a target; those of a managed cluster can be taken back, and their number changed.
import { useState } from "react";
import { ask } from "../../api/call.ts";
import { compute_patch, compute_preempt } from "../../api/routes.ts";
import type { Compute, Node } from "../../api/shapes.ts";
import { Field, Form } from "../../parts/form.tsx";
import { at } from "../../parts/place.ts";
import { useScope } from "../../parts/scope.ts";
import { Ago, Badge, Link, List, Problem, Said } from "../../parts/show.tsx";
import { bytes } from "../../parts/words.ts";

/** Nodes that can be taken back. */
const THERE = ["idle", "running", "preparing"];

export function Nodes({ target, changed }: { target: Compute; changed: () => void }) {
  const { names, workspace, works } = useScope();
  const [problem, setProblem] = useState<Error>();
  const params = { ...names, name: target.name };
  const all = target.properties.nodes ?? [];
  const managed = works && target.properties.computeType === "AmlCompute";
  const preempt = ({ nodeId, runId }: Node) => {
    if (!window.confirm(`Take ${nodeId} back, as its owner might?${runId ? ` Job ${runId} is asked to end and is tried again on another node.` : ""}`)) return;
    setProblem(undefined);
    ask(compute_preempt, params, { body: { nodeId } }).then(changed, setProblem);
  };
  return (
    <>
      {problem !== undefined && <Problem error={problem} />}
      {all.length === 0 ? (
        <p className="dim">{target.properties.computeType === "AmlCompute" ? "There is no node now; one comes when a job waits for it." : "No node has been heard of."}</p>
      ) : (
        <List
          label={`Nodes of ${target.name}`}
          rows={all}
          id={(node) => node.nodeId}
          columns={[
            ["Node", (node) => node.nodeId],
            ["State", (node) => <><Badge status={node.nodeState} />{node.reason && <small className="dim"> <Said>{node.reason}</Said></small>}</>],
            ["Runs", (node) => node.runId && <Link to={at(workspace.name, ["jobs", node.runId])}>{node.runId}</Link>],
            ["Has", (node) => node.capacity && `${node.capacity.cpu_milli / 1000} cores, ${bytes(node.capacity.memory_bytes)}${node.capacity.gpus ? `, ${node.capacity.gpus} GPUs` : ""}`],
            ["Heard of", (node) => <Ago at={node.seenAt} />],
            ...(managed ? ([["", (node) => THERE.includes(node.nodeState) && <button type="button" className="quiet" aria-label={`Take back ${node.nodeId}`} onClick={() => preempt(node)}>Take back…</button>]] as [string, (node: Node) => React.ReactNode][]) : []),
          ]}
        />
      )}
    </>
  );
}

/** How many nodes a managed cluster may have, and how long one stays without work. */
export function Resize({ target, close, done }: { target: Compute; close: () => void; done: () => void }) {
  const { names } = useScope();
  const { minNodeCount = 0, maxNodeCount = 1, nodeIdleTimeBeforeScaleDown = "PT120S" } = target.properties.properties?.scaleSettings ?? {};
  const [least, setLeast] = useState(String(minNodeCount));
  const [most, setMost] = useState(String(maxNodeCount));
  const [idle, setIdle] = useState(String(seconds(nodeIdleTimeBeforeScaleDown)));
  const send = async () => {
    const scaleSettings = { minNodeCount: Number(least), maxNodeCount: Number(most), nodeIdleTimeBeforeScaleDown: `PT${Number(idle)}S` };
    await ask(compute_patch, { ...names, name: target.name }, { body: { properties: { properties: { scaleSettings } } } });
    done();
  };
  return (
    <Form title={`Resize ${target.name}`} does="Resize" send={send} close={close}>
      <Field label="Nodes at least" type="number" value={least} set={setLeast} />
      <Field label="Nodes at most" type="number" value={most} set={setMost} hint="A node with work on it is never sent away" />
      <Field label="Seconds without work until a node goes" type="number" value={idle} set={setIdle} />
    </Form>
  );
}

/** Seconds of a span as ISO 8601 writes it: `PT2M30S`. */
export function seconds(span: string): number {
  const parts = /^P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:([\d.]+)S)?)?$/.exec(span);
  const [days = 0, hours = 0, minutes = 0, rest = 0] = (parts?.slice(1) ?? []).map((part) => Number(part ?? 0));
  return days * 86_400 + hours * 3600 + minutes * 60 + rest;
}
