import { signal } from '../frame/signals.ts';

const TICK_MS = 5_000;

/** The wall clock for ages on the page, ms. It stops while the tab is hidden. */
export const now = signal(Date.now());

setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, TICK_MS);
