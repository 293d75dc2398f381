// One route of the server: its method, its path, and as types the names in the path and what it answers with.

type Names<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}` ? Name | Names<Rest> : never;

export interface Route<Path extends string, Reply> {
  method: string;
  path: Path;
  /** Only a type: what the route answers with. */
  reply?: Reply;
}

export type Params<Path extends string> = Record<Names<Path>, string>;
