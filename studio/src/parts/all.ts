// Resources as they are read and written: a list from its first page to its last, and a change of what was read alone.
import { ask, type Options } from "../api/call.ts";
import type { Params, Route } from "../api/route.ts";
import type { Page as AnyPage } from "../api/routes.ts";
import type { Page } from "../api/shapes.ts";

/** The most a server gives at once, and the most that is asked for. */
const [AT_ONCE, MOST] = [1000, 5000];

/** Every item of a list; `nextLink` is left where there are more than are asked for. */
export async function all<Item, Path extends string = string>(route: Route<Path, AnyPage | unknown>, params: Params<Path>, options: Options = {}, most = MOST): Promise<Page<Item>> {
  const value: Item[] = [];
  let query: Options["query"] = { $top: Math.min(AT_ONCE, most), ...options.query };
  for (;;) {
    const page: Page<Item> = await ask<Page<Item>, Path, AnyPage | unknown>(route, params, { ...options, query });
    value.push(...page.value);
    if (!page.nextLink || value.length >= most) return { value, nextLink: page.nextLink ?? null };
    // Only the question of the link counts: the server may know itself by another address than this page does.
    query = Object.fromEntries(new URL(page.nextLink, location.origin).searchParams);
  }
}

/** Lets a change happen only to the state of a resource that it was made from: it is refused where someone else was faster. */
export function onlyIf({ etag }: { etag?: string }): Record<string, string> {
  return etag === undefined ? {} : { "if-match": etag };
}
