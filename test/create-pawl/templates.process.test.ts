import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from 'vitest';
import { IS_PUBLISHED } from '../../src/values/texts/command-name.ts';
import { freePort } from '../fixtures/free-port.ts';
import { until } from '../fixtures/host.ts';
import { installInto, pathWithNode } from '../fixtures/installed.ts';
import { postgresServer, whyNoPostgres } from '../fixtures/postgres-server.ts';

/** It compiles three programs, and kills an agent at each of its boundaries in each: half a minute. */
const whyNotNow = process.env.PAWL_TEST_ENGINES ? undefined : 'npm run test:engines runs it';
const bin = fileURLToPath(new URL('../../create-pawl/bin.js', import.meta.url));
const place = mkdtempSync(join(tmpdir(), 'pawl-templates-'));
const children = new Set<ChildProcess>();
const server = postgresServer(['fsync=off']);
afterAll(() => {
  for (const child of children) child.kill('SIGKILL');
  rmSync(place, { recursive: true, force: true });
});

function create(...args: readonly string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [bin, ...args], { cwd: place, encoding: 'utf8' });
  return { status, stdout, stderr };
}

/** A folder made from a template, with what `npm install` would bring. */
function made(template: string): string {
  expect(create(template, '--template', template, '--pawl', '0.1.0')).toMatchObject({ status: 0, stderr: '' });
  const folder = join(place, template);
  const { dependencies, devDependencies } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const others = Object.keys({ ...dependencies, ...devDependencies }).filter((name) => name !== 'pawl');
  installInto(folder, others);
  return folder;
}

/** A program of a template, and what it has printed. */
function started(folder: string, args: readonly string[], env: Record<string, string> = {}) {
  const whole = { ...process.env, PATH: pathWithNode, ...env };
  const child = spawn(process.execPath, [...args], { cwd: folder, env: whole, stdio: ['pipe', 'pipe', 'pipe'] });
  children.add(child);
  const seen = { text: '' };
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (seen.text += data));
  const says = (words: string) => until(() => seen.text.includes(words));
  const killed = async () => {
    child.kill('SIGKILL');
    await once(child, 'exit');
  };
  return { child, seen, says, killed };
}

function ended(folder: string, args: readonly string[], env: Record<string, string> = {}): string {
  const whole = { ...process.env, PATH: pathWithNode, NODE_OPTIONS: '', ...env };
  const { status, stdout, stderr } = spawnSync(process.execPath, [...args], {
    cwd: folder,
    env: whole,
    encoding: 'utf8',
  });
  expect([args, status, stdout + stderr]).toEqual([args, 0, expect.anything()]);
  return stdout;
}

const pawl = join('node_modules', 'pawl', 'dist', 'src', 'cli', 'bin.js');
const paid = 'paying 4200 cents';

describe('create-pawl', () => {
  test('says what it needs, and refuses a folder that has something in it', () => {
    expect(create('--help').stdout).toMatch(/usage: create-pawl <folder>.*cli.*api.*worker.*chat/s);
    expect(create()).toMatchObject({ status: 2, stderr: 'create-pawl: name one folder; --help says more\n' });
    expect(create('x')).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('name a template: --template cli'),
    });
    expect(create('x', '--template', 'no')).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('there is no template "no"'),
    });
    expect(create('x', '--template', 'cli', '--pawl', 'file:no.tgz')).toMatchObject({
      status: 2,
      stderr: `create-pawl: there is no packed file ${join(place, 'no.tgz')}\n`,
    });
    mkdirSync(join(place, 'full', 'inside'), { recursive: true });
    const full = create('full', '--template', 'cli');
    expect(full).toMatchObject({ status: 2, stderr: expect.stringContaining('has something in it') });
  });

  // Beside no clone, as in a packed package: there is no packed file to take.
  test.skipIf(IS_PUBLISHED)(
    'without --pawl names no package of the registry before Pawl is published (edges 30)',
    () => {
      const alone = join(place, 'alone', 'create-pawl');
      cpSync(fileURLToPath(new URL('../../create-pawl', import.meta.url)), alone, { recursive: true });
      const run = () =>
        spawnSync(process.execPath, [join(alone, 'bin.js'), 'desk', '--template', 'cli'], {
          cwd: place,
          encoding: 'utf8',
        });
      expect(run()).toMatchObject({
        status: 2,
        stderr: expect.stringMatching(/not published yet: run `npm pack`.*--pawl file:<path>/s),
      });
      expect(existsSync(join(place, 'desk'))).toBe(false);
      const packed = join(place, 'alone', 'pawl-0.1.0.tgz');
      writeFileSync(packed, '');
      expect(run()).toMatchObject({ status: 0 });
      const manifest = JSON.parse(readFileSync(join(place, 'desk', 'package.json'), 'utf8'));
      expect(manifest.dependencies.pawl).toBe(`file:${realpathSync(packed)}`);
    },
  );

  test('has the switch of Pawl, and its version (edges 30)', () => {
    const text = readFileSync(bin, 'utf8');
    expect(text).toContain(`\nconst isPublished = ${IS_PUBLISHED};\n`);
    expect(text).toContain(`\nconst version = '${JSON.parse(readFileSync('package.json', 'utf8')).version}';\n`);
  });

  test('names the package by its folder, and the Pawl that it is given', () => {
    writeFileSync(join(place, 'pawl.tgz'), '');
    expect(create('My Desk', '--template', 'cli', '--pawl', 'file:./pawl.tgz')).toMatchObject({ status: 0 });
    const manifest = JSON.parse(readFileSync(join(place, 'My Desk', 'package.json'), 'utf8'));
    expect(manifest).toMatchObject({ name: 'my-desk', dependencies: { pawl: `file:${join(place, 'pawl.tgz')}` } });
    expect(readFileSync(join(place, 'My Desk', '.gitignore'), 'utf8')).toContain('node_modules');
  });
});

describe.skipIf(whyNotNow)('a program from a template', () => {
  test.for(['cli', 'api', 'worker'])(
    '%s compiles, and holds what it promises when it is killed at each boundary',
    (template) => {
      const folder = made(template);
      ended(folder, [join('node_modules', 'typescript', 'bin', 'tsc')]);
      expect(ended(folder, ['--test'])).toMatch(/\d{2,} crashes, at each of \d+ boundaries/);
    },
  );

  test('cli asks on the terminal, is killed, asks again, and pays once', async () => {
    const folder = join(place, 'cli');
    const first = started(folder, ['main.ts']);
    await first.says('Refund 42.00 EUR for order 7? [y/N]');
    await first.killed();
    const second = started(folder, ['main.ts']);
    await second.says('Refund 42.00 EUR for order 7? [y/N]');
    second.child.stdin.write('y\n');
    await second.says('Order 7 is refunded');
    expect(first.seen.text + second.seen.text).toContain(paid);
    const third = ended(folder, ['main.ts']);
    expect(third).toBe('Order 7 is refunded: 42.00 EUR.\n');
  });

  test('api takes a run, is killed while a person has it, and ends it after the answer', async () => {
    const folder = join(place, 'api');
    const PORT = String(await freePort());
    const at = (path: string, body?: object, headers: Record<string, string> = {}) =>
      fetch(`http://127.0.0.1:${PORT}${path}`, {
        ...(body ? { method: 'POST', body: JSON.stringify(body) } : {}),
        headers: { 'content-type': 'application/json', ...headers },
      });
    const first = started(folder, ['main.ts'], { PORT });
    await first.says(`http://127.0.0.1:${PORT}/`);
    const begun = await at('/api/runs', { agent: 'desk', prompt: 'Refund order 7.' }, { 'idempotency-key': 'order-7' });
    expect(begun.status).toBe(202);
    const { runId } = (await begun.json()) as { runId: string };
    const waiting = async () => ((await (await at('/api/waiting')).json()) as { items: { id: string }[] }).items;
    await until(async () => (await waiting()).length === 1);
    await first.killed();
    const second = started(folder, ['main.ts'], { PORT });
    await second.says(`http://127.0.0.1:${PORT}/`);
    expect((await at('/studio/')).status).toBe(200);
    await until(async () => (await at('/readyz')).status === 200);
    const [wait] = await waiting();
    const answered = await at(`/api/runs/${runId}/answers/${wait?.id}`, { how: 'approve' });
    expect(answered.status).toBeLessThan(300);
    await until(async () => ((await (await at(`/api/runs/${runId}`)).json()) as { state?: string }).state === 'ok');
    expect(second.seen.text).toContain(paid);
    await second.killed();
  });

  test.skipIf(whyNoPostgres)(
    'worker takes up a run that was submitted, is killed, and another one pays once',
    async () => {
      const folder = join(place, 'worker');
      const env = { PAWL_STORE: server.url };
      const work = () => started(folder, [pawl, 'work', 'agent.ts'], env);
      expect(ended(folder, ['main.ts', '7'], env)).toBe('refund-7: started\n');
      const first = work();
      const waits = () =>
        JSON.parse(ended(folder, [pawl, 'waiting', '--json'], env)) as { waits?: unknown[] } | unknown[];
      const open = () => JSON.stringify(waits()).includes('approval');
      await until(open);
      await first.killed();
      const second = work();
      ended(folder, [pawl, 'approve', 'refund-7', '--by', 'ada'], env);
      await until(() => second.seen.text.includes(paid));
      await until(() => ended(folder, [pawl, 'show', 'refund-7', '--json'], env).includes('Order 7 is refunded'));
      expect(ended(folder, ['main.ts', '7'], env)).toContain('refund-7: ended');
      await second.killed();
    },
  );
});
