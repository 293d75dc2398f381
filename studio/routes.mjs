// Writes src/api/routes.ts from the OpenAPI document; with --check, fails where it would change.
import { readFileSync, writeFileSync } from "node:fs";

const here = new URL(".", import.meta.url);
const document = JSON.parse(readFileSync(new URL("../docs/reference/openapi.json", here), "utf8"));
const target = new URL("src/api/routes.ts", here);

/** What a page never calls: other programs' protocols, and MLflow's routes under their other prefixes. */
const OTHERS = /^(blob|agent|cluster_|openid|token|machine_token|home|studio$|studio_page|studio_file|registry)/;
const isOurs = (id, path) => !OTHERS.test(id) && (!id.startsWith("mlflow_") || path.startsWith("/mlflow/v2.0/"));

function type(schema) {
  if (schema.$ref) return schema.$ref.split("/").pop();
  const kinds = [schema.type].flat();
  return kinds.map((kind) => one(kind, schema)).join(" | ");
}

function one(kind, schema) {
  switch (kind) {
    case "string":
      return "string";
    case "null":
      return "null";
    case "number":
    case "integer":
      return "number";
    case "boolean":
      return "boolean";
    case "array":
      return `${schema.items ? type(schema.items) : "unknown"}[]`;
    case "object": {
      const fields = Object.entries(schema.properties ?? {});
      if (fields.length === 0) return "Record<string, unknown>";
      const must = schema.required ?? [];
      return `{ ${fields.map(([name, inner]) => `${name}${must.includes(name) ? "" : "?"}: ${type(inner)}`).join("; ")} }`;
    }
    default:
      return "unknown";
  }
}

const lines = [
  "// Made from docs/reference/openapi.json by `npm run gen`. Do not edit.",
  'import type { Route } from "./route.ts";',
  "",
];
for (const [name, schema] of Object.entries(document.components.schemas)) {
  lines.push(`export interface ${name} ${type(schema)}`);
}
lines.push("");
for (const [path, methods] of Object.entries(document.paths)) {
  for (const [method, operation] of Object.entries(methods)) {
    const id = operation.operationId;
    if (!isOurs(id, path)) continue;
    const reply = operation.responses["2XX"]?.content?.["application/json"]?.schema?.$ref?.split("/").pop() ?? "unknown";
    const name = id.replace(/_v2_0$/, "");
    lines.push(`/** ${operation.summary} */`);
    const at = JSON.stringify(path);
    // The path is a type too, so that a call without one of its names does not compile.
    lines.push(`export const ${name}: Route<${at}, ${reply}> = { method: "${method.toUpperCase()}", path: ${at} };`);
  }
}
const text = `${lines.join("\n")}\n`;

if (process.argv.includes("--check")) {
  if (readFileSync(target, "utf8") !== text) {
    console.error("src/api/routes.ts is not what the OpenAPI document says; run `npm run gen` in studio/");
    process.exit(1);
  }
} else {
  writeFileSync(target, text);
}
