import fc from 'fast-check';
import { memoryStore } from 'pawl';
import { callTool, hang, reply, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { seed, torture } from '../crash/random.ts';
import { gate, hostOf, settle, toolOf } from '../fixtures/host.ts';
import { type WebHost, webHost } from './web-host.ts';

const CURSORS = 200 * torture;

/** Numbers as cursors have them, and as none has them. */
const number = fc.oneof(fc.nat({ max: 20 }), fc.nat(), fc.constantFrom(Number.MAX_SAFE_INTEGER, 1e15, 1e16));
const numbers = fc.array(number, { minLength: 5, maxLength: 5 }).map((parts) => parts.join('-'));
const cursor = fc.oneof(
  numbers,
  numbers.map((text) => `${text}-end`),
  fc.array(number, { maxLength: 7 }).map((parts) => parts.join('-')),
  fc.string({ minLength: 1, maxLength: 40 }),
);

const open = (host: WebHost, after: string) => host.open(`/runs/r/events?after=${encodeURIComponent(after)}`);
const typesIn = (text: string) => [...text.matchAll(/^data: \{"type":"([a-z.]+)"/gm)].map(([, type]) => type);

describe('A cursor that no server gave', () => {
  test(`is 400 or a place, of ${CURSORS} at a live run and at one that ended: no stream breaks, and nothing is logged (seed ${seed}) (web 6, 22)`, async () => {
    const given = fc.sample(cursor, { numRuns: CURSORS, seed });
    const host = webHost({ script: [hang()], http: { maxStreams: CURSORS } });
    await host.start({ runId: 'r', callerId: 'ada' });
    for (const after of given) {
      const { status, body } = await open(host, after);
      expect([200, 400], after).toContain(status);
      if (after.endsWith('-end')) expect(status).toBe(400);
      await body?.cancel();
    }
    await host.executor.control('r').cancel();
    const read = async (after: string) => {
      const answer = await open(host, after);
      expect([200, 204, 400], after).toContain(answer.status);
      // A stream that breaks rejects here.
      await answer.text();
    };
    await Promise.all(given.map(read));
    await settle();
    expect(host.httpWarned).toEqual([]);
  });

  test('with the end of a run that has not ended is 400 (web 22, 23)', async () => {
    const host = webHost({ script: [hang()] });
    await host.start({ runId: 'r', callerId: 'ada' });
    const { status, body } = await host.ask('/runs/r/events', { headers: { 'last-event-id': '5-0-0-0-0-end' } });
    expect([status, body.code]).toEqual([400, 'BAD_REQUEST']);
    expect(host.httpWarned).toEqual([]);
  });

  test('behind the newest event takes nothing from the other readers of the run (web 6, 7)', async () => {
    const { pass, open: release } = gate<string>();
    const host = webHost({
      script: [callTool('wait', {}), reply('done')],
      tools: [toolOf('wait', 'read', () => pass())],
    });
    await host.start({ runId: 'r', callerId: 'ada' });
    const forged = await open(host, `${Number.MAX_SAFE_INTEGER}-0-0-0-0`);
    const honest = await host.open('/runs/r/events');
    await settle();
    release('fine');
    const types = typesIn(await honest.text());
    expect([types[0], types.at(-1)]).toEqual(['run.started', 'run.ended']);
    await forged.body?.cancel();
  });
});

describe('A run that ended without a journal', () => {
  test('has its end as its only event, as long as its record is kept, also without a kept outcome (web 8)', async () => {
    const store = memoryStore();
    const options = { store, retention: { records: 1e9 } };
    await hostOf({ store, retention: { records: 1e9, outcomes: 0 } }).run({ runId: 'r', callerId: 'ada' });
    const answer = await webHost(options).open('/runs/r/events');
    expect(typesIn(await answer.text())).toEqual(['run.ended']);
  });

  test('is answered by the first look at its journal, and waits for no time to pass (web 8, 23)', async () => {
    const clock = testClock();
    const options = { store: memoryStore({ clock }), retention: { records: 1e9 }, clock };
    await hostOf(options).run({ runId: 'r', callerId: 'ada' });
    const answer = await webHost({ ...options, http: { clock } }).open('/runs/r/events');
    expect([answer.status, typesIn(await answer.text())]).toEqual([200, ['run.ended']]);
  });
});
