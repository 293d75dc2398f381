// A job as its file would say it.
import { useMemo } from "react";
import type { Job } from "../../api/shapes.ts";
import { Copy } from "../../parts/show.tsx";
import { yaml } from "../../parts/yaml.ts";

/** What the server adds, and what is empty, is no part of a definition. */
export function definition(job: Job): Record<string, unknown> {
  const { status, services, peregrine, isArchived, ...rest } = job.properties as Record<string, unknown>;
  void [status, services, peregrine, isArchived];
  const empty = (value: unknown) => value === null || value === undefined || (typeof value === "object" && Object.keys(value).length === 0);
  return Object.fromEntries(Object.entries(rest).filter(([, value]) => !empty(value)));
}

export function Definition({ job }: { job: Job }) {
  const text = useMemo(() => yaml(definition(job)), [job]);
  return (
    <section className="card">
      <p className="dim">
        The file it was submitted with, in the words of the command line: <Copy text={`peregrine job show -n ${job.name} -o yaml`} />
      </p>
      <pre tabIndex={0}>{text}</pre>
    </section>
  );
}
