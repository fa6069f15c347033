import { readFileSync } from 'node:fs';

const intro = `# Pawl

> A durable runtime for LLM agent runs in TypeScript: each run is an XState actor that survives kill -9 and a deploy,
> continues from its last step, and never repeats what it has recorded.
`;

/** The index for language models: the reading order of the docs, without its examples. */
export function llmsPage(root: string): string {
  const order = readFileSync(`${root}/docs/README.md`, 'utf8');
  const lines = order
    .split('\n')
    .filter((line) => line.startsWith('## ') || /^\* \[[^\]]+\]\([a-z/-]+\.md\)/i.test(line));
  const listed = lines.map((line) => (line.startsWith('## ') ? `\n${line}\n` : line.replace('* ', '- ')));
  return `${intro}${listed.join('\n')}\n`;
}
