// Who waits for a node: why, behind how many others, and until when.
import { ask } from "../../api/call.ts";
import { queue as queueRoute } from "../../api/routes.ts";
import type { Queue as Found } from "../../api/shapes.ts";
import { useData } from "../../parts/data.ts";
import { at } from "../../parts/place.ts";
import { useScope } from "../../parts/scope.ts";
import { Ago, Card, Empty, Link, List, Said, Wait } from "../../parts/show.tsx";

const EVERY_MS = 4000;

export function Queue() {
  const { names, workspace } = useScope();
  const queue = useData("queue", (signal) => ask<Found>(queueRoute, names, { signal }), EVERY_MS);
  return (
    <Card title="Queue">
      <Wait on={queue}>
        {({ value, more }) =>
          value.length === 0 ? (
            <Empty>Nothing waits.</Empty>
          ) : (
            <>
              <List
                label="Queue"
                rows={value}
                id={(job) => job.name}
                columns={[
                  ["Job", (job) => <Link to={at(workspace.name, ["jobs", job.name])}>{job.displayName}</Link>],
                  ["By", (job) => job.user],
                  ["For", (job) => job.target],
                  ["Submitted", (job) => <Ago at={job.since} />],
                  ["Before it", (job) => String(job.ahead)],
                  ["Because", (job) => <Said>{job.note}</Said>],
                  ["Room for it", (job) => (job.expected === null ? <span className="dim">not known</span> : <Said>{job.expected}</Said>)],
                ]}
              />
              {more && <p className="dim">The first {value.length} are shown.</p>}
            </>
          )
        }
      </Wait>
    </Card>
  );
}
