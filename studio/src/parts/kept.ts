// What the browser keeps for the reader. It may refuse to, and what it has kept may be anything.

/** For good, or while this tab is open. */
type Keeper = () => Storage;
const FOR_GOOD: Keeper = () => localStorage;
export const THIS_TAB: Keeper = () => sessionStorage;

export function recall(key: string, keeper = FOR_GOOD): string | null {
  try {
    return keeper().getItem(key);
  } catch {
    return null;
  }
}

/** Whether it was kept. */
export function remember(key: string, value: string, keeper = FOR_GOOD): boolean {
  try {
    keeper().setItem(key, value);
    return true;
  } catch {
    return false;
  }
}

/** A record of texts, and an empty one where what was kept is something else. */
export function recallTexts(key: string): Record<string, string> {
  try {
    const kept: unknown = JSON.parse(recall(key) ?? "{}");
    if (typeof kept !== "object" || kept === null || Array.isArray(kept)) return {};
    return Object.fromEntries(Object.entries(kept).filter((pair): pair is [string, string] => typeof pair[1] === "string"));
  } catch {
    return {};
  }
}
