import { defineTool, memoryStore } from 'pawl';
import { callTool, reply, type ScriptedEntry, testClock } from 'pawl/testing';
import { expect, test } from 'vitest';
import { StoreUnavailableError } from '../../src/values/errors.ts';
import { torture } from '../crash/random.ts';
import { hostOf, settle } from '../fixtures/host.ts';
import { watchedStore } from '../fixtures/watched-store.ts';
import { measuring } from './measuring.ts';

const RUNS = 40 * torture;
const MINUTE = 60_000;

/** A model that continues from the prompt: it asks for the payment, and then says that it is done. */
const play: ScriptedEntry = ({ messages }) =>
  messages.some(({ role }) => role === 'tool') ? reply('done') : callTool('pay', {});

test('a drill: with a deploy, a worker without its key, and a store that is away for a minute, no run is lost, no once call is made twice, and log and counters say what happened and nothing else (operations 40)', async () => {
  const clock = testClock(1_000_000);
  let isAway = false;
  const refuse = () => isAway && Promise.reject(new StoreUnavailableError('the database was stopped'));
  const store = watchedStore({ before: refuse }, memoryStore({ clock }));
  const paid = new Map<string, number>();
  const pay = defineTool({
    ...{ name: 'pay', description: 'Pays.', input: { type: 'object' }, effect: 'once', needsApproval: true },
    execute: async (_, { idempotencyKey = '' }) => {
      paid.set(idempotencyKey, (paid.get(idempotencyKey) ?? 0) + 1);
      return 'paid';
    },
  });
  const worker = (options: object = {}) => {
    const { tracing, read } = measuring();
    const script = Array.from({ length: 20 * RUNS }, () => play);
    const host = hostOf({ clock, store, tools: [pay], script, tracing, random: () => 0.5, ...options });
    host.executor.work({ concurrency: 8 });
    return { ...host, read };
  };
  const pass = async (ms: number) => {
    for (let now = 0; now < ms; now += 500) await clock.advance(500);
    await settle();
  };

  const [first, second] = [worker(), worker()];
  const bad = worker({ agent: { model: 'gone' } });
  for (let i = 0; i < RUNS; i++) await first.start({ runId: `r${i}` }, { drive: 'later' });
  await pass(MINUTE);
  isAway = true;
  await pass(MINUTE);
  const during = await second.read();
  isAway = false;
  await pass(2 * MINUTE);
  // A deploy: the first worker drains, its successor takes what it left.
  const draining = first.executor.shutdown();
  await pass(5_000);
  await draining;
  const successor = worker();
  for (let round = 0; round < 40; round++) {
    for (const { runId, id } of await successor.executor.waiting({ limit: 1_000 }))
      await successor.executor.control(runId).approve(id);
    await pass(MINUTE);
    if ((await successor.executor.stats()).live === 0 && paid.size === RUNS) break;
  }

  expect(await store.listInterrupted()).toEqual([]);
  expect(await store.listInterrupted({ status: 'waiting' })).toEqual([]);
  for (let i = 0; i < RUNS; i++) expect((await store.outcomes.find(`r${i}`))?.status, `r${i}`).toBe('ok');
  expect([paid.size, new Set(paid.values())]).toEqual([RUNS, new Set([1])]);

  const hosts = [first, second, bad, successor];
  const needing = hosts.flatMap(({ warned }) => warned.filter(({ fields }) => fields.level === 'error'));
  expect(new Set(needing.map(({ fields }) => fields.event))).toEqual(new Set(['setup.failed']));
  expect(needing.every(({ fields }) => fields.code === 'SETUP' && fields.agentId === 'worker')).toBe(true);
  const told = new Set(hosts.flatMap(({ warned }) => warned.map(({ fields }) => fields.event)));
  expect(told).toContain('due.read.failed');
  for (const event of ['run.restore.failed', 'drain.cut', 'shutdown.cut', 'checkpoint.begin.failed'])
    expect(told).not.toContain(event);
  expect(during.of('pawl.store.up')).toBe(0);
  for (const { read } of hosts) {
    const measured = await read();
    expect(measured.of('pawl.outcomes.unknown') ?? 0).toBe(0);
    expect(measured.of('pawl.leases.lost') ?? 0).toBe(0);
    expect(measured.of('pawl.parkings') ?? 0).toBe(0);
  }
  expect((await bad.read()).of('pawl.setups.failed', { 'pawl.code': 'SETUP' })).toBeGreaterThan(0);
  expect((await successor.read()).of('pawl.store.up')).toBe(1);
  for (const { executor } of [second, bad, successor]) await executor.shutdown();
});
