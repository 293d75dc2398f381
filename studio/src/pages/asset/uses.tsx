// Where a version of an asset is used: the other end of its lineage.
import { ask } from "../../api/call.ts";
import { asset_uses } from "../../api/routes.ts";
import type { Uses as Found } from "../../api/shapes.ts";
import { useData } from "../../parts/data.ts";
import { at } from "../../parts/place.ts";
import { useScope } from "../../parts/scope.ts";
import { Badge, Link, List, Wait } from "../../parts/show.tsx";

export function Uses({ kind, name, version }: { kind: string; name: string; version: string }) {
  const { names, workspace } = useScope();
  const found = useData(`uses ${kind} ${name} ${version}`, (signal) => ask<Found>(asset_uses, { ...names, kind, name, version }, { signal }));
  return (
    <Wait on={found}>
      {({ jobs, deployments }) => {
        const rows = [
          ...deployments.map((one) => ({ to: ["endpoints", one.endpoint], part: { deployment: one.name } as Record<string, string>, shown: `${one.name} of ${one.endpoint}`, as: "model of a deployment", state: one.state })),
          ...jobs.map((one) => ({ to: ["jobs", one.name], part: {}, shown: one.displayName, as: kind === "components" ? "component of a pipeline" : one.input === "" ? "environment" : `input ${one.input}`, state: one.status })),
        ];
        if (rows.length === 0) return <p className="dim">No job and no deployment uses it.</p>;
        return (
          <List
            label={`Where ${name}:${version} is used`}
            rows={rows}
            id={(row) => `${row.to.join("/")} ${row.shown} ${row.as}`}
            columns={[
              ["Used by", (row) => <Link to={at(workspace.name, row.to, row.part)}>{row.shown}</Link>],
              ["As", (row) => row.as],
              ["State", (row) => <Badge status={row.state} />],
            ]}
          />
        );
      }}
    </Wait>
  );
}
