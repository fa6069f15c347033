import { globSync, readFileSync } from 'node:fs';

/** A code block of a page. */
export interface Block {
  /** For example `docs/effects.md:19`. */
  readonly at: string;
  readonly code: string;
}

/** All ```ts blocks of README.md and the docs. */
export function codeBlocks(root: string): Block[] {
  const pages = ['README.md', ...globSync('docs/**/*.md', { cwd: root })]
    .map((page) => page.replaceAll('\\', '/'))
    .sort();
  return pages.flatMap((page) => blocksOf(page, readFileSync(`${root}/${page}`, 'utf8')));
}

function blocksOf(page: string, text: string): Block[] {
  const blocks: Block[] = [];
  for (const match of text.matchAll(/^```ts\n([\s\S]*?)^```$/gm)) {
    const line = text.slice(0, match.index).split('\n').length;
    blocks.push({ at: `${page}:${line}`, code: match[1] ?? '' });
  }
  return blocks;
}
