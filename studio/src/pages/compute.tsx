// Where jobs run: targets, their nodes and sizes, and who waits for them and why.
import { useState } from "react";
import { ask } from "../api/call.ts";
import { computes, workspace_usages } from "../api/routes.ts";
import type { Amounts, Compute, Page, Shared, Usage } from "../api/shapes.ts";
import { all } from "../parts/all.ts";
import { useData } from "../parts/data.ts";
import { Anchor, Linked } from "../parts/linked.tsx";
import { at, usePlace } from "../parts/place.ts";
import { useScope } from "../parts/scope.ts";
import { Badge, Card, Facts, List, Wait } from "../parts/show.tsx";
import { bytes, span } from "../parts/words.ts";
import { Attach, type Kind } from "./compute/attach.tsx";
import { Checks } from "./compute/checks.tsx";
import { Nodes, Resize, seconds } from "./compute/nodes.tsx";
import { Past } from "./compute/past.tsx";
import { Queue } from "./compute/queue.tsx";
import { UsageByTeam } from "./compute/usage.tsx";
import { Meters } from "./home.tsx";

const EVERY_MS = 4000;
const KINDS: [Kind, string][] = [
  ["Kubernetes", "Kubernetes…"],
  ["VirtualMachine", "A machine over SSH…"],
  ["Slurm", "Slurm…"],
  ["AmlCompute", "A cluster of nodes…"],
  ["Pool", "A pool of targets…"],
];

export function ComputePage() {
  const { names, works } = useScope();
  const [attaching, setAttaching] = useState<Kind>();
  const targets = useData("computes", (signal) => all<Compute>(computes, names, { query: { nodes: "true" }, signal }), EVERY_MS);
  const { query } = usePlace();
  const usages = useData("usages", (signal) => ask<Page<Usage>>(workspace_usages, names, { signal }), EVERY_MS);
  return (
    <>
      <h1>Compute</h1>
      <div className="cards">
        <Card title="In use">
          <Wait on={usages}>{({ value }) => <Meters usages={value} />}</Wait>
        </Card>
        {works && (
          <Card title="Attach">
            <p>A place you have becomes a target that jobs can name. Attaching ends in a list of checks, shown with the target. A cluster of nodes grows and shrinks with what waits for it; a pool stands for several targets.</p>
            <div className="bar">
              {KINDS.map(([kind, title]) => (
                <button key={kind} type="button" onClick={() => setAttaching(kind)}>{title}</button>
              ))}
            </div>
          </Card>
        )}
      </div>
      <Queue />
      <Wait on={targets}>
        {({ value }) => (
          <div className="cards wide">
            {value.map((target) => (
              <Linked key={target.name} here={target.name === query.get("target")}>
                <Target target={target} changed={targets.again} />
              </Linked>
            ))}
          </div>
        )}
      </Wait>
      <UsageByTeam />
      {attaching !== undefined && <Attach kind={attaching} close={() => setAttaching(undefined)} done={targets.again} />}
    </>
  );
}

function Target({ target, changed }: { target: Compute; changed: () => void }) {
  const { works, workspace } = useScope();
  const [resizing, setResizing] = useState(false);
  const { properties } = target;
  const inner = properties.properties;
  const pool = properties.computeType === "Pool";
  const managed = properties.computeType === "AmlCompute";
  const types = Object.entries(inner?.instanceTypes ?? {});
  return (
    <Card title={target.name} aside={<span className="aside"><Badge status={properties.provisioningState} /><Anchor to={at(workspace.name, ["compute"], { target: target.name })} name={target.name} /></span>}>
      <Facts
        facts={[
          ["Kind", properties.computeType],
          ["Description", properties.description],
          ["Namespace", inner?.namespace],
          ["Cluster", inner?.cluster],
          ["Address", inner?.address ?? inner?.host],
          ["Capacity", capacity(inner?.capacity)],
          ["Size of a node", managed && inner?.vmSize],
          ["Nodes", managed && nodeCount(target)],
          ["Brought by", managed && (inner?.nodeProvider?.program ?? PROVIDERS[inner?.nodeProvider?.type ?? "process"])],
          ["Stands for", inner?.targets?.join(", ")],
          ["May travel", inner?.maxData],
        ]}
      />
      {managed && works && <button type="button" onClick={() => setResizing(true)}>Resize…</button>}
      {target.name !== "local" && <Checks target={target} changed={changed} />}
      {!pool && <Nodes target={target} changed={changed} />}
      {inner?.capacity !== undefined && isShared(inner.capacity) && <Past name={target.name} />}
      {types.length > 0 && (
        <details>
          <summary>Instance types ({types.length})</summary>
          <List
            label={`Instance types of ${target.name}`}
            rows={types}
            id={([name]) => name}
            columns={[
              ["Name", ([name]) => name],
              ["Asks for", ([, type]) => quantities(type.resources?.requests)],
              ["At most", ([, type]) => quantities(type.resources?.limits ?? undefined)],
              ["Fit now", ([, type]) => type.fitsNow],
            ]}
          />
        </details>
      )}
      {resizing && <Resize target={target} close={() => setResizing(false)} done={changed} />}
    </Card>
  );
}

const PROVIDERS: Record<string, string> = { process: "this server's machine", ssh: "machines over SSH", kubernetes: "pods of a Kubernetes cluster" };

function nodeCount(target: Compute): string {
  const { scaleSettings, currentNodeCount = 0, vmPriority } = target.properties.properties ?? {};
  const { minNodeCount = 0, maxNodeCount = 1, nodeIdleTimeBeforeScaleDown = "PT120S" } = scaleSettings ?? {};
  const tier = vmPriority === "LowPriority" ? ", low priority" : "";
  return `${currentNodeCount} now, ${minNodeCount} to ${maxNodeCount}, gone after ${span(seconds(nodeIdleTimeBeforeScaleDown) * 1000)} without work${tier}`;
}

function quantities(map: Record<string, string> | undefined): string {
  return Object.entries(map ?? {})
    .map(([name, amount]) => `${amount} ${name}`)
    .join(", ");
}

function isShared(map: Record<string, string> | Shared): map is Shared {
  return typeof map["allocatable"] === "object";
}

/** What a machine has, or of a cluster what is free of it. */
function capacity(map: Record<string, string> | Shared | undefined): string {
  if (map === undefined || !isShared(map)) return quantities(map);
  const amount = ({ cpu_milli, memory_bytes, gpus }: Amounts) => `${cpu_milli / 1000} cores, ${bytes(memory_bytes)}${gpus ? `, ${gpus} GPUs` : ""}`;
  if (map.allocatable.cpu_milli === 0) return "";
  return `${amount(map.free)} free of ${amount(map.allocatable)}`;
}
