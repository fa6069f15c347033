import { existsSync, globSync, readFileSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const page = readFileSync(`${root}/docs/architecture.md`, 'utf8');
const isThere = (path: string) => existsSync(`${root}/${path}`);

/** The parts of the page, by heading; '' is the beginning. */
const sections = new Map(
  page.split(/^## /m).map((part, i) => (i === 0 ? ['', part] : [part.slice(0, part.indexOf('\n')), part])),
);
const codeIn = (text = '') => [...text.matchAll(/`([^`\n]+)`/g)].map(([, code = '']) => code);
const rowsOf = (text = '') =>
  text
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .slice(2)
    .map((line) => line.slice(1, -1).split('|'));

/** The folders to which the paths of a section are relative; in all others paths begin at the root. */
const bases: Readonly<Record<string, readonly string[]>> = {
  '': ['', 'src/'],
  'The executor': ['src/executor/', 'src/executor/run/', 'src/executor/lifecycle/'],
  'The store': ['src/store/'],
  'Where is it?': ['src/', ''],
};

const index = rowsOf(sections.get('Where is it?')).map(([question = '', files, name]) => ({
  question: question.trim(),
  files: codeIn(files).map((path) => (path.startsWith('machines/') ? path : `src/${path}`)),
  name: codeIn(name)[0] ?? '',
}));

describe('docs/architecture.md', () => {
  test('names only files that exist', () => {
    const named = [...sections].flatMap(([heading, text]) =>
      codeIn(text)
        .filter((code) => /^[\w/-]+\.ts$/.test(code))
        .map((path) => ({ path, places: bases[heading] ?? [''] })),
    );
    expect(named.length).toBeGreaterThan(60);
    expect(named.filter(({ path, places }) => !places.some((place) => isThere(place + path)))).toEqual([]);
  });

  test('names each folder of src in its first table', () => {
    const folders = globSync('src/*', { cwd: root }).filter((path) => statSync(`${root}/${path}`).isDirectory());
    const named = codeIn(sections.get('')).map((path) => path.replace(/^src\//, ''));
    expect(folders.length).toBeGreaterThan(10);
    expect(folders.filter((path) => !named.includes(path.slice('src/'.length)))).toEqual([]);
  });
});

describe('the index of docs/architecture.md', () => {
  test('names for each question what the first of its files exports', () => {
    const wrong = index.filter(({ files: [first = ''], name }) => {
      const exported = new RegExp(`^export (?:async )?(?:function\\*?|class|const) ${name}\\b`, 'm');
      return !isThere(first) || !exported.test(readFileSync(`${root}/${first}`, 'utf8'));
    });
    expect(index.length).toBeGreaterThan(40);
    expect(wrong).toEqual([]);
  });

  test('asks each question once, and of each large part of the package', () => {
    const questions = index.map(({ question }) => question);
    expect(questions.filter((question, i) => !question.endsWith('?') || questions.indexOf(question) !== i)).toEqual([]);
    const asked = new Set(index.flatMap(({ files }) => files).map((path) => path.split('/').slice(0, 2).join('/')));
    const areas = ['run', 'executor', 'model', 'tool', 'store', 'record', 'values', 'budget', 'critic', 'edits', 'cli'];
    expect(areas.filter((area) => !asked.has(`src/${area}`))).toEqual([]);
  });
});
