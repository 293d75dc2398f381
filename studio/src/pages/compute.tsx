// Where jobs run: targets, their nodes and sizes, and who waits for them and why.
import { useState } from "react";
import { ask } from "../api/call.ts";
import { compute_nodes, computes, job_why, workspace_usages } from "../api/routes.ts";
import type { Amounts, Compute, Node, Page, Shared, Usage, Why } from "../api/shapes.ts";
import { useData } from "../parts/data.ts";
import { at } from "../parts/place.ts";
import { search } from "../parts/runs.ts";
import { useScope } from "../parts/scope.ts";
import { Ago, Badge, Card, Empty, Facts, Link, List, Said, Wait } from "../parts/show.tsx";
import { bytes } from "../parts/words.ts";
import { Attach, type Kind } from "./compute/attach.tsx";
import { Checks } from "./compute/checks.tsx";
import { Meters } from "./home.tsx";

const EVERY_MS = 4000;
const QUEUE = 50;
const KINDS: [Kind, string][] = [
  ["Kubernetes", "Kubernetes…"],
  ["VirtualMachine", "A machine over SSH…"],
  ["Slurm", "Slurm…"],
  ["AmlCompute", "A cluster of nodes…"],
];

export function ComputePage() {
  const { names, works } = useScope();
  const [attaching, setAttaching] = useState<Kind>();
  const targets = useData("computes", (signal) => ask<Page<Compute>>(computes, names, { signal }), EVERY_MS);
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
            <p>A place you have becomes a target that jobs can name. Attaching ends in a list of checks, shown with the target. A cluster of nodes grows and shrinks with what waits for it.</p>
            <div className="bar">
              {KINDS.map(([kind, title]) => (
                <button key={kind} type="button" onClick={() => setAttaching(kind)}>{title}</button>
              ))}
            </div>
          </Card>
        )}
      </div>
      <Wait on={targets}>
        {({ value }) => (
          <div className="cards wide">
            {value.map((target) => (
              <Target key={target.name} target={target} changed={targets.again} />
            ))}
          </div>
        )}
      </Wait>
      <Queue />
      {attaching !== undefined && <Attach kind={attaching} close={() => setAttaching(undefined)} done={targets.again} />}
    </>
  );
}

function Target({ target, changed }: { target: Compute; changed: () => void }) {
  const { names, workspace } = useScope();
  const { properties } = target;
  const nodes = useData(
    `nodes ${target.name}`,
    (signal) => ask<{ nodes?: Node[] }>(compute_nodes, { ...names, name: target.name }, { body: {}, signal }),
    EVERY_MS,
  );
  const types = Object.entries(properties.properties?.instanceTypes ?? {});
  return (
    <Card title={target.name} aside={<Badge status={properties.provisioningState} />}>
      <Facts
        facts={[
          ["Kind", properties.computeType],
          ["Description", properties.description],
          ["Namespace", properties.properties?.namespace],
          ["Cluster", properties.properties?.cluster],
          ["Address", properties.properties?.address ?? properties.properties?.host],
          ["Capacity", capacity(properties.properties?.capacity)],
        ]}
      />
      {target.name !== "local" && <Checks target={target} changed={changed} />}
      <Wait on={nodes}>
        {({ nodes: all = [] }) =>
          all.length === 0 ? (
            <p className="dim">No node has been heard of.</p>
          ) : (
            <List
              label={`Nodes of ${target.name}`}
              rows={all}
              id={(node) => node.nodeId}
              columns={[
                ["Node", (node) => node.nodeId],
                ["State", (node) => <Badge status={node.nodeState} />],
                ["Runs", (node) => node.runId && <Link to={at(workspace.name, ["jobs", node.runId])}>{node.runId}</Link>],
                ["Has", (node) => node.capacity && `${node.capacity.cpu_milli / 1000} cores, ${bytes(node.capacity.memory_bytes)}${node.capacity.gpus ? `, ${node.capacity.gpus} GPUs` : ""}`],
                ["Heard of", (node) => <Ago at={node.seenAt} />],
              ]}
            />
          )
        }
      </Wait>
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
    </Card>
  );
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

function Queue() {
  const { names, workspace } = useScope();
  const queue = useData(
    "queue",
    async (signal) => {
      const { runs, more } = await search(names, { filter: "attributes.status = 'SCHEDULED'", order: ["attributes.start_time ASC"], limit: QUEUE }, signal);
      const waits = await Promise.all(runs.map((run) => ask<Why>(job_why, { ...names, name: run.info.run_id }, { signal }).catch(() => undefined)));
      return { waits: waits.filter((why) => why !== undefined), more };
    },
    EVERY_MS,
  );
  return (
    <Card title="Queue">
      <Wait on={queue}>
        {({ waits, more }) =>
          waits.length === 0 ? (
            <Empty>Nothing waits.</Empty>
          ) : (
            <>
              <List
                label="Queue"
                rows={waits}
                id={(why) => why.name}
                columns={[
                  ["Job", (why) => <Link to={at(workspace.name, ["jobs", why.name])}>{why.name}</Link>],
                  ["For", (why) => why.target],
                  ["Before it", (why) => String(why.ahead)],
                  ["Because", (why) => <Said>{why.note}</Said>],
                ]}
              />
              {more && <p className="dim">The first {QUEUE} are shown.</p>}
            </>
          )
        }
      </Wait>
    </Card>
  );
}
