// What the browser keeps for the reader. It may refuse to.

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
