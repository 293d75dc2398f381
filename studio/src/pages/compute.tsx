// Where jobs run: targets, their nodes and sizes, and who waits for them and why.
import { ask } from "../api/call.ts";
import { compute_nodes, computes, job_why, workspace_usages } from "../api/routes.ts";
import type { Compute, Node, Page, Usage, Why } from "../api/shapes.ts";
import { useData } from "../parts/data.ts";
import { at } from "../parts/place.ts";
import { search } from "../parts/runs.ts";
import { useScope } from "../parts/scope.ts";
import { Ago, Badge, Card, Copy, Empty, Facts, Link, List, Said, Wait } from "../parts/show.tsx";
import { bytes } from "../parts/words.ts";
import { Meters } from "./home.tsx";

const EVERY_MS = 4000;
const QUEUE = 50;

export function ComputePage() {
  const { names } = useScope();
  const targets = useData("computes", (signal) => ask<Page<Compute>>(computes, names, { signal }), EVERY_MS);
  const usages = useData("usages", (signal) => ask<Page<Usage>>(workspace_usages, names, { signal }), EVERY_MS);
  return (
    <>
      <h1>Compute</h1>
      <div className="cards">
        <Card title="In use">
          <Wait on={usages}>{({ value }) => <Meters usages={value} />}</Wait>
        </Card>
        <Card title="Attach a Kubernetes cluster">
          <p>Make the cluster ready, then attach a namespace of it. The first command ends in a list of checks.</p>
          <p>
            <Copy text="peregrine extension install --cluster-name lab" />
          </p>
          <p>
            <Copy text="peregrine compute attach -f kubernetes.yml" />
          </p>
        </Card>
      </div>
      <Wait on={targets}>
        {({ value }) => (
          <div className="cards wide">
            {value.map((target) => (
              <Target key={target.name} target={target} />
            ))}
          </div>
        )}
      </Wait>
      <Queue />
    </>
  );
}

function Target({ target }: { target: Compute }) {
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
          ["Capacity", quantities(properties.properties?.capacity)],
        ]}
      />
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
