// Whether an endpoint answers, with the reason, as the server judges it by its deployments and their replicas.
import type { Endpoint } from "../../api/shapes.ts";
import { Badge, Said } from "../../parts/show.tsx";

const WORST = ["Failing", "Degraded", "Starting", "Empty", "Asleep", "Healthy"];

const word = ({ properties }: Endpoint) => properties.properties?.["peregrine.health"] ?? properties.provisioningState ?? "";

export function Health({ endpoint }: { endpoint: Endpoint }) {
  const why = endpoint.properties.properties?.["peregrine.state"];
  return (
    <span className="health">
      <Badge status={word(endpoint)} />
      {why !== undefined && (
        <small className="dim" title={why.replaceAll("`", "")}>
          <Said>{why}</Said>
        </small>
      )}
    </span>
  );
}

/** What needs a look comes first. */
export function worstFirst(endpoints: Endpoint[]): Endpoint[] {
  const place = (one: Endpoint) => (WORST.indexOf(word(one)) + WORST.length) % WORST.length;
  return [...endpoints].sort((a, b) => place(a) - place(b));
}
