import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { entryPoints } from '../toolchain/entry-points.ts';
import { misnamedTests } from './test-kinds.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const report = (files: Readonly<Record<string, string>>) => {
  const sources = Object.entries(files).map(([path, text]) => ({ path, text }));
  const found = misnamedTests(sources, [{ name: 'pawl', source: 'src/index.ts' }]);
  return found.map(({ path, message }) => `${path} ${message}`);
};

test('test files that start processes, threads or servers end in .process.test.ts, and no others', () => {
  const paths = globSync('{test,src,machines,docs}/**/*.ts', { cwd: root, exclude: ['test/docs/.blocks/**'] })
    .map((path) => path.replaceAll('\\', '/'))
    // The suite of an example, which the tests start as a process.
    .filter((path) => !/^docs\/.*\.test\.ts$/.test(path));
  const sources = paths.map((path) => ({ path, text: readFileSync(`${root}/${path}`, 'utf8') }));
  const names = paths.filter((path) => path.endsWith('.test.ts'));
  expect(names.filter((path) => path.endsWith('.process.test.ts')).length).toBeGreaterThan(50);
  expect(names.filter((path) => !path.endsWith('.process.test.ts')).length).toBeGreaterThan(200);
  expect(misnamedTests(sources, entryPoints)).toEqual([]);
});

test('`npm run torture` runs each test file that tries more under torture, and names no path that is gone', () => {
  const { scripts } = JSON.parse(readFileSync(`${root}/package.json`, 'utf8'));
  const named: string[] = scripts.torture.split('vitest.config.ts ')[1].split(' ');
  const files = globSync('test/**/*.test.ts', { cwd: root }).map((path) => path.replaceAll('\\', '/'));
  const tryMore = files.filter((path) =>
    /import \{[^}]*\btorture\b[^}]*\} from '[^']*\/random\.ts'/.test(readFileSync(`${root}/${path}`, 'utf8')),
  );
  expect(tryMore.length).toBeGreaterThan(50);
  expect(tryMore.filter((path) => !named.some((part) => path.includes(part)))).toEqual([]);
  expect(named.filter((part) => !files.some((path) => path.includes(part)))).toEqual([]);
});

test('no test draws without the seed, or gives up after the second that `vi.waitFor` has by default', () => {
  const own = ['test/fixtures/eventually.ts', 'test/crash/random.ts', 'test/tidy/test-kinds.test.ts'];
  const paths = globSync('test/**/*.ts', { cwd: root, exclude: ['test/docs/.blocks/**', 'test/bench/**'] })
    .map((path) => path.replaceAll('\\', '/'))
    .filter((path) => !own.includes(path));
  const isLoose = (path: string) =>
    /\bvi\.wait|Math\.floor\(Math\.random\(\) \* 2 \*\*/.test(readFileSync(`${root}/${path}`, 'utf8'));
  expect(paths.length).toBeGreaterThan(500);
  expect(paths.filter(isLoose), 'use eventually() of test/fixtures, and the seed of test/crash/random.ts').toEqual([]);
});

describe('the rule about names of test files', () => {
  test.for([
    ['child_process', "import { spawn } from 'node:child_process';"],
    ['worker_threads', "const { Worker } = await import('node:worker_threads');"],
    ['http', "import * as http from 'http';"],
    ['net', "export { createServer } from 'node:net';"],
  ])('finds a test that imports %s', ([, text]) => {
    expect(report({ 'test/a.test.ts': text as string })).toEqual([
      expect.stringMatching(/^test\/a\.test\.ts must end in \.process\.test\.ts: \S+$/),
    ]);
    expect(report({ 'test/a.process.test.ts': text as string })).toEqual([]);
  });

  test('follows helpers and entry points of the package, round circles, and names the way', () => {
    const files = {
      'test/a.test.ts': "import './x/helper.ts';",
      'test/x/helper.ts': "import '../a.test.ts';\nimport './server.ts';",
      'test/x/server.ts': "import 'node:child_process';",
      'test/b.test.ts': "import 'pawl';",
      'src/index.ts': "import './run/start.ts';",
      'src/run/start.ts': "import 'node:cluster';",
    };
    expect(report(files)).toEqual([
      'test/a.test.ts must end in .process.test.ts: test/x/helper.ts > test/x/server.ts > node:child_process',
      'test/b.test.ts must end in .process.test.ts: src/index.ts > src/run/start.ts > node:cluster',
    ]);
  });

  test('does not count types, and refuses the ending where nothing is started', () => {
    const text = "import type { ChildProcess } from 'node:child_process';\nimport './b.ts';";
    const files = { 'test/a.test.ts': text, 'test/a.process.test.ts': text, 'test/b.ts': "import 'node:fs';" };
    expect(report(files)).toEqual(['test/a.process.test.ts must not end in .process.test.ts: it starts no process']);
  });
});
