import { inBrowser, keep, kept } from './kept.ts';

const KEPT = 'pawl-studio-theme';
const wish = matchMedia('(prefers-color-scheme: dark)');

/** The theme that the reader chose; null: that of the system. */
let chosen = kept(inBrowser, KEPT);

function theme(): string {
  return chosen ?? (wish.matches ? 'dark' : 'light');
}

function apply(): void {
  document.documentElement.dataset.theme = theme();
}

/** Applies the theme, and each change of it. */
export function startTheme(): void {
  wish.addEventListener('change', apply);
  apply();
}

/** Changes from light to dark, or back. */
export function switchTheme(): void {
  chosen = theme() === 'dark' ? 'light' : 'dark';
  keep(inBrowser, KEPT, chosen);
  apply();
}
