import { createExecutor, type Health, memoryStore } from 'pawl';
import { healthHandler } from 'pawl/http';
import { describe, expect, test } from 'vitest';

const well: Health = { live: true, ready: true, reasons: [], store: 'ok', draining: false };
const ask = (found: Partial<Health>, path: string, init?: RequestInit) =>
  healthHandler({ health: async () => ({ ...well, ...found }) })(new Request(`http://host${path}`, init));

describe('healthHandler', () => {
  test.for<[string, Partial<Health>, string, number, object]>([
    ['is live and ready', {}, '/healthz', 200, { ok: true, reasons: [] }],
    ['is live and ready', {}, '/readyz', 200, { ok: true, reasons: [] }],
    [
      'is live while its store is away',
      { ready: false, reasons: ['STORE_AWAY'] },
      '/healthz',
      200,
      { ok: true, reasons: [] },
    ],
    [
      'is not ready while its store is away',
      { ready: false, reasons: ['STORE_AWAY'] },
      '/readyz',
      503,
      { ok: false, reasons: ['STORE_AWAY'] },
    ],
    [
      'is not live',
      { live: false, ready: false, reasons: ['NOT_POLLING', 'DRAINING'] },
      '/healthz',
      503,
      { ok: false, reasons: ['NOT_POLLING'] },
    ],
    ['is asked below a path', {}, '/ops/readyz', 200, { ok: true, reasons: [] }],
  ])('of a process that %s answers so: %o %s %i (operations 4)', async ([, found, path, status, body]) => {
    const answer = await ask(found, path);
    expect([answer.status, await answer.json()]).toEqual([status, body]);
    expect(answer.headers.get('cache-control')).toBe('no-store');
  });

  test('answers with ok and reasons, and nothing else (operations 4)', async () => {
    const { executor } = { executor: createExecutor({ store: memoryStore() }) };
    const answer = await healthHandler(executor)(new Request('http://host/readyz'));
    expect(await answer.text()).toBe('{"ok":true,"reasons":[]}');
    await executor.shutdown();
    const after = await healthHandler(executor)(new Request('http://host/readyz'));
    expect(await after.json()).toEqual({ ok: false, reasons: ['DRAINING'] });
  });

  test.for([
    ['/runs', 'GET', 404],
    ['/constructor', 'GET', 404],
    ['/healthz', 'POST', 405],
    ['/readyz', 'DELETE', 405],
  ] as const)('%s %s is refused with %i (operations 4)', async ([path, method, status]) => {
    expect((await ask({}, path, { method })).status).toBe(status);
  });

  test('answers HEAD with the status and no body (operations 4)', async () => {
    const answer = await ask({ ready: false, reasons: ['DRAINING'] }, '/readyz', { method: 'HEAD' });
    expect([answer.status, await answer.text()]).toEqual([503, '']);
  });

  test('refuses what is no executor (operations 4)', () => {
    expect(() => healthHandler({} as never)).toThrow('healthHandler needs an executor');
  });
});
