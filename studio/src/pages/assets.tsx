// Models, data, environments and components: names, their versions, what is known of one.
import { useState } from "react";
import { ask } from "../api/call.ts";
import { asset_get, asset_put, asset_versions, assets } from "../api/routes.ts";
import type { Asset } from "../api/shapes.ts";
import { all } from "../parts/all.ts";
import { useData } from "../parts/data.ts";
import { Anchor, Linked } from "../parts/linked.tsx";
import { at, usePlace } from "../parts/place.ts";
import { useScope } from "../parts/scope.ts";
import { Ago, Card, Copy, Empty, Facts, Link, List, Problem, Tags, Wait } from "../parts/show.tsx";
import { yaml } from "../parts/yaml.ts";
import { Deploy } from "./asset/deploy.tsx";
import { Uses } from "./asset/uses.tsx";

const NOUNS: Record<string, [string, string]> = {
  models: ["model", "A model is registered from a folder or a job's output:"],
  data: ["data", "A data asset names a file or folder:"],
  environments: ["environment", "Environments that jobs define inline are not listed. Make a named one:"],
  components: ["component", "A component is a step that pipelines share:"],
};

export function Assets({ kind, name }: { kind: string; name: string | undefined }) {
  return name === undefined ? <Names kind={kind} /> : <Versions kind={kind} name={name} />;
}

function Names({ kind }: { kind: string }) {
  const { names, workspace } = useScope();
  const [noun = "", about = ""] = NOUNS[kind] ?? [];
  const [wanted, setWanted] = useState("");
  const found = useData(kind, (signal) => all<Asset>(assets, { ...names, kind }, { signal }), 10_000);
  return (
    <>
      <h1>{kind.charAt(0).toUpperCase() + kind.slice(1)}</h1>
      <Wait on={found}>
        {({ value, nextLink }) =>
          value.length === 0 ? (
            <Empty command={`peregrine ${noun} create -f ${noun}.yml`}>{about}</Empty>
          ) : (
            <>
              <div className="bar">
                <input data-filter aria-label="Find by name" placeholder="Find by name   ( / )" value={wanted} onChange={(event) => setWanted(event.target.value)} />
                {nextLink && <span className="dim">the first {value.length} names</span>}
              </div>
              <List
                label={kind}
                rows={value.filter((one) => one.name.toLowerCase().includes(wanted.toLowerCase()))}
                id={(one) => one.name}
                columns={[
                  ["Name", (one) => <Link to={at(workspace.name, [kind, one.name])}>{one.name}</Link>],
                  ["Latest", (one) => one.properties.latestVersion],
                  ["Kind", (one) => one.properties.dataType ?? one.properties.modelType ?? ""],
                  ["Description", (one) => one.properties.description],
                  ["Tags", (one) => <Tags tags={one.properties.tags} />],
                  ["Changed", (one) => <Ago at={one.systemData?.lastModifiedAt} />],
                ]}
              />
            </>
          )
        }
      </Wait>
    </>
  );
}

/** So many versions are drawn at first, and with each press on the button below them. */
const DRAWN = 20;

function Versions({ kind, name }: { kind: string; name: string }) {
  const { names, workspace } = useScope();
  const [noun = ""] = NOUNS[kind] ?? [];
  const [most, setMost] = useState(DRAWN);
  const linked = usePlace().query.get("version") ?? "";
  const load = async (signal: AbortSignal) => {
    const found = await all<Asset>(asset_versions, { ...names, kind, name }, { signal });
    // One that an address names is shown first, though it be archived.
    const known = found.value.find((version) => version.name === linked);
    const named = known ?? (linked === "" ? undefined : await ask<Asset>(asset_get, { ...names, kind, name, version: linked }, { signal }));
    return { ...found, value: named === undefined ? found.value : [named, ...found.value.filter((version) => version !== known)] };
  };
  const versions = useData(`${kind} ${name} ${linked}`, load, 10_000);
  return (
    <>
      <p className="crumbs">
        <Link to={at(workspace.name, [kind])}>{kind.charAt(0).toUpperCase() + kind.slice(1)}</Link> / {name}
      </p>
      <h1>{name}</h1>
      <Wait on={versions}>
        {({ value }) =>
          value.length === 0 ? (
            <Empty>It has no version that is not archived.</Empty>
          ) : (
            <>
              <div className="cards wide">
                {value.slice(0, most).map((version) => (
                  <Linked key={version.name} here={version.name === linked}>
                    <Version kind={kind} noun={noun} name={name} version={version} changed={versions.again} />
                  </Linked>
                ))}
              </div>
              {value.length > most && (
                <button type="button" onClick={() => setMost(most + DRAWN)}>
                  Show more of {value.length} versions
                </button>
              )}
            </>
          )
        }
      </Wait>
    </>
  );
}

function Version({ kind, noun, name, version, changed }: { kind: string; noun: string; name: string; version: Asset; changed: () => void }) {
  const { names, workspace, works } = useScope();
  const [problem, setProblem] = useState<Error>();
  const [looking, setLooking] = useState(false);
  const [deploying, setDeploying] = useState(false);
  const { properties } = version;
  const uri = properties.modelUri ?? properties.dataUri;
  const job = properties.jobName ?? /ExperimentRun\/dcid\.([\w-]+)/.exec(uri ?? "")?.[1] ?? /\/jobs\/([\w-]+)\//.exec(uri ?? "")?.[1];
  const put = (changes: Record<string, unknown>) => {
    const params = { ...names, kind, name, version: version.name };
    ask<Asset>(asset_put, params, { body: { properties: { ...properties, ...changes } } }).then(changed, setProblem);
  };
  const tag = () => {
    const [key = "", ...value] = (window.prompt("Tag, as key=value") ?? "").split("=");
    if (key !== "") put({ tags: { ...properties.tags, [key.trim()]: value.join("=").trim() } });
  };
  const shown = Object.fromEntries(Object.entries(properties).filter(([key, value]) => value !== null && !["tags", "description"].includes(key)));
  return (
    <Card
      title={`Version ${version.name}`}
      aside={
        <span className="bar">
          {works && (
            <>
              {kind === "models" && <button type="button" className="quiet" onClick={() => setDeploying(true)}>Deploy…</button>}
              <button type="button" className="quiet" onClick={tag}>Tag…</button>
              <button type="button" className="quiet" onClick={() => put({ isArchived: true })}>Archive</button>
            </>
          )}
          <Anchor to={at(workspace.name, [kind, name], { version: version.name })} name={`version ${version.name}`} />
        </span>
      }
    >
      {problem !== undefined && <Problem error={problem} />}
      <Facts
        facts={[
          ["Description", properties.description],
          ["Tags", properties.tags && Object.keys(properties.tags).length > 0 ? <Tags tags={properties.tags} /> : undefined],
          ["Made", <Ago key="made" at={version.systemData?.createdAt} />],
          ["By", version.systemData?.createdBy],
          ["From job", job && <Link to={at(workspace.name, ["jobs", job])}>{job}</Link>],
          ["Place", uri && <code className="wrap">{uri}</code>],
          ["Image", properties.image],
          ["Use it as", <Copy key="use" text={`azureml:${name}:${version.name}`} />],
        ]}
      />
      <details onToggle={(event) => setLooking(event.currentTarget.open)}>
        <summary>Where it is used</summary>
        {looking && <Uses kind={kind} name={name} version={version.name} />}
      </details>
      {deploying && <Deploy name={name} version={version} close={() => setDeploying(false)} />}
      <details>
        <summary>All of it</summary>
        <pre tabIndex={0}>{yaml(shown)}</pre>
        <Copy text={`peregrine ${noun} show -n ${name} -v ${version.name}`} />
      </details>
    </Card>
  );
}
