// What opens an endpoint: shown when asked for, copied, and drawn anew.
import { useState } from "react";
import { ask } from "../../api/call.ts";
import { online_endpoint_keys, online_endpoint_regenerate, online_endpoint_token } from "../../api/routes.ts";
import type { Endpoint } from "../../api/shapes.ts";
import { useScope } from "../../parts/scope.ts";
import { Card, Copy, Problem } from "../../parts/show.tsx";

interface Opens {
  primaryKey?: string;
  secondaryKey?: string;
  accessToken?: string;
  expiryTimeUtc?: number;
}

export function Keys({ endpoint: { name, properties } }: { endpoint: Endpoint }) {
  const { names } = useScope();
  const params = { ...names, name };
  const byKey = (properties.authMode ?? "Key").toLowerCase() === "key";
  const [opens, setOpens] = useState<Opens>();
  const [problem, setProblem] = useState<Error>();
  const show = () => ask<Opens>(byKey ? online_endpoint_keys : online_endpoint_token, params, { body: {} }).then(setOpens, setProblem);
  const rotate = (keyType: "Primary" | "Secondary") => {
    if (!window.confirm(`Draw the ${keyType.toLowerCase()} key of ${name} anew? Callers that use the old one are refused at once.`)) return;
    ask(online_endpoint_regenerate, params, { body: { keyType } }).then(show, setProblem);
  };
  return (
    <Card title={byKey ? "Keys" : "Token"} aside={<button type="button" onClick={() => void show()}>{byKey ? "Show the keys" : "Get a token"}</button>}>
      <p className="dim">
        {byKey
          ? "Both keys open the endpoint, so callers can move to one before the other is drawn anew."
          : "A token opens the endpoint for some hours; whoever calls asks for the next one in time."}
      </p>
      {problem !== undefined && <Problem error={problem} />}
      {opens !== undefined && byKey && (
        <dl className="facts">
          {([["Primary", opens.primaryKey], ["Secondary", opens.secondaryKey]] as const).map(([which, key]) => (
            <div key={which}>
              <dt>{which}</dt>
              <dd className="bar">
                <Copy text={key ?? ""} label={`Copy the ${which.toLowerCase()} key`} />
                <button type="button" onClick={() => rotate(which)} aria-label={`Draw the ${which.toLowerCase()} key anew`}>Draw anew…</button>
              </dd>
            </div>
          ))}
        </dl>
      )}
      {opens?.accessToken !== undefined && <Copy text={opens.accessToken} label="Copy the token" />}
      <p className="dim">On the command line:</p>
      <Copy text={`peregrine online-endpoint get-credentials -n ${name}`} />
    </Card>
  );
}
