import type { PageWords } from '../../wire.ts';

/** Texts of the server; none until the store was read. */
export let words: Partial<PageWords> = {};

/** Takes the texts of the server. */
export function takeWords(given: PageWords): void {
  words = given;
}
