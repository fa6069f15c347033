import { readFileSync } from 'node:fs';
import { defineConfig } from '@rspress/core';
import { contract, decisions, groups, staged, stagePages } from './pages.ts';

const manifest: { description: string; repository?: { url: string } } = JSON.parse(
  readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
);
/** Where links to sources lead. A package without a repository shows their paths. */
const repository = manifest.repository?.url.replace(/^git\+/, '').replace(/\.git$/, '');
stagePages(repository);

const map = groups();

export default defineConfig({
  root: staged,
  outDir: 'dist/www',
  title: 'Pawl',
  description: manifest.description,
  logoText: 'Pawl',
  icon: new URL('icon.svg', import.meta.url),
  // The index is the one of the package: its links are the pages as Markdown, which the site has too.
  llms: { llmsTxt: () => readFileSync(new URL('../docs/llms.txt', import.meta.url), 'utf8') },
  markdown: { link: { checkDeadLinks: true, checkAnchors: true } },
  // Words, not samples: of these the reference alone has half a megabyte.
  search: { codeBlocks: false },
  themeConfig: {
    nav: map.filter(({ text }) => text !== 'Inside').map(({ text, items }) => ({ text, link: items[0]?.link ?? '/' })),
    sidebar: {
      '/contract/': [{ text: 'Contract', items: contract() }],
      '/decisions/': [{ text: 'Decisions', items: decisions() }],
      '/': map.map(({ text, items }) => ({ text, items: [...items] })),
    },
    // A page is copied to the clipboard. The theme would also send it to vendors.
    llmsUI: { viewOptions: false, injectLlmsHint: false },
    enableContentAnimation: false,
  },
});
