import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { sampleRecord } from '../../src/testing/store-contract/records.ts';
import { emptyFolder } from '../cli/pawl.ts';
import { havePage, raw, StudioProcess } from './studio-process.ts';

let studio: StudioProcess;
let port: number;

beforeAll(async () => {
  await havePage();
  const cwd = emptyFolder();
  const store = sqliteStore({ path: `${cwd}/runs.db` });
  await store.save(sampleRecord('secret-run'));
  await store.close();
  studio = await StudioProcess.start(['--store', 'runs.db', '--write'], { cwd });
  port = studio.facts.port;
});

afterAll(() => studio?.stop());

/** A request for data that is all right, but for what a test changes. */
function asked({ path = '/runs', method = 'GET', version = '1.1', ...changed }: Record<string, string>): string[] {
  const headers: Record<string, string> = {
    Host: `127.0.0.1:${port}`,
    Authorization: `Bearer ${studio.token}`,
    Connection: 'close',
    ...changed,
  };
  const lines = Object.entries(headers).flatMap(([name, value]) => (value === '' ? [] : [`${name}: ${value}`]));
  return [`${method} ${path} HTTP/${version}`, ...lines];
}

const statusOf = async (changed: Record<string, string>) => (await raw(port, asked(changed))).status;

describe('the walls of `pawl studio` (studio 21, 22, 23, 24, 25, 31)', () => {
  test('a request with the token is answered on 127.0.0.1 and on ::1, by each name of this machine', async () => {
    const answer = await raw(port, asked({}));
    expect(answer.status).toBe(200);
    expect(answer.text).toContain('secret-run');
    expect(await statusOf({ Host: `localhost:${port}`, Origin: `http://localhost:${port}` })).toBe(200);
    expect(await statusOf({ Host: `[::1]:${port}` })).toBe(200);
    expect(await statusOf({ 'Sec-Fetch-Site': 'same-origin' })).toBe(200);
    expect(await statusOf({ 'Sec-Fetch-Site': 'none' })).toBe(200);
    const six = await raw(port, asked({ Host: `[::1]:${port}` }), '::1').catch(() => ({ status: 200 }));
    expect(six.status).toBe(200);
  });

  test('a connection that sends requests and reads no answer is closed once 16 of them are under way (studio 33)', async () => {
    const socket = connect(port, '127.0.0.1');
    socket.pause();
    const closed = new Promise<void>((resolve) => {
      socket.once('error', () => resolve());
      socket.once('close', () => resolve());
    });
    // Their answers are more than what the system keeps for a reader.
    const request = `GET /studio.js HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`;
    socket.write(request.repeat(1_000));
    // Who does not read learns by writing that the connection is gone.
    const writing = setInterval(() => socket.write(request), 50);
    await closed;
    clearInterval(writing);
    socket.destroy();
    expect(await statusOf({})).toBe(200);
  });

  test('a rebinding name, 0.0.0.0, another port and a host that is none get 421 or 400, also with the token', async () => {
    for (const Host of [
      `evil.example:${port}`,
      `127.0.0.1.evil.example:${port}`,
      `0.0.0.0:${port}`,
      `127.0.0.2:${port}`,
      `localhost.:${port}`,
      '127.0.0.1',
      `127.0.0.1:${port + 1}`,
    ])
      expect([Host, await statusOf({ Host })]).toEqual([Host, 421]);
    expect(await statusOf({ Host: `user@127.0.0.1:${port}` })).toBe(400);
    expect(await statusOf({ Host: `127.0.0.1:${port}, evil.example` })).toBe(400);
    expect(await statusOf({ Host: `127.0.0.1:${port}`, host: 'evil.example' })).toBeGreaterThanOrEqual(400);
  });

  test('HTTP/1.0 without a Host gets 421', async () => {
    expect(await statusOf({ version: '1.0', Host: '' })).toBe(421);
    expect(await statusOf({ Host: '' })).toBe(400);
  });

  test('an address in absolute form must name the same host', async () => {
    expect(await statusOf({ path: `http://127.0.0.1:${port}/runs` })).toBe(200);
    expect(await statusOf({ path: `http://evil.example:${port}/runs` })).toBe(400);
    expect(await statusOf({ path: `http://evil.example:${port}/runs`, Host: `evil.example:${port}` })).toBe(421);
    expect(await statusOf({ path: `http://u:p@127.0.0.1:${port}/runs` })).toBe(400);
    expect(await statusOf({ path: '//evil.example/runs' })).toBeGreaterThanOrEqual(400);
  });

  test('a foreign Origin gets 403, also null, another port, https and another name of this machine', async () => {
    for (const Origin of [
      'https://evil.example',
      'null',
      `http://127.0.0.1:${port + 1}`,
      `https://127.0.0.1:${port}`,
      `http://localhost:${port}`,
      `http://127.0.0.1:${port}/`,
    ])
      expect([Origin, await statusOf({ Origin })]).toEqual([Origin, 403]);
  });

  test('a request of another site gets 403; only the page itself may be opened from elsewhere, in a tab of its own', async () => {
    const foreign = { 'Sec-Fetch-Site': 'cross-site' };
    expect(await statusOf(foreign)).toBe(403);
    expect(await statusOf({ 'Sec-Fetch-Site': 'same-site' })).toBe(403);
    for (const path of ['/', '/studio.js', '/studio.css']) expect(await statusOf({ ...foreign, path })).toBe(403);
    const tab = { ...foreign, 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Dest': 'document' };
    expect(await statusOf({ ...tab, path: '/' })).toBe(200);
    expect(await statusOf({ ...tab, path: '/runs' })).toBe(403);
    expect(await statusOf({ ...tab, path: '/', 'Sec-Fetch-Dest': 'iframe' })).toBe(403);
    expect(await statusOf({ ...tab, path: '/', method: 'POST' })).toBe(403);
  });

  test('a wrong, cut, doubled or absent token gets 401, in each place where it is not looked for as well', async () => {
    const { token } = studio;
    for (const Authorization of ['', 'Bearer', 'Bearer x', `Bearer ${token.slice(1)}`, `Bearer ${token}x`, token])
      expect(await statusOf({ Authorization })).toBe(401);
    expect(await statusOf({ Authorization: `Basic ${token}` })).toBe(401);
    expect(await statusOf({ Authorization: '', Cookie: `token=${token}` })).toBe(401);
    expect(await statusOf({ Authorization: '', path: `/store?token=${token}` })).not.toBe(200);
    const all = ['/runs', '/runs/secret-run', '/runs/secret-run/events', '/waiting', '/threads', '/store'];
    for (const path of all) expect([path, await statusOf({ Authorization: '', path })]).toEqual([path, 401]);
  });

  test('what writes needs JSON, and changes nothing without the token', async () => {
    const path = '/runs/secret-run/steer';
    const post = { method: 'POST', path, 'Content-Length': '0' };
    expect(await statusOf(post)).toBe(415);
    expect(await statusOf({ ...post, 'Content-Type': 'text/plain' })).toBe(415);
    expect(await statusOf({ ...post, 'Content-Type': 'application/x-www-form-urlencoded' })).toBe(415);
    expect(await statusOf({ ...post, 'Content-Type': 'application/json', Authorization: '' })).toBe(401);
    expect(await statusOf({ ...post, 'Content-Type': 'application/json', Origin: 'https://evil.example' })).toBe(403);
    expect(await statusOf({ method: 'OPTIONS', path, Origin: 'https://evil.example' })).toBe(403);
  });

  test('headers that are too large, and bytes that are no request, get an answer, and the next request too', async () => {
    expect(await statusOf({ Padding: 'x'.repeat(100_000) })).toBe(431);
    expect((await raw(port, ['not a request'])).status).toBe(400);
    expect(await statusOf({ path: `/${'x'.repeat(10_000)}` })).toBe(404);
    expect(await statusOf({ method: 'TRACE' })).toBe(400);
    expect(await statusOf({})).toBe(200);
  });

  test('300 connections that send nothing, or half of a request, keep no request out (studio 27)', async () => {
    const sockets = Array.from({ length: 300 }, (_, i) => {
      const socket = connect(port, '127.0.0.1').on('error', () => {});
      return socket.once('connect', () => i % 2 && socket.write('GET / HTTP/1.1\r\nHost: '));
    });
    await Promise.all(sockets.map((socket) => new Promise((resolve) => socket.once('connect', resolve))));
    for (let again = 0; again < 3; again++) expect(await statusOf({})).toBe(200);
    for (const socket of sockets) socket.destroy();
  });

  test('each answer has the headers that keep a page in its place, and sets no cookie', async () => {
    const foreign = { 'Sec-Fetch-Site': 'cross-site' };
    for (const changed of [
      { path: '/' },
      {},
      { Authorization: '' },
      foreign,
      { Host: 'evil.example' },
      { path: '/no' },
    ]) {
      const { text } = await raw(port, asked(changed));
      const head = text.slice(0, text.indexOf('\r\n\r\n')).toLowerCase();
      expect(head).toContain("content-security-policy: default-src 'none'; script-src 'self'; style-src 'self';");
      expect(head).toContain("frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'");
      for (const line of [
        'x-content-type-options: nosniff',
        'referrer-policy: no-referrer',
        'cross-origin-opener-policy: same-origin',
        'cross-origin-resource-policy: same-origin',
        'cache-control: no-store',
      ])
        expect(head).toContain(line);
      expect(head).not.toContain('set-cookie');
      expect(head).not.toContain('access-control');
    }
  });
});
