// The pages of the site: docs/*.md with README.md as the front page. They are the only source; the map of the documentation,
// docs/README.md, gives groups, order and titles.
import { cpSync, existsSync, globSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, posix } from 'node:path';
import { fileURLToPath } from 'node:url';

export interface Entry {
  readonly text: string;
  readonly link: string;
}

export interface Group {
  readonly text: string;
  readonly items: readonly Entry[];
}

const root = fileURLToPath(new URL('..', import.meta.url));
const map = 'docs/README.md';
const unsearched = '---\nsearch: false\n---\n\n';
/** Where the pages are while the site is built. */
export const staged = fileURLToPath(new URL('dist/pages', import.meta.url));

/** The address of a page on the site. A folder's README is its index; the map has a name of its own. */
export function routeOf(page: string): string {
  if (page === map) return '/all-pages';
  return `/${page.replace(/^docs\//, '').replace(/\.md$/, '')}`.replace(/\/README$/, '/');
}

/** Every page of the site, as a path from the root of the repository. */
export function pages(): string[] {
  const found = ['README.md', ...globSync('docs/{*,contract/*,decisions/*}.md', { cwd: root })];
  return found.map((page) => page.replaceAll('\\', '/')).toSorted();
}

/** The groups of the map, in its order. A page that it does not link is at the end of `Look up` or `Inside`. */
export function groups(): Group[] {
  const found = mapped();
  const listed = new Set(found.flatMap(({ items }) => items.map(({ link }) => link)));
  const rest = pages()
    .filter((page) => /^docs\/(?:[^/]+|contract\/README)\.md$/.test(page) && page !== map)
    .map((page) => entryOf(page));
  const [newest] = decisions();
  const more = [...rest, ...(newest ? [{ text: 'Decisions', link: newest.link }] : [])];
  for (const entry of more.filter(({ link }) => !listed.has(link))) {
    const text = entry.link === '/reference' ? 'Look up' : 'Inside';
    const group = found.find((each) => each.text === text) ?? { text, items: [] };
    if (!found.includes(group)) found.push(group);
    group.items.push(entry);
  }
  return found.filter(({ items }) => items.length > 0);
}

function mapped(): { text: string; items: Entry[] }[] {
  const found: { text: string; items: Entry[] }[] = [];
  for (const line of read(map).split('\n')) {
    if (line.startsWith('## ')) found.push({ text: line.slice(3), items: [] });
    const [, text = '', page] = /^\* \[([^\]]+)\]\(([^()\s#]+\.md)\)/.exec(line) ?? [];
    if (page !== undefined) found.at(-1)?.items.push(entryOf(posix.join('docs', page), text));
  }
  return found;
}

/** The clauses, page by page, as the contract's own table has them. */
export function contract(): Entry[] {
  const rows = read('docs/contract/README.md').matchAll(/^\| \[([^\]]+)\]\(([^()\s]+\.md)\)/gm);
  const listed = [...rows].map(([, text = '', page = '']) => entryOf(`docs/contract/${page}`, text));
  return [{ text: 'The contract', link: '/contract/' }, ...listed];
}

/** The decisions, the newest first. */
export function decisions(): Entry[] {
  return pages()
    .filter((page) => page.startsWith('docs/decisions/'))
    .map((page) => entryOf(page))
    .toReversed();
}

/** Writes the pages with the links of the site. A link to what is no page leads to `repository`, or is code where there is none. */
export function stagePages(repository: string | undefined): void {
  const listed = new Set(mapped().flatMap(({ items }) => items.map(({ link }) => link)));
  // What the map does not list is for people who change Pawl, or has each name: a search would show it first.
  const isForUsers = (route: string) => route === '/' || listed.has(route);
  rmSync(staged, { recursive: true, force: true });
  for (const page of pages()) {
    const route = routeOf(page);
    const file = `${staged}${route.endsWith('/') ? `${route}index` : route}.md`;
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, `${isForUsers(route) ? '' : unsearched}${withLinks(page, repository)}`);
  }
  cpSync(`${root}/docs/pictures`, `${staged}/public/pictures`, { recursive: true });
}

function withLinks(page: string, repository: string | undefined): string {
  // A block of code, a span of code, or a link. Code stays as it is.
  const parts = /^```[\s\S]*?^```$|(`+)[^`\n]+\1(?!`)|(!?)\[((?:`[^`\n]*`|[^\]`])*)\]\(([^()\s]+)\)/gm;
  const text = read(page).replaceAll(/^```dts$/gm, '```ts'); // which the highlighter knows
  return text.replaceAll(parts, (whole, _ticks, mark: string, text: string, target: string | undefined) => {
    if (target === undefined || /^(?:[a-z]+:|#|\/)/.test(target)) return whole;
    const [path = '', anchor] = target.split('#');
    const file = posix.join(posix.dirname(page), path);
    if (mark === '!') return `![${text}](/${posix.relative('docs', file)})`;
    const index = [file, `${file}/README.md`].find((each) => pages().includes(each));
    if (index !== undefined) return `[${text}](${routeOf(index)}${anchor === undefined ? '' : `#${anchor}`})`;
    if (!existsSync(`${root}/${file}`)) throw new Error(`${page} links to ${target}, which is not there`);
    if (repository === undefined) return `${text} (\`${file}\`)`;
    const kind = statSync(`${root}/${file}`).isDirectory() ? 'tree' : 'blob';
    return `[${text}](${repository}/${kind}/HEAD/${file})`;
  });
}

function entryOf(page: string, text = titleOf(page)): Entry {
  return { text: text.replaceAll('`', ''), link: routeOf(page) };
}

function titleOf(page: string): string {
  if (page === 'docs/reference.md') return 'TypeScript API';
  const title = /^# (.*)$/m.exec(read(page))?.[1] ?? page;
  return title.replace(/ \(\d{4}-\d\d-\d\d\)$/, '');
}

function read(page: string): string {
  return readFileSync(`${root}/${page}`, 'utf8');
}
