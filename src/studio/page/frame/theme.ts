import { inBrowser, keep, kept } from './kept.ts';
import { effect, signal } from './signals.ts';

const KEPT = 'pawl-studio-theme';
const wish = matchMedia('(prefers-color-scheme: dark)');

/** The theme that the reader chose; null: that of the system. */
const chosen = signal(kept(inBrowser, KEPT));
const system = signal(wish.matches ? 'dark' : 'light');

/** Applies the theme, and each change of it. */
export function startTheme(): void {
  wish.addEventListener('change', ({ matches }) => {
    system.value = matches ? 'dark' : 'light';
  });
  effect(() => {
    document.documentElement.dataset.theme = chosen.value ?? system.value;
  });
}

/** Changes from light to dark, or back. */
export function switchTheme(): void {
  const next = (chosen.value ?? system.value) === 'dark' ? 'light' : 'dark';
  chosen.value = next;
  keep(inBrowser, KEPT, next);
}
