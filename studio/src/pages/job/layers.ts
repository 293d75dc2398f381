// Where the steps of a pipeline stand: each one column behind the last step it waits for.

export interface Step {
  name: string;
  after: string[];
  status: string;
  job?: string;
  /** The earlier job that stands for this step. */
  reused?: string;
  /** Why it runs anew, or what it was taken from. */
  reuse?: string;
  message?: string;
}

export interface Laid {
  places: Map<string, { column: number; row: number }>;
  columns: number;
  rows: number;
}

export function layers(steps: Step[]): Laid {
  const column = new Map(steps.map(({ name }) => [name, 0]));
  // As many rounds as there are steps settle every chain.
  for (let round = 0, moved = true; moved && round < steps.length; round++) {
    moved = false;
    for (const { name, after } of steps) {
      const behind = Math.max(0, ...after.map((before) => (column.get(before) ?? -1) + 1));
      if (behind > (column.get(name) ?? 0)) {
        column.set(name, behind);
        moved = true;
      }
    }
  }
  const filled = new Map<number, number>();
  const places = new Map(
    steps.map(({ name }) => {
      const at = column.get(name) ?? 0;
      const row = filled.get(at) ?? 0;
      filled.set(at, row + 1);
      return [name, { column: at, row }];
    }),
  );
  return { places, columns: Math.max(0, ...column.values()) + 1, rows: Math.max(0, ...filled.values()) };
}
