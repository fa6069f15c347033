import { shared } from '../frame/shared.ts';
import { useShared } from '../frame/use-shared.ts';

const TICK_MS = 5_000;

const now = shared(Date.now());

setInterval(() => {
  if (!document.hidden) now.set(Date.now());
}, TICK_MS);

/** The wall clock for ages on the page, ms. It stops while the tab is hidden. */
export function useNow(): number {
  return useShared(now);
}
