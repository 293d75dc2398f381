// What a job is and how it came to where it is.
import { useMemo } from "react";
import { ask } from "../../api/call.ts";
import { job_samples } from "../../api/routes.ts";
import type { KeyValue, Page, Sample } from "../../api/shapes.ts";
import { Chart, type Series } from "../../parts/chart.tsx";
import { useData } from "../../parts/data.ts";
import { at } from "../../parts/place.ts";
import { useScope } from "../../parts/scope.ts";
import { Ago, Card, Facts, Link, List, Said, Tags, Wait } from "../../parts/show.tsx";
import { bytes, number, short, span, time } from "../../parts/words.ts";
import type { Seen } from "../job.tsx";

export function Overview({ seen: { job, why, run }, over }: { seen: Seen; over: boolean }) {
  const { workspace } = useScope();
  const properties = job?.properties;
  const ours = properties?.peregrine;
  const took = ours?.startedAt && span(Date.parse(ours.endedAt ?? new Date().toISOString()) - Date.parse(ours.startedAt));
  return (
    <>
      {why && (
        <section className={`card story ${why.failure ? "bad" : ""}`}>
          <p>
            <b>
              <Said>{`${why.summary.charAt(0).toUpperCase() + why.summary.slice(1)}.`}</Said>
            </b>
          </p>
          {why.failure && <p className="dim">{why.failure.code}</p>}
          {why.hints.map((hint) => (
            <p key={hint} className="dim">
              <Said>{hint}</Said>
            </p>
          ))}
        </section>
      )}
      <div className="cards">
        <Card title="About">
          <Facts
            facts={[
              ["Kind", properties?.jobType ?? "Run"],
              ["Experiment", properties?.experimentName],
              ["Description", properties?.description],
              ["Submitted", <Ago key="at" at={job?.systemData?.createdAt ?? run?.info.start_time} />],
              ["By", job?.systemData?.createdBy ?? run?.info.user_id],
              ["Ran for", took],
              ["Compute target", ours?.target],
              ["Attempts", ours && ours.attempts > 1 ? String(ours.attempts) : undefined],
              ["Isolation", ours?.isolation === "none" ? "none: the image could not be used" : undefined],
              ["Environment", properties?.environmentId && short(properties.environmentId)],
              ["Tags", properties && Object.keys(properties.tags).length > 0 ? <Tags tags={properties.tags} /> : undefined],
            ]}
          />
        </Card>
        {why && (
          <Card title="Timeline">
            <ol className="timeline">
              {why.events.map((event, index) => (
                <li key={index} data-kind={event.kind}>
                  <time title={time(event.at)}>{new Date(event.at).toLocaleTimeString()}</time>
                  <b>{event.kind}</b>
                  <span>
                    <Said>{event.text}</Said>
                  </span>
                </li>
              ))}
            </ol>
          </Card>
        )}
        {properties && (Object.keys(properties.inputs ?? {}).length > 0 || Object.keys(properties.outputs ?? {}).length > 0) && (
          <Card title="Inputs and outputs">
            <List
              label="Inputs and outputs"
              rows={[
                ...Object.entries(properties.inputs ?? {}).map(([name, input]) => ({ way: "input", name, what: input.value ?? input.uri ?? "", mode: input.mode ?? "", type: input.jobInputType ?? "" })),
                ...Object.entries(properties.outputs ?? {}).map(([name, output]) => ({ way: "output", name, what: output.uri ?? "", mode: output.mode ?? "", type: output.jobOutputType ?? "" })),
              ]}
              id={(row) => row.way + row.name}
              columns={[
                ["Way", (row) => row.way],
                ["Name", (row) => row.name],
                ["Value or place", (row) => <Origin uri={row.what} kind={row.type.includes("model") ? "models" : "data"} own={job?.name ?? ""} />],
                ["Mode", (row) => row.mode],
              ]}
            />
          </Card>
        )}
        <Pairs title="Params" pairs={run?.data.params} />
        <Pairs
          title="Metrics, latest"
          pairs={run?.data.metrics?.map(({ key, value }) => ({ key, value: number(value) }))}
          more={run && <Link to={at(workspace.name, ["jobs", run.info.run_id, "metrics"])}>Charts</Link>}
        />
        {job && ours?.startedAt && <Load name={job.name} over={over} />}
      </div>
    </>
  );
}

/** Where an input came from or an output went, with the way there. */
function Origin({ uri, kind, own }: { uri: string; kind: string; own: string }) {
  const { workspace } = useScope();
  const asset = /^azureml:([\w.-]+)[:@][\w.-]+$/.exec(uri)?.[1] ?? /\/(?:data|models)\/([\w.-]+)\/versions\//.exec(uri)?.[1];
  const job = /^azureml:\/\/jobs\/([\w.-]+)\//.exec(uri)?.[1] ?? /\/paths\/azureml\/([\w.-]+)\//.exec(uri)?.[1];
  const to = asset !== undefined ? [kind, asset] : job !== undefined && job !== own ? ["jobs", job] : undefined;
  const text = <code className="wrap">{uri}</code>;
  return to === undefined ? text : <Link to={at(workspace.name, to)}>{text}</Link>;
}

function Pairs({ title, pairs = [], more }: { title: string; pairs: KeyValue[] | undefined; more?: React.ReactNode }) {
  if (pairs.length === 0) return null;
  return (
    <Card title={title} aside={more}>
      <Facts facts={pairs.slice(0, 200).map(({ key, value }) => [key, value])} />
      {pairs.length > 200 && <p className="dim">and {pairs.length - 200} more</p>}
    </Card>
  );
}

/** Load of the node while the job ran. */
function Load({ name, over }: { name: string; over: boolean }) {
  const { names } = useScope();
  const samples = useData(`samples ${name}`, (signal) => ask<Page<Sample>>(job_samples, { ...names, name }, { signal }), over ? 0 : 5000);
  return (
    <Card title="Resource use">
      <Wait on={samples}>
        {({ value }) => {
          if (value.length === 0) return <p className="dim">Nothing was measured.</p>;
          return <Loads name={name} samples={value} />;
        }}
      </Wait>
    </Card>
  );
}

type Reading = (sample: Sample) => number | null | undefined;

/** A line for every part that was measured, each in the order of time. */
function byPart(samples: Sample[]): [number, Sample[]][] {
  const parts = new Map<number, Sample[]>();
  for (const sample of samples) {
    const own = parts.get(sample.part) ?? [];
    own.push(sample);
    parts.set(sample.part, own);
  }
  for (const one of parts.values()) one.sort((a, b) => a.at - b.at);
  return [...parts].sort(([a], [b]) => a - b);
}

function greatest(samples: Sample[], of: (sample: Sample) => number): number {
  return samples.reduce((most, sample) => Math.max(most, of(sample)), 0);
}

function Loads({ name, samples }: { name: string; samples: Sample[] }) {
  const group = `load ${name}`;
  const { cpu, memory, gpu, video } = useMemo(() => {
    const parts = byPart(samples);
    const whose = (part: number, what: string) => (parts.length === 1 ? what : `part ${part}: ${what}`);
    const line = (part: number, own: Sample[], what: string, of: Reading): Series => ({ label: whose(part, what), xs: own.map(({ at }) => at / 1000), ys: own.map((sample) => of(sample) ?? null) });
    const all = (what: string, of: Reading) => parts.map(([part, own]) => line(part, own, what, of));
    const each = (of: (index: number) => Reading) =>
      parts.flatMap(([part, own]) => (own.find(({ gpus }) => gpus.length > 0)?.gpus ?? []).map((_, index) => line(part, own, `GPU ${index}`, of(index))));
    return {
      cpu: all("CPU", (one) => one.cpu_percent),
      memory: all("memory", (one) => one.memory_used_bytes),
      gpu: each((index) => (one) => one.gpus[index]?.utilization_percent),
      video: each((index) => (one) => one.gpus[index]?.memory_used_bytes),
    };
  }, [samples]);
  const video_total = greatest(samples, ({ gpus }) => gpus.reduce((most, one) => Math.max(most, one.memory_total_bytes ?? 0), 0));
  return (
    <>
      <Chart title="CPU, % of the node" group={group} series={cpu} look={PERCENT} />
      <Chart title={`Memory of the node, of ${bytes(greatest(samples, (one) => one.memory_total_bytes))}`} group={group} series={memory} look={BYTES} />
      {gpu.length > 0 && <Chart title="GPU, %" group={group} series={gpu} look={PERCENT} />}
      {video.length > 0 && <Chart title={`Memory of the GPU, of ${bytes(video_total)}`} group={group} series={video} look={BYTES} />}
    </>
  );
}

const PERCENT = { x: "time", top: 100 } as const;
const BYTES = { x: "time", unit: bytes } as const;
