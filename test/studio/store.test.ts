import { memoryStore } from 'pawl';
import { callTool, hang, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { RECORD_VERSION } from '../../src/record/checkpoint.ts';
import { CheckpointCorruptError } from '../../src/values/errors.ts';
import { hostOf, until } from '../fixtures/host.ts';
import { change, leftBehind } from '../fixtures/left-runs.ts';
import { plainStore, watchedStore } from '../fixtures/watched-store.ts';
import { mailTool } from '../http/web-host.ts';
import { studioHost } from './studio-host.ts';

/** A run that waits for a person, one that is interrupted, one that is parked, one that ended. */
async function someRuns() {
  const store = memoryStore();
  const options = { store, tools: [mailTool], defaults: { waitLingerMs: 1 } };
  const keeping = hostOf({ ...options, script: [reply('done')], retention: { records: 60_000 } });
  await keeping.run({ runId: 'ended', callerId: 'ada' });
  const waiting = hostOf({ ...options, script: [callTool('mail', {})] });
  await waiting.start({ runId: 'waits', callerId: 'ada' });
  await until(() => waiting.executor.runs.get().length === 0);
  const dying = hostOf({ ...options, script: [hang(), hang()] });
  await dying.start({ runId: 'idle', callerId: 'bob' });
  await dying.start({ runId: 'parked', callerId: 'ada' });
  await until(() => dying.model.calls.length === 2);
  await dying.executor.shutdown();
  await hostOf(options).executor.park('parked', 'ask carla');
  return store;
}

describe('GET /store', () => {
  test('says what the store can do, what a reader may do, and how many runs are in each state (studio 11, 12)', async () => {
    const { ask } = studioHost({ store: await someRuns(), studio: { place: 'runs.db', title: 'Ours' } });
    const { body } = await ask('/store');
    expect(body).toEqual({
      title: 'Ours',
      place: 'runs.db',
      parts: { journal: true, waits: true, commands: true, history: true, threads: true },
      may: { write: false, apply: false },
      by: { id: 'ada' },
      counts: { you: 1, idle: 1, park: 1, ok: 1 },
      isPartial: false,
      recordVersion: RECORD_VERSION,
      words: expect.objectContaining({ may: 'read-only: --write allows answers' }),
      abilities: ['Journal', 'Waits', 'Commands', 'History', 'Threads'].map((name) => ({
        ...{ name, isThere: true, text: expect.stringContaining(' ') },
      })),
    });
    // What fills a list that is empty, and where it goes.
    for (const view of ['runs', 'filtered'])
      expect(body.words.empty[view].call).toContain("export const retention = { records: '1d' };");
    const own = (await ask('/store', { as: 'bob' })).body;
    expect(own.counts).toEqual({ idle: 1 });
  });

  test('names what a store of four methods lacks (studio 12)', async () => {
    const { ask } = studioHost({ store: plainStore(await leftBehind(1)), studio: { write: true } });
    const { body } = await ask('/store');
    expect(body.parts).toEqual({ journal: false, waits: false, commands: false, history: false, threads: false });
    const history = { name: 'History', isThere: false, text: 'a run that has ended is gone' };
    expect(body.abilities).toContainEqual(history);
    expect(body).toMatchObject({ may: { write: true }, counts: { idle: 1 } });
    expect(body.words.may).toBe('answers are allowed, file changes are not');
    expect(body.words.empty.filtered).toMatchObject({ more: expect.stringContaining('keeps no record'), call: '' });
  });
});

describe('GET /store/doctor', () => {
  test('has the verdict on each run that has not ended, and what it needs, by pages (studio 11)', async () => {
    const { ask } = studioHost({ store: await someRuns(), tools: [mailTool] });
    const first = (await ask('/store/doctor?limit=2')).body;
    const rest = (await ask(`/store/doctor?limit=2&after=${first.next}`)).body;
    expect([first.items.length, rest.next]).toEqual([2, undefined]);
    const rows = [...first.items, ...rest.items];
    const found = rows.map(({ line, verdict, needs, version }) => [line.runId, verdict.verdict, needs, version]);
    expect(found.sort()).toEqual([
      ['idle', 'resumes', undefined, RECORD_VERSION],
      ['parked', 'parked', 'the cause removed, then unpark it', RECORD_VERSION],
      ['waits', 'waits', 'an answer', RECORD_VERSION],
    ]);
  });

  test('and the page of a run say what a run lacks that its process gave back (edges 2)', async () => {
    const store = await leftBehind(1);
    await change(store, 'r0', (record) => ({ ...record, setup: { code: 'MODEL', since: 0 } }));
    const { ask } = studioHost({ store });
    const [row] = (await ask('/store/doctor')).body.items;
    expect(row).toMatchObject({
      line: { state: 'idle', code: 'SETUP', why: 'no process could continue it' },
      needs: 'a process with the model, key or tool that is missing',
    });
    const { says } = (await ask('/runs/r0/record')).body;
    expect(says).toMatchObject({ state: 'idle', name: 'SETUP' });
    expect(says.text.join('')).toContain('a model, its key or a tool was missing (MODEL, since 1970-01-01');
  });

  test('costs one list for a page, not one for each of its runs (studio 33)', async () => {
    const store = watchedStore({}, await leftBehind(8));
    const { ask } = studioHost({ store });
    expect((await ask('/store/doctor')).body.items).toHaveLength(8);
    // Working runs and resting ones are two lists.
    expect(store.methods.filter((method) => method === 'listInterrupted').length).toBeLessThanOrEqual(2);
  });

  test('has a damaged record as a row, and hides no other one (studio 13)', async () => {
    const store = await leftBehind(2);
    const load = (runId: string) =>
      runId === 'r0' ? Promise.reject(new CheckpointCorruptError('its checksum is wrong')) : store.load(runId);
    const { ask } = studioHost({ store: { ...plainStore(store), load } });
    const { items } = (await ask('/store/doctor')).body;
    expect(items).toMatchObject([
      { line: { runId: 'r0' }, verdict: { verdict: 'unreadable' }, needs: 'its bytes from a backup' },
      { line: { runId: 'r1' }, verdict: { verdict: 'resumes' }, version: RECORD_VERSION },
    ]);
  });

  test('names the calls of which it is unknown whether they took effect, and no run of another caller (studio 4, 11)', async () => {
    const store = await leftBehind(2);
    const call = { callId: 'c', name: 'mail', input: {}, effect: 'once', state: 'started', attempt: 1 } as const;
    const message = {
      role: 'assistant',
      content: [{ type: 'tool-call', toolCallId: 'c', toolName: 'mail', input: {} }],
    } as const;
    await change(store, 'r0', (record) => ({ ...record, openStep: { message: message as never, calls: [call] } }));
    const { ask } = studioHost({ store, tools: [mailTool] });
    expect((await ask('/store/doctor')).body.items[0]).toMatchObject({ unknownCalls: ['mail'] });
    const { items } = (await ask('/store/doctor', { as: 'c1' })).body;
    expect(items.map(({ line }: { line: { runId: string } }) => line.runId)).toEqual(['r1']);
  });
});
