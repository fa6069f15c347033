// What a browser keeps for the page. Where it refuses to, the page works without.

/** Returns what was kept under a name; null if there is nothing. */
export function kept(storage: () => Storage, name: string): string | null {
  try {
    return storage().getItem(name);
  } catch {
    return null;
  }
}

/** Keeps a text under a name; an empty one is removed. */
export function keep(storage: () => Storage, name: string, text: string): void {
  try {
    if (text === '') storage().removeItem(name);
    else storage().setItem(name, text);
  } catch {
    // Private windows and full storages refuse it.
  }
}

/** Of this tab, until it is closed. */
export const inTab = (): Storage => sessionStorage;
/** Of this browser. */
export const inBrowser = (): Storage => localStorage;
