import { useEffect } from 'preact/hooks';
import { place, show } from './route.ts';
import { shared } from './shared.ts';
import { useNewest } from './use-shared.ts';

/** What a key does in the view that is shown; `true`: it was used. */
type KeyHandler = (key: string, event: KeyboardEvent) => boolean | undefined;

const handlers = new Set<KeyHandler>();

/** Whether the list of keys is open. */
export const isHelpOpen = shared(false);

/** Lets a view use keys while it is shown. */
export function useKeys(handler: KeyHandler): void {
  const newest = useNewest(handler);
  useEffect(() => {
    const own: KeyHandler = (key, event) => newest.current(key, event);
    handlers.add(own);
    return () => handlers.delete(own);
  }, []);
}

const views: { readonly [key: string]: string } = { r: 'runs', i: 'inbox', f: 'fan-outs', t: 'threads', s: 'store' };
let isChord = false;

/** Begins to listen. */
export function startKeys(): void {
  addEventListener('keydown', (event) => {
    const { key, target, ctrlKey, metaKey, altKey } = event;
    const isTyping = target instanceof HTMLElement && target.matches('input, textarea, select, [contenteditable]');
    if (isTyping && key === 'Escape') target.blur();
    if (isTyping && !(ctrlKey || metaKey)) return;
    if (altKey) return;
    if (isUsed(ctrlKey || metaKey ? `Mod+${key}` : key, event)) event.preventDefault();
  });
}

function isUsed(key: string, event: KeyboardEvent): boolean {
  if (document.querySelector('dialog[open]')) return false;
  if (isChord) {
    isChord = false;
    const view = views[key];
    if (view) show(`#/${view}`);
    return view !== undefined;
  }
  for (const handler of [...handlers].reverse()) if (handler(key, event)) return true;
  if (key === 'g') isChord = true;
  else if (key === '?') isHelpOpen.set(true);
  else if (key === 'a') show('#/inbox');
  else if (key === 'Escape' && place.value.id !== '') history.back();
  else return false;
  return true;
}
