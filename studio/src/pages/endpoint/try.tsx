// Trying an endpoint: a request as fields or as it is, the answer, and the same request for other programs.
import { useState } from "react";
import { ask } from "../../api/call.ts";
import { online_endpoint_try } from "../../api/routes.ts";
import type { Endpoint, Tried } from "../../api/shapes.ts";
import { Choice, Field } from "../../parts/form.tsx";
import { useScope } from "../../parts/scope.ts";
import { Card, Copy, Facts, Problem } from "../../parts/show.tsx";
import { span } from "../../parts/words.ts";

type Fields = Record<string, unknown>;

export function Try({ endpoint, deployments }: { endpoint: Endpoint; deployments: string[] }) {
  const { names } = useScope();
  const [input, setInput] = useState('{\n  "data": [[1, 2, 3]]\n}');
  const [deployment, setDeployment] = useState("");
  const [busy, setBusy] = useState(false);
  const [tried, setTried] = useState<Tried | Error>();
  const send = () => {
    setBusy(true);
    const body = { input, ...(deployment === "" ? {} : { deployment }) };
    ask<Tried>(online_endpoint_try, { ...names, name: endpoint.name }, { body })
      .then(setTried, (error: unknown) => setTried(error instanceof Error ? error : new Error(String(error))))
      .finally(() => setBusy(false));
  };
  return (
    <div className="cards">
      <Card title="Request">
        <form
          className="fields"
          onSubmit={(event) => {
            event.preventDefault();
            send();
          }}
        >
          <Choice label="Asked" value={deployment} set={setDeployment} options={[["", "by the shares of traffic"], ...deployments.map((name): [string, string] => [name, name])]} />
          <Request input={input} set={setInput} />
          <button type="submit" disabled={busy}>{busy ? "Waiting…" : "Send"}</button>
        </form>
      </Card>
      <Card title="Answer">
        {tried === undefined && <p className="dim">The server calls the endpoint for you, with its key and through its own address.</p>}
        {tried instanceof Error && <Problem error={tried} />}
        {tried !== undefined && !(tried instanceof Error) && <Answer tried={tried} />}
      </Card>
      <Snippets uri={endpoint.properties.scoringUri ?? ""} input={input} deployment={deployment} />
    </div>
  );
}

/** The fields of a request that is an object; `undefined` where it is something else. */
function fieldsOf(input: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(input);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : undefined;
  } catch {
    return undefined;
  }
}

/** What someone types in a field: JSON where it is some, text otherwise. */
function typed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

const written = (value: unknown) => (typeof value === "string" && typeof typed(value) === "string" ? value : JSON.stringify(value));

function Request({ input, set }: { input: string; set: (input: string) => void }) {
  const [raw, setRaw] = useState(false);
  const [more, setMore] = useState("");
  const fields = fieldsOf(input);
  const put = (next: Fields) => set(JSON.stringify(next, null, 2));
  return (
    <>
      <div className="tabs small" role="tablist" aria-label="How the request is written">
        <button type="button" role="tab" aria-selected={!raw} disabled={fields === undefined} onClick={() => setRaw(false)}>Form</button>
        <button type="button" role="tab" aria-selected={raw} onClick={() => setRaw(true)}>JSON</button>
      </div>
      {raw || fields === undefined ? (
        <Field label="Body" lines={10} value={input} set={set} {...(fields === undefined && !raw ? { hint: "This is no JSON object, so it has no fields." } : {})} />
      ) : (
        <>
          {Object.entries(fields).map(([key, value]) => (
            <div key={key} className="bar">
              <Typed label={key} value={value} set={(next) => put({ ...fields, [key]: next })} />
              <button type="button" className="quiet" aria-label={`Remove ${key}`} onClick={() => put(Object.fromEntries(Object.entries(fields).filter(([other]) => other !== key)))}>
                Remove
              </button>
            </div>
          ))}
          <div className="bar">
            <input aria-label="Name of another field" placeholder="another field" value={more} onChange={(event) => setMore(event.target.value)} />
            <button
              type="button"
              disabled={more === "" || more in fields}
              onClick={() => {
                put({ ...fields, [more]: "" });
                setMore("");
              }}
            >
              Add
            </button>
          </div>
        </>
      )}
    </>
  );
}

/** A field keeps what is typed while it is typed, whatever it means. */
function Typed({ label, value, set }: { label: string; value: unknown; set: (value: unknown) => void }) {
  const [text, setText] = useState(() => written(value));
  return (
    <Field
      label={label}
      optional
      value={text}
      set={(next) => {
        setText(next);
        set(typed(next));
      }}
    />
  );
}

function Answer({ tried }: { tried: Tried }) {
  const pretty = (() => {
    const value = typed(tried.output);
    return typeof value === "object" ? JSON.stringify(value, null, 2) : tried.output;
  })();
  return (
    <>
      <Facts
        facts={[
          ["Status", <span key="status" className={`badge ${tried.status < 400 ? "good" : "bad"}`}>{tried.status}</span>],
          ["Of the model", tried.modelStatus],
          ["Deployment", tried.deployment],
          ["Took", span(tried.milliseconds)],
          ["Content type", tried.contentType],
          ["Request", tried.requestId],
        ]}
      />
      <pre tabIndex={0} aria-label="Answer">{pretty === "" ? "nothing" : pretty}</pre>
      {tried.cut && <p className="dim">The rest is left out.</p>}
    </>
  );
}

const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

function Snippets({ uri, input, deployment }: { uri: string; input: string; deployment: string }) {
  const to = deployment === "" ? [] : [["azureml-model-deployment", deployment]];
  const heads = [["Content-Type", "application/json"], ...to];
  const curl = [
    `curl ${quoted(uri)} \\`,
    `  -H "Authorization: Bearer $KEY" \\`,
    ...heads.map(([name, value]) => `  -H ${quoted(`${name}: ${value}`)} \\`),
    `  -d ${quoted(input)}`,
  ].join("\n");
  const python = [
    "import json, os, urllib.request",
    "",
    `body = json.loads(${JSON.stringify(input)})`,
    "request = urllib.request.Request(",
    `    ${JSON.stringify(uri)},`,
    "    json.dumps(body).encode(),",
    `    {"Authorization": "Bearer " + os.environ["KEY"], ${heads.map(([name, value]) => `${JSON.stringify(name)}: ${JSON.stringify(value)}`).join(", ")}},`,
    ")",
    "print(urllib.request.urlopen(request).read().decode())",
  ].join("\n");
  return (
    <>
      {([["curl", curl], ["Python", python]] as const).map(([title, text]) => (
        <Card key={title} title={title} aside={<Copy text={text} label={`Copy the ${title} snippet`} hidden />}>
          <pre tabIndex={0} aria-label={title}>{text}</pre>
          {title === "curl" && <p className="dim">Where the server signed its own certificate, add --cacert with its keys/authority.pem; for Python set SSL_CERT_FILE to that file.</p>}
        </Card>
      ))}
    </>
  );
}
