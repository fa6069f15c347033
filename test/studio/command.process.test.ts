import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, test } from 'vitest';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { nextStep, sampleRecord } from '../../src/testing/store-contract/records.ts';
import { agentFile, emptyFolder, Pawl, pawl } from '../cli/pawl.ts';
import { havePage, StudioProcess } from './studio-process.ts';

beforeAll(havePage);

/** A folder with a store that has a run. */
async function folderWithStore(): Promise<string> {
  const cwd = emptyFolder();
  await using store = sqliteStore({ path: join(cwd, 'runs.db') });
  await store.save(sampleRecord('r1'));
  return cwd;
}

const store = ['--store', 'runs.db'];

describe.concurrent('`pawl studio` (studio 17, 21, 22)', () => {
  test('says where it is, what it may do and how it stops; the address has the token after the #; Ctrl-C ends it', async () => {
    const cwd = await folderWithStore();
    const running = new Pawl(['studio', ...store, '--port', '0'], { cwd });
    await running.says('Ctrl-C stops it');
    expect(running.stdout).toMatch(/^Studio of \S+runs\.db: http:\/\/127\.0\.0\.1:\d+\/#token=[\w-]{43}\n$/);
    expect(running.stderr).toContain('It only reads; --write allows to answer and steer.');
    running.child.kill('SIGINT');
    expect((await running.ended).code).toBe(0);
  });

  test('stops when the npm that started it has gone (operations 22)', async () => {
    const cwd = await folderWithStore();
    const env = { npm_command: 'run' };
    const npm = new Pawl(['studio', ...store, '--port', '0'], { cwd, env, isBehindNpm: true });
    await npm.says('Ctrl-C stops it');
    npm.child.kill('SIGTERM');
    expect((await npm.ended).stderr).toContain('Studio has stopped');
  });

  test('takes an agent module that has no models: it runs nothing (studio 17)', async () => {
    const cwd = await folderWithStore();
    writeFileSync(
      join(cwd, 'clerk.mjs'),
      "export default { id: 'clerk', name: 'Clerk', version: '1', instructions: 'Answer.' };\n",
    );
    const running = new Pawl(['studio', ...store, '--port', '0', '--agent', 'clerk.mjs'], { cwd });
    await running.says('Ctrl-C stops it');
    running.child.kill('SIGTERM');
    expect((await running.ended).code).toBe(0);
  });

  test('keeps its token in a file of this user, and has it again after a restart; --new-token replaces it', async () => {
    const cwd = await folderWithStore();
    const env = { PAWL_STATE_HOME: join(cwd, 'state') };
    const first = await StudioProcess.start(store, { cwd, env });
    expect(await first.stop()).toBe(0);
    const folder = join(cwd, 'state', 'studio-tokens');
    const [name = '', ...others] = readdirSync(folder);
    expect(others).toEqual([]);
    if (process.platform !== 'win32') {
      expect(statSync(folder).mode & 0o777).toBe(0o700);
      expect(statSync(join(folder, name)).mode & 0o777).toBe(0o600);
    }
    const second = await StudioProcess.start(store, { cwd, env });
    expect(second.token).toBe(first.token);
    expect((await second.get('/store')).status).toBe(200);
    await second.stop();
    const third = await StudioProcess.start([...store, '--new-token'], { cwd, env });
    expect(third.token).not.toBe(first.token);
    const answer = await fetch(`http://127.0.0.1:${third.facts.port}/store`, {
      headers: { authorization: `Bearer ${first.token}` },
    });
    expect(answer.status).toBe(401);
    await third.stop();
    chmodSync(join(folder, name), 0o644);
    const refused = await pawl(['studio', ...store], { cwd, env });
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringMatching(/other users can read .*; remove it/) });
  });

  test('each store has a token of its own, however its path is written', async () => {
    const cwd = await folderWithStore();
    const env = { PAWL_STATE_HOME: join(cwd, 'state') };
    const one = await StudioProcess.start(store, { cwd, env });
    const same = await StudioProcess.start(['--store', join(cwd, '.', 'runs.db')], { cwd: '/', env });
    const other = await StudioProcess.start(['--store', 'other.db'], { cwd, env });
    expect(same.token).toBe(one.token);
    expect(other.token).not.toBe(one.token);
    await Promise.all([one.stop(), same.stop(), other.stop()]);
  });

  test('names the command that continues a run once it is answered, and none for the run of a program (studio 9)', async () => {
    const cwd = emptyFolder();
    const env = { PAWL_STATE_HOME: join(cwd, 'state') };
    await pawl(['run', agentFile('refunder'), '--run-id', 'r1', ...store], { cwd, env });
    const { waits } = JSON.parse((await pawl(['waiting', '--json', ...store], { cwd, env })).stdout);
    const studio = await StudioProcess.start(['--write', ...store], { cwd, env });
    const sent = await studio.post(`/runs/r1/answers/${waits[0].id}`, { how: 'approve', digest: waits[0].digest });
    expect(sent.body).toMatchObject({ state: 'sent' });
    const { body } = await studio.get('/runs/r1/record');
    expect(body).toMatchObject({
      resume: { command: 'pawl resume r1 --store runs.db' },
      answers: { [waits[0].id]: [{ how: 'approve', by: { id: userInfo().username }, isLast: true }] },
    });
    // On another machine nobody knows the agent module.
    const other = await StudioProcess.start(store, { cwd, env: { PAWL_STATE_HOME: join(cwd, 'other') } });
    const { resume } = (await other.get('/runs/r1/record')).body as { readonly resume: object };
    expect(resume).toEqual({ text: expect.stringContaining('executor.recover()') });
    await Promise.all([studio.stop(), other.stop()]);
    expect(await pawl(['resume', 'r1', ...store], { cwd, env })).toMatchObject({ code: 0 });
  });

  test('takes the next port if another program has the wanted one, and says so', async () => {
    const cwd = await folderWithStore();
    const taken = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => taken.once('listening', resolve));
    const { port } = taken.address() as { port: number };
    const running = new Pawl(['studio', ...store, '--port', String(port)], { cwd });
    await running.says('Ctrl-C stops it');
    expect(running.stderr).toMatch(new RegExp(`^port ${port} is taken; Studio is at port \\d+\n`));
    expect(running.stdout).not.toContain(`:${port}/`);
    running.child.kill('SIGTERM');
    expect((await running.ended).code).toBe(0);
    taken.close();
  });

  test('refuses a port that is none, a folder of --apply that is none, and a codec that is none', async () => {
    const cwd = await folderWithStore();
    writeFileSync(join(cwd, 'codec.mjs'), 'export const codec = 7;\n');
    const [port, apply, codec] = await Promise.all([
      pawl(['studio', ...store, '--port', '65536'], { cwd }),
      pawl(['studio', ...store, '--apply', 'none'], { cwd }),
      pawl(['studio', ...store, '--codec', 'codec.mjs'], { cwd }),
    ]);
    expect(port).toMatchObject({ code: 2, stderr: 'pawl: --port "65536" is not a port; use 0 to 65535\n' });
    expect(apply).toMatchObject({ code: 2, stderr: expect.stringMatching(/^pawl: --apply \S+none is not a folder/) });
    expect(codec).toMatchObject({ code: 2, stderr: expect.stringContaining('codec.mjs is not a codec') });
  });

  test('--open gives the browser a file that only this user can read, and no command line has a token', async () => {
    const cwd = await folderWithStore();
    const bin = join(cwd, 'bin');
    mkdirSync(bin);
    // It keeps what it was given: the arguments that `ps` shows, and what the file says.
    const program = `#!/bin/sh\nprintf '%s' "$1" > ${cwd}/opened\nf="\${1#file://}"\ncp -p "$f" ${cwd}/page.html\n`;
    writeFileSync(join(bin, 'xdg-open'), program, { mode: 0o755 });
    const env = { PAWL_STATE_HOME: join(cwd, 'state'), PATH: `${bin}:${process.env.PATH}` };
    // What a Studio that was killed had left, an hour ago.
    const tokens = join(cwd, 'state', 'studio-tokens');
    mkdirSync(tokens, { recursive: true, mode: 0o700 });
    const left = join(tokens, 'open-00000000-0000-4000-8000-000000000000.html');
    writeFileSync(left, 'a token', { mode: 0o600 });
    utimesSync(left, new Date(Date.now() - 3_600_000), new Date(Date.now() - 3_600_000));
    const studio = await StudioProcess.start([...store, '--open'], { cwd, env });
    while (!existsSync(join(cwd, 'page.html'))) await new Promise((resolve) => setTimeout(resolve, 10));
    const opened = readFileSync(join(cwd, 'opened'), 'utf8');
    expect(opened).toMatch(/^file:\/\/.*\/open-[\w-]+\.html$/);
    expect(opened).not.toContain(studio.token);
    expect(existsSync(left)).toBe(false);
    expect(statSync(join(cwd, 'page.html')).mode & 0o777).toBe(0o600);
    expect(readFileSync(join(cwd, 'page.html'), 'utf8')).toContain(`location.replace("${studio.facts.url}")`);
    await studio.stop();
    expect(existsSync(opened.slice('file://'.length))).toBe(false);
  });
});

/** What a worker would notice: how often another connection has committed, and the bytes of the files. */
function traceOf(cwd: string): string {
  return ['runs.db', 'runs.db-wal'].map((name) => readFileSync(join(cwd, name), 'base64')).join('\n');
}

describe.concurrent('the store of `pawl studio`', () => {
  test('an open Studio costs a worker no commit: it changes no byte, also with --write before the first action (studio 17, 25, 33)', async () => {
    const cwd = await folderWithStore();
    await using worker = sqliteStore({ path: join(cwd, 'runs.db') });
    const record = sampleRecord('r2');
    await worker.save(record);
    const before = traceOf(cwd);
    const studio = await StudioProcess.start([...store, '--write'], { cwd });
    const paths = ['/runs', '/runs/r2', '/store', '/waiting', '/threads', '/runs?q=x'];
    for (const path of paths) expect([path, (await studio.get(path)).status]).toEqual([path, 200]);
    expect(traceOf(cwd)).toBe(before);
    // A tab that watches reads what a writer commits meanwhile.
    const tab = await fetch(`http://127.0.0.1:${studio.facts.port}/watch?runs=1&run=r2`, {
      headers: { authorization: `Bearer ${studio.token}` },
    });
    const frames = tab.body?.pipeThrough(new TextDecoderStream()).getReader();
    expect((await frames?.read())?.value).toBeDefined();
    await worker.append(nextStep(record).delta);
    for (let seen = ''; !seen.includes('"steps":1'); ) seen += (await frames?.read())?.value ?? '';
    const after = traceOf(cwd);
    await sleep(1_200); // two of its polls
    expect(traceOf(cwd)).toBe(after);
    await studio.stop();
    expect(traceOf(cwd)).toBe(after);
  });

  test('has no route that writes without --write; with it, an action goes into the store (studio 17, 25)', async () => {
    const cwd = await folderWithStore();
    const reading = await StudioProcess.start(store, { cwd });
    const denied = await reading.post('/runs/r1/steer', { text: 'faster' });
    expect([404, 405]).toContain(denied.status);
    await reading.stop();
    const writing = await StudioProcess.start([...store, '--write'], { cwd });
    expect((await writing.post('/runs/r1/steer', { text: 'faster' })).status).toBeLessThan(300);
    await using worker = sqliteStore({ path: join(cwd, 'runs.db') });
    const inbox = await worker.commands.inbox({ runId: 'r1' });
    expect(inbox).toMatchObject([{ command: { kind: 'steer', text: 'faster' } }]);
    await writing.stop();
  });
});
