// Where the steps of a pipeline stand: each one column behind the last step it waits for.

export interface Graph {
  places: Map<string, { column: number; row: number }>;
  edges: [string, string][];
  columns: number;
  rows: number;
}

export function layers(steps: Record<string, unknown>): Graph {
  const names = Object.keys(steps);
  const edges = names.flatMap((to) => {
    const text = JSON.stringify(steps[to]);
    const from = new Set([...text.matchAll(/\$\{\{\s*parent\.jobs\.([\w-]+)\.outputs/g)].map((match) => match[1] ?? ""));
    return [...from].filter((name) => name in steps && name !== to).map((name): [string, string] => [name, to]);
  });
  const column = new Map(names.map((name) => [name, 0]));
  // As many rounds as there are steps settle every chain, and end where the file has a circle.
  for (let round = 0; round < names.length; round++) {
    for (const [from, to] of edges) column.set(to, Math.max(column.get(to) ?? 0, Math.min(names.length, (column.get(from) ?? 0) + 1)));
  }
  const filled = new Map<number, number>();
  const places = new Map(
    names.map((name) => {
      const at = column.get(name) ?? 0;
      const row = filled.get(at) ?? 0;
      filled.set(at, row + 1);
      return [name, { column: at, row }];
    }),
  );
  return { places, edges, columns: Math.max(0, ...column.values()) + 1, rows: Math.max(0, ...filled.values()) };
}
