import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { helpFor } from '../../src/cli/help/help.ts';
import { exitCodeTable } from '../../src/cli/ui/exit-codes.ts';
import { pageOfCode, policyOf } from '../../src/values/error-codes.ts';
import { PATIENCE_MS } from '../fixtures/patience.ts';
import { codeBlocks } from './blocks.ts';
import { declaredEvents, eventsPage, listedEvents } from './event-table.ts';
import { lifecyclePage } from './lifecycle.ts';
import { limitsPage } from './limits.ts';
import { llmsPage } from './llms.ts';
import { examplesOf } from './options.ts';
import { referencePage } from './reference.ts';
import { metricsPage, operationsPage } from './tables.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
// Inside the package, so that `import 'pawl'` means the package itself.
const work = `${root}/test/docs/.blocks`;
/** How many processes run the blocks: most blocks wait little. */
const TOGETHER = 3;
/** What stands behind the words of a block that is at its end. */
const END = '--- end of block ---\n';
const blocks = codeBlocks(root);
const pageOf = (index: number) => blocks[index]?.at.split(':')[0] ?? '';
const namedBlocks = (page: string) =>
  blocks
    .filter(({ at }) => at.startsWith(`${page}:`))
    .flatMap(({ code }) => {
      const name = /^\/\/ ([a-z-]+\.ts)/.exec(code)?.[1];
      return name === undefined ? [] : [{ name, text: code }];
    });
// A suite, a server and what asks real providers run where their page is followed.
const programs = blocks.flatMap(({ at, code }, index) =>
  /^\/\/ (?:\S+\.test|server|chain|list)\.ts/.test(code) ? [] : [{ at, index }],
);
const fileOf = (index: number) => `${work}/${index}/block.ts`;

beforeAll(() => {
  rmSync(work, { recursive: true, force: true });
  writeProvider(`${work}/node_modules/@ai-sdk/openai`);
  for (const [index, { code }] of blocks.entries()) {
    mkdirSync(`${work}/${index}`, { recursive: true });
    writeFileSync(fileOf(index), `${code}\nexport {};\n`);
    writeFileSync(`${work}/${index}/model.ts`, readFileSync(`${root}/test/docs/readme-model.ts`, 'utf8'));
    // What a page shows as a file of its own can be imported by the other blocks of the page.
    for (const { name, text } of namedBlocks(pageOf(index))) writeFileSync(`${work}/${index}/${name}`, text);
  }
});
afterAll(() => rmSync(work, { recursive: true, force: true }));

/** The provider of the README's first program: its model is a script. */
function writeProvider(folder: string): void {
  mkdirSync(folder, { recursive: true });
  const manifest = {
    name: '@ai-sdk/openai',
    type: 'module',
    exports: { types: './index.d.ts', default: './index.js' },
  };
  const model = "import('@ai-sdk/provider').LanguageModelV4";
  writeFileSync(`${folder}/package.json`, JSON.stringify(manifest));
  writeFileSync(`${folder}/index.js`, "export { openai } from '../../../../readme-model.ts';\n");
  writeFileSync(`${folder}/index.d.ts`, `export declare const openai: (id: string) => ${model};\n`);
}

describe('the docs', () => {
  test('the page about the life of a run says what the machines say today', () => {
    expect(readFileSync(`${root}/docs/run-lifecycle.md`, 'utf8'), 'run `npm run docs`').toBe(lifecyclePage());
  });

  test('the reference says what the docstrings say today', () => {
    expect(readFileSync(`${root}/docs/reference.md`, 'utf8'), 'run `npm run docs`').toBe(referencePage(root));
  });

  test('the table of events has each type with its fields, its redaction and its journal class of today', () => {
    const page = readFileSync(`${root}/docs/events.md`, 'utf8');
    const declared = declaredEvents(readFileSync(`${root}/src/run/events/body.ts`, 'utf8'));
    expect(declared.map(({ type }) => type)).toEqual(listedEvents);
    expect(declared.filter(({ doc }) => doc === '')).toEqual([]);
    expect(page, 'run `npm run docs`').toBe(eventsPage(root));
  });

  test('the table of metrics has each metric with its kind, unit and attributes of today', () => {
    expect(readFileSync(`${root}/docs/traces-and-metrics.md`, 'utf8'), 'run `npm run docs`').toBe(metricsPage(root));
  });

  test('the table of exit codes is that of the command, and so is the help (operations 23)', () => {
    expect(readFileSync(`${root}/docs/operations.md`, 'utf8'), 'run `npm run docs`').toBe(operationsPage(root));
    const help = helpFor(undefined);
    for (const { code, means } of Object.values(exitCodeTable))
      expect(help).toContain(`  ${String(code).padEnd(5)}${means.replaceAll('`', '')}`);
  });

  test('the page of limits has the numbers of the code', () => {
    expect(readFileSync(`${root}/docs/limits.md`, 'utf8'), 'run `npm run docs`').toBe(limitsPage(root));
  });

  const { files } = JSON.parse(readFileSync(`${root}/package.json`, 'utf8')) as { readonly files: readonly string[] };
  const pages = globSync('docs/*.md', { cwd: root })
    .map((page) => page.replaceAll('\\', '/').replace('docs/', ''))
    .filter((page) => page !== 'README.md');
  const isPacked = (page: string) => !files.includes(`!docs/${page}`);

  test('the reading order links every page of the package, and names the others', () => {
    const index = readFileSync(`${root}/docs/README.md`, 'utf8');
    const isNamed = (page: string) => index.includes(isPacked(page) ? `(${page})` : `\`${page}\``);
    expect(pages.filter((page) => !isNamed(page))).toEqual([]);
  });

  test('llms.txt names every page of the package', () => {
    const index = readFileSync(`${root}/docs/llms.txt`, 'utf8');
    expect(pages.filter((page) => isPacked(page) && !index.includes(`(${page})`))).toEqual([]);
    expect(index, 'run `npm run docs`').toBe(llmsPage(root));
  });

  test('there are code blocks to check', () => expect(blocks.length).toBeGreaterThan(3));

  test('every code block compiles, and so does each example of an option', () => {
    mkdirSync(`${work}/options`);
    const prelude = readFileSync(`${root}/test/docs/options-prelude.ts`, 'utf8');
    writeFileSync(`${work}/options/block.ts`, examplesOf(root, prelude));
    const config = { extends: '../../tsconfig.json', include: ['*/block.ts'], compilerOptions: { noEmit: true } };
    writeFileSync(`${work}/tsconfig.json`, JSON.stringify(config));
    // Each further checker would check the libraries' types again.
    const args = ['-p', `${work}/tsconfig.json`, '--checkers', '1'];
    const tsc = `${root}/node_modules/typescript/bin/tsc`;
    const { stdout } = spawnSync(process.execPath, [tsc, ...args], { encoding: 'utf8' });
    expect(stdout).toBe('');
  });

  test.concurrent.for(programs)('the code block at $at runs to its end', async ({ index }) => {
    const { code, stderr } = await endOf(index);
    expect(stderr).toBe('');
    expect(code).toBe(0);
  });

  test('the README’s first example, killed in the middle, continues where it was and sends no mail twice', async () => {
    const index = blocks.findIndex(({ at, code }) => at.startsWith('README.md') && code.startsWith('// main.ts'));
    for (const suffix of ['', '-wal', '-shm']) rmSync(`${work}/${index}/runs.db${suffix}`, { force: true });
    rmSync(`${work}/${index}/turns.log`, { force: true });
    const killed = await run(index, 'turn 2');
    expect(killed.signal).toBe('SIGKILL');
    const resumed = await run(index);
    expect(resumed).toMatchObject({ code: 0, stdout: 'All greeted: 3 mails.\n' });
    const turns = readFileSync(`${work}/${index}/turns.log`, 'utf8').trim().split('\n');
    expect(turns).toEqual(['turn 1', 'turn 2', 'turn 2', 'turn 3', 'turn 4']);
  });

  test('the README’s first example leaves nothing when its key is missing, and may be started again with one', async () => {
    const index = blocks.findIndex(({ at, code }) => at.startsWith('README.md') && code.startsWith('// main.ts'));
    for (const suffix of ['', '-wal', '-shm']) rmSync(`${work}/${index}/runs.db${suffix}`, { force: true });
    const refused = await run(index, undefined, { OPENAI_API_KEY: '' });
    expect(refused).toMatchObject({ code: 1, stdout: '' });
    expect(refused.stderr).toContain('OpenAI API key is missing');
    expect(await run(index)).toMatchObject({ code: 0, stdout: 'All greeted: 3 mails.\n' });
  });

  test('the README’s first program has six lines less than before agents had models: 21', () => {
    const files = blocks.filter(({ at, code }) => at.startsWith('README.md') && /^\/\/ (?:agent|main)\.ts/.test(code));
    expect(files.map(({ code }) => code.trimEnd().split('\n').length)).toEqual([12, 9]);
  });

  test('every error code is explained, and no other, and each has an address', () => {
    const files = ['src/values/errors.ts', 'src/fan-out/errors.ts', 'src/edits/errors.ts'];
    const source = files.map((file) => readFileSync(`${root}/${file}`, 'utf8')).join('\n');
    const codes = [...source.matchAll(/readonly code = '([A-Z_]+)'/g)].map((match) => match[1]);
    const rows = [...readFileSync(`${root}/docs/errors.md`, 'utf8').matchAll(/^### `([A-Z_]+)`$/gm)].map(
      (match) => match[1],
    );
    expect(rows.toSorted()).toEqual(codes.toSorted());
    const own = codes.filter((code) => policyOf(code));
    expect(own.length).toBeGreaterThan(50);
    expect(own.filter((code) => !isThere(pageOfCode(code) ?? ''))).toEqual([]);
    expect(pageOfCode('ECONNREFUSED')).toBeUndefined();
  });

  test('every page that another links to exists, with its heading', () => {
    const pages = ['README.md', 'CHANGELOG.md', ...globSync('docs/**/*.md', { cwd: root })].map((page) =>
      page.replaceAll('\\', '/'),
    );
    const missing = pages.flatMap((page) =>
      linksOf(page)
        .filter((target) => !isThere(target))
        .map((target) => `${page} -> ${target}`),
    );
    expect([pages.length > 60, missing]).toEqual([true, []]);
  });

  test('no page but the decisions and the changelog names an id or a key of inputs that no longer exists', () => {
    const pages = ['README.md', ...globSync('docs/**/*.{md,ts,txt}', { cwd: root })];
    const gone = /~call|pawl\.(?:module|cwd)\b/;
    const told = pages.filter(
      (page) => !page.includes('decisions') && gone.test(readFileSync(`${root}/${page}`, 'utf8')),
    );
    expect([pages.length > 20, told]).toEqual([true, []]);
  });
});

/** Where a page links to, from the root: files, with a heading behind `#`. */
function linksOf(page: string): string[] {
  const text = readFileSync(`${root}/${page}`, 'utf8').replaceAll(/^```[\s\S]*?^```$/gm, '');
  const targets = [...text.matchAll(/\]\((?!https?:)([^)\s]+)\)/g)].map((match) => match[1] ?? '');
  return targets.map((target) => (target.startsWith('#') ? page + target : join(dirname(page), target)));
}

/** Headings are named as GitHub names them: one that comes again gets a number. */
function isThere(target: string): boolean {
  const [path = '', heading] = target.split('#');
  if (!existsSync(`${root}/${path}`)) return false;
  return heading === undefined || anchorsOf(path).has(heading);
}

const known = new Map<string, ReadonlySet<string>>();

function anchorsOf(path: string): ReadonlySet<string> {
  const anchors = known.get(path) ?? new Set(anchorsIn(readFileSync(`${root}/${path}`, 'utf8')));
  known.set(path, anchors);
  return anchors;
}

function anchorsIn(text: string): string[] {
  const counts = new Map<string, number>();
  return [...text.replaceAll(/^```[\s\S]*?^```$/gm, '').matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => {
    const slug = heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\- _]/gu, '')
      .replaceAll(' ', '-');
    const count = counts.get(slug) ?? 0;
    counts.set(slug, count + 1);
    return count === 0 ? slug : `${slug}-${count}`;
  });
}

interface End {
  readonly code: number | null;
  readonly stderr: string;
}
const ends = new Map<number, PromiseWithResolvers<End>>();

/** How a block ended. The first call runs all of them, in as many processes as work at once. */
function endOf(index: number): Promise<End> {
  if (ends.size === 0) {
    for (const program of programs) ends.set(program.index, Promise.withResolvers());
    // Those of a page together: what they need is loaded.
    const share = Math.ceil(programs.length / TOGETHER);
    for (let from = 0; from < programs.length; from += share)
      void runInTurn(programs.slice(from, from + share).map((program) => program.index));
  }
  return ends.get(index)?.promise ?? Promise.reject(new Error(`no block ${index}`));
}

/** Runs blocks one after the other in one process; one that ends it, or never ends, leaves the next ones another. */
async function runInTurn(left: number[]): Promise<void> {
  while (left.length > 0) {
    const folders = left.map((index) => `${work}/${index}`);
    const child = spawn(process.execPath, ['run-blocks.ts', END, ...folders], {
      cwd: `${root}/test/docs`,
      env: { ...process.env, OPENAI_API_KEY: 'a key' },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const patience = setTimeout(() => child.kill('SIGKILL'), PATIENCE_MS);
    let stderr = '';
    const end = (code: number | null, text: string) => {
      patience.refresh();
      ends.get(left.shift() ?? -1)?.resolve({ code, stderr: text });
    };
    child.stderr.setEncoding('utf8').on('data', (data: string) => {
      stderr += data;
      const texts = stderr.split(END);
      stderr = texts.pop() ?? '';
      for (const text of texts) end(0, text);
    });
    const [code] = (await once(child, 'close')) as [number | null];
    clearTimeout(patience);
    if (left.length > 0) end(code, stderr);
  }
}

/** Runs a block in a process of its own; with `killAt` it is killed once its log of model turns says so. */
function run(
  index: number,
  killAt?: string,
  more: NodeJS.ProcessEnv = {},
): Promise<{ code: number | null; signal: string | null; stdout: string; stderr: string }> {
  const child = spawn(process.execPath, ['block.ts'], {
    cwd: `${work}/${index}`,
    env: { ...process.env, OPENAI_API_KEY: 'a key', ...(killAt ? { HANG_AT: killAt } : {}), ...more },
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (data) => {
    stdout += data;
  });
  child.stderr.on('data', (data) => {
    stderr += data;
    if (killAt && stderr.includes(killAt)) child.kill('SIGKILL');
  });
  return new Promise((resolve) => child.on('close', (code, signal) => resolve({ code, signal, stdout, stderr })));
}
