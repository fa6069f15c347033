import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { isAway } from '../../src/cli/ui/exit-codes.ts';
import { StoreUnavailableError } from '../../src/values/errors.ts';
import { freePort } from '../fixtures/free-port.ts';
import { postgresServer, whyNoPostgres } from '../fixtures/postgres-server.ts';
import { agentFile, emptyFolder, Pawl, pawl } from './pawl.ts';

const json = async (url: string) => {
  const answer = await fetch(url);
  return [answer.status, await answer.json()];
};

/** The address at which a command answers probes. */
async function addressOf(worker: Pawl): Promise<string> {
  await worker.says(/health at http:\/\/\S+healthz/);
  return /health at (http:\/\/\S+)\/healthz/.exec(worker.stderr)?.[1] ?? '';
}

describe('`pawl work --health`', () => {
  test('answers probes on 127.0.0.1 until it has ended, and `pawl health` asks them (operations 4)', async () => {
    const cwd = emptyFolder();
    const worker = new Pawl(['work', agentFile('counter'), '--health', '0'], { cwd });
    const address = await addressOf(worker);
    expect(address).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    await worker.says('works on runs of');
    expect(await json(`${address}/healthz`)).toEqual([200, { ok: true, reasons: [] }]);
    const well = await pawl(['health', '--url', `${address}/readyz`], { cwd });
    expect(well).toMatchObject({ code: 0, stdout: 'ok\n' });
    worker.child.kill('SIGTERM');
    expect((await worker.ended).code).toBe(0);
    const gone = await pawl(['health', '--url', `${address}/readyz`, '--json'], { cwd });
    expect(gone).toMatchObject({ code: 1, stdout: '{"ok":false,"reasons":["NO_ANSWER"]}\n' });
  });

  test.concurrent.for(['here', '99999', ':8080', '127.0.0.1:'])(
    'refuses %j with 2 (operations 4, 23)',
    async (address) => {
      const { code, stderr } = await pawl(['work', agentFile('counter'), '--health', address], { cwd: emptyFolder() });
      expect([code, stderr]).toEqual([2, expect.stringContaining('is not an address')]);
    },
  );

  test('refuses a port that another program has, with 2 (operations 4, 23)', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => other.once('listening', resolve));
    const { port } = other.address() as AddressInfo;
    const { code, stderr } = await pawl(['work', agentFile('counter'), '--health', String(port)], {
      cwd: emptyFolder(),
    });
    expect([code, stderr]).toEqual([2, expect.stringContaining('another program has it')]);
    other.close();
  });
});

describe('`pawl health`', () => {
  test('exits with 1 for a probe that says no, and says why (operations 4)', async () => {
    const server = createServer((_, response) => {
      response.statusCode = 503;
      response.end('{"ok":false,"reasons":["STORE_AWAY\\u001b[31m", 7]}');
    }).listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/readyz`;
    const { code, stdout } = await pawl(['health', '--url', url], { cwd: emptyFolder() });
    expect(code).toBe(1);
    expect(stdout).toMatch(/^not ok: STORE_AWAY/);
    expect(stdout).not.toContain('\u001b');
    server.close();
  });

  test('refuses an address that is none with 2 (operations 4, 23)', async () => {
    const { code, stderr } = await pawl(['health', '--url', 'file:///etc/passwd'], { cwd: emptyFolder() });
    expect([code, stderr]).toEqual([2, expect.stringContaining('is not an http address')]);
  });
});

const port = await freePort();

describe('a store that does not answer', () => {
  const store = `postgres://app@127.0.0.1:${port}/app`;

  test.concurrent('ends a command with 69, not with that of bad input (operations 23)', async () => {
    const { code, stderr } = await pawl(['list', '--store', store], { cwd: emptyFolder() });
    expect([code, stderr]).toEqual([69, expect.stringContaining('cannot be reached')]);
  });

  test.concurrent('is waited for by `pawl work`, which is live and not ready, and ends with 69 after that (operations 24)', async () => {
    const args = ['work', agentFile('counter'), '--store', store, '--health', '0', '--wait-for-store', '12s'];
    const worker = new Pawl(args, { cwd: emptyFolder() });
    const address = await addressOf(worker);
    expect(await json(`${address}/healthz`)).toEqual([200, { ok: true, reasons: [] }]);
    expect(await json(`${address}/readyz`)).toEqual([503, { ok: false, reasons: ['STARTING'] }]);
    const { code, stderr } = await worker.ended;
    expect([code, stderr]).toEqual([69, expect.stringContaining('it is waited for, 12.0 s at most')]);
  });

  test.concurrent('is waited for until a signal comes: then the command ends with 0 (operations 24)', async () => {
    const worker = new Pawl(['work', agentFile('counter'), '--store', store], { cwd: emptyFolder() });
    await worker.says('it is waited for');
    worker.child.kill('SIGTERM');
    expect((await worker.ended).code).toBe(0);
  });

  test.for([
    [{ code: 'ECONNREFUSED' }, true],
    [{ code: '57P03', severity: 'FATAL' }, true],
    [{ code: '53300', severity: 'FATAL' }, true],
    [{ code: 'ERR_SQLITE_ERROR', errcode: 5 }, true],
    [new AggregateError([Object.assign(new Error('a'), { code: 'EHOSTUNREACH' })]), true],
    [new Error('timeout exceeded when trying to connect'), true],
    [{ code: '28P01', severity: 'FATAL' }, false],
    [{ code: '3D000', severity: 'FATAL' }, false],
    [{ code: 'EACCES', errno: -13 }, false],
    [new Error('no such thing'), false],
  ] as const)('is distinguished from one that is set up wrongly: %o: %s (operations 23, 24)', ([cause, away]) => {
    expect(isAway(new StoreUnavailableError('the store', { cause }))).toBe(away);
  });
});

describe.skipIf(whyNoPostgres)('`pawl work` with a database', () => {
  const server = postgresServer(['fsync=off']);

  test('that refuses the role ends with 2 at once (operations 24)', async () => {
    const store = server.url.replace(/\/\/[^@]*@/, '//nobody-at-all@');
    const { code } = await pawl(['work', agentFile('counter'), '--store', store], { cwd: emptyFolder() });
    expect(code).toBe(2);
  });
});

test('`pawl work` awaits the `close` of its module after the drain, and a failure of it changes nothing (operations 26)', async () => {
  const cwd = emptyFolder();
  const module = join(cwd, 'closing.ts');
  const said = join(cwd, 'closed');
  writeFileSync(
    module,
    `import { writeFileSync } from 'node:fs';
     export { default } from ${JSON.stringify(agentFile('counter'))};
     export { models } from ${JSON.stringify(agentFile('counter'))};
     export async function close() {
       await new Promise((resolve) => setTimeout(resolve, 50));
       writeFileSync(${JSON.stringify(said)}, 'closed');
       throw new Error('the exporter did not answer');
     }`,
  );
  const worker = new Pawl(['work', module], { cwd });
  await worker.says('works on runs of');
  worker.child.kill('SIGTERM');
  const { code, stderr } = await worker.ended;
  expect(code).toBe(0);
  expect(readFileSync(said, 'utf8')).toBe('closed');
  expect(stderr).toContain('pawl: warning: the exporter did not answer');
});
