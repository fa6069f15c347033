import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type Clock, createAudit, createBudget, createExecutor, defineAgent, type Message } from 'pawl';
import { sqliteBudget, sqliteStore } from 'pawl/stores/sqlite';
import { callTool, reply, scriptedModel, testClock } from 'pawl/testing';
import { describe, expect, test, vi } from 'vitest';
import { sampleOutcome, sampleRecord } from '../../src/testing/store-contract/records.ts';
import { systemClock } from '../../src/values/clock.ts';
import { eventually } from '../fixtures/eventually.ts';
import { toolOf } from '../fixtures/host.ts';
import { countIn as countOf, freshDir } from './folder.ts';

const SECRET = 'hunter2-of-ada';

const countIn = (dir: string, text = SECRET) => countOf(dir, text);

const open = (dir: string, clock: Clock = testClock(1_000)) => sqliteStore({ path: join(dir, 'runs.db'), clock });

const said = (text: string): Message => ({ role: 'user', content: [{ type: 'text', text }] });

/** An open step; what its calls were given is in no message of the transcript. */
function stepOfSecrets(count: number, text: string): object {
  const calls = Array.from({ length: count }, (_, i) => ({
    callId: `call-${i}`,
    name: 'put',
    input: { i, text: `${SECRET} ${text}` },
  }));
  const content = calls.map(({ callId, name, input }) => ({
    type: 'tool-call',
    toolCallId: callId,
    toolName: name,
    input,
  }));
  return {
    message: { role: 'assistant', content },
    calls: calls.map((call) => ({ ...call, effect: 'once', state: 'started', attempt: 1 })),
  };
}

/** From a few bytes, which share a page with others, to many pages of their own. */
const sizes = [10, 700, 3_000, 90_000];

describe('what is deleted is gone from the bytes of the store: SQLite', () => {
  test('records of all sizes, with their inputs, steps and commands', async () => {
    const dir = freshDir();
    await using store = open(dir);
    const texts = sizes.map((size) => `${SECRET} ${'x'.repeat(size)}`);
    for (const [i, text] of texts.entries()) {
      const runId = `run-${i}`;
      const record = sampleRecord(runId, { messages: [...texts.map(said), said(text)], inputs: { text } } as never);
      await store.save(record);
      await store.save(sampleRecord(`${runId}-kept`));
      for (let revision = 2; revision < 10; revision++) {
        const head = { ...sampleRecord(runId), revision, nudges: [said(`${revision} ${text}`)] } as never;
        await store.append({ runId, revision, from: texts.length + 1, messages: [], head });
      }
      const claim = await store.claim(runId, 'us', 60_000);
      await store.commands.send(runId, { id: 'a', kind: 'steer', text });
      await store.commands.send(runId, { id: 'b', kind: 'steer', text });
      if (claim) await store.commands.acknowledge(claim, ['a']);
      if (claim) await store.release(claim);
    }
    expect(countIn(dir)).toBeGreaterThan(40);
    for (const i of texts.keys()) await store.delete(`run-${i}`);
    expect(await store.listInterrupted()).toHaveLength(texts.length);
    await store.close();
    expect(countIn(dir)).toBe(0);
  });

  test.for([3, 40])('calls of an open step of %d that later heads have replaced', async (count) => {
    const dir = freshDir();
    await using store = open(dir);
    const { messages, ...first } = sampleRecord('run');
    await store.save({ ...first, messages });
    await store.save(sampleRecord('kept'));
    const head = (revision: number, rest: object) => ({ ...first, revision, openStep: undefined, ...rest }) as never;
    for (let revision = 2; revision < 12; revision++) {
      const openStep =
        revision % 3 === 0 ? undefined : stepOfSecrets(count, `${revision} ${'x'.repeat(revision * 40)}`);
      const delta = { runId: 'run', revision, from: messages.length, messages: [], head: head(revision, { openStep }) };
      await store.append(delta);
    }
    expect(countIn(dir)).toBeGreaterThan(count);
    await store.delete('run');
    await store.close();
    expect(countIn(dir)).toBe(0);
  });

  test('outcomes whose time is over, within two minutes, while nothing else happens', async () => {
    const dir = freshDir();
    const clock = testClock(1_000);
    await using store = open(dir, clock);
    for (const [i, size] of sizes.entries()) {
      const outcome = { ...sampleOutcome(`run-${i}`), output: `${SECRET} ${'x'.repeat(size)}` };
      await store.outcomes.keep(`run-${i}`, outcome, clock.now() + 30_000);
    }
    await store.outcomes.keep('later', { ...sampleOutcome('later'), output: 'LATER' }, clock.now() + 3_600_000);
    expect(countIn(dir)).toBeGreaterThan(0);
    await clock.advance(60_000);
    await clock.advance(60_000);
    await eventually(() => expect(countIn(dir)).toBe(0), 100);
    expect(await store.outcomes.find('later')).toMatchObject({ output: 'LATER' });
  });

  test('outcomes that an earlier process kept, once a later one has claimed a run', async () => {
    const dir = freshDir();
    const earlier = open(dir);
    await earlier.outcomes.keep('run', { ...sampleOutcome('run'), output: SECRET }, 2_000);
    await earlier.close();
    expect(countIn(dir)).toBeGreaterThan(0);
    const clock = testClock(200_000);
    await using later = open(dir, clock);
    await later.claim('other', 'us', 60_000);
    await clock.advance(60_000);
    await eventually(() => expect(countIn(dir)).toBe(0), 100);
  });

  test('the minute of the sweep keeps no process alive', async () => {
    const timers: NodeJS.Timeout[] = [];
    const setTimeout: Clock['setTimeout'] = (callback, ms) => {
      const timer = systemClock.setTimeout(callback, ms);
      timers.push(timer as NodeJS.Timeout);
      return timer;
    };
    await using store = open(freshDir(), { ...systemClock, setTimeout });
    await store.outcomes.keep('run', sampleOutcome('run'), Date.now() + 60_000);
    await store.delete('run');
    expect(timers.length).toBeGreaterThan(0);
    expect(timers.filter((timer) => timer.hasRef())).toEqual([]);
  });
});

test('a deleted record of SQLite leaves the write-ahead log soon, while the store stays open and another process has it open, too', async () => {
  const dir = freshDir();
  const path = join(dir, 'runs.db');
  await using store = sqliteStore({ path });
  await using other = sqliteStore({ path });
  await store.save(sampleRecord('run', { messages: [said(`${SECRET} ${'x'.repeat(5_000)}`)] } as never));
  expect(await other.load('run')).not.toBeNull();
  await store.delete('run');
  expect(countIn(dir)).toBeGreaterThan(0);
  await eventually(() => expect(countIn(dir)).toBe(0), 100);
  expect(existsSync(`${path}-wal`) && statSync(`${path}-wal`).size).toBe(0);
});

test('a store of SQLite that is closed leaves nothing of a deleted record in the write-ahead log, while another process has it open', async () => {
  const dir = freshDir();
  const path = join(dir, 'runs.db');
  await using other = sqliteStore({ path });
  const store = sqliteStore({ path });
  await store.save(sampleRecord('run', { messages: [said(`${SECRET} ${'x'.repeat(5_000)}`)] } as never));
  await store.delete('run');
  expect(await other.load('run')).toBeNull();
  expect(countIn(dir)).toBeGreaterThan(0);
  await store.close();
  expect(countIn(dir)).toBe(0);
});

test('the wait before the write-ahead log is emptied keeps no process alive', async () => {
  const waits: NodeJS.Timeout[] = [];
  const { setTimeout: real } = globalThis;
  // Others of this process, its test runner among them, set timers as well.
  const timers = vi.spyOn(globalThis, 'setTimeout').mockImplementation(((...args: Parameters<typeof real>) => {
    const timer = real(...args);
    if (new Error().stack?.includes('sqlite/connection')) waits.push(timer);
    return timer;
  }) as typeof real);
  await using store = sqliteStore({ path: join(freshDir(), 'runs.db') });
  await store.save(sampleRecord('run'));
  await store.delete('run');
  timers.mockRestore();
  expect(waits.length).toBeGreaterThan(0);
  expect(waits.filter((timer) => timer.hasRef())).toEqual([]);
});

test('an audit has nothing left of the runs that its retention has removed', async () => {
  const dir = freshDir();
  const clock = testClock(1_000);
  const agent = defineAgent({ id: 'worker', instructions: 'Work.' });
  const run = async (prompt: string) => {
    await using store = sqliteStore({ path: join(dir, 'runs.db'), clock });
    const models = { fast: scriptedModel([callTool('look', { text: prompt }), reply(prompt)]) };
    const audit = { audit: true, retention: { audit: '1d' } } as const;
    const executor = createExecutor({ models, store, clock, tools: [toolOf('look')], ...audit });
    const { status } = await executor.run(agent, { prompt, inputs: { prompt } });
    expect(status).toBe('ok');
    await executor.shutdown();
    await store.outcomes.forget();
    await store.history.forget?.();
    return (await createAudit({ store }).totals({ by: 'day' })).reduce((sum, { runs }) => sum + runs, 0);
  };
  expect(await run(`${SECRET} ${'x'.repeat(3_000)}`)).toBe(1);
  expect(countIn(dir)).toBeGreaterThan(0);
  await clock.advance(8 * 86_400_000);
  expect(await run('something else')).toBe(2);
  await eventually(async () => expect(countIn(dir)).toBe(0));
  expect(countIn(dir, 'something else')).toBeGreaterThan(0);
});

test('a budget has nothing left of a caller whose window is over', async () => {
  const dir = freshDir();
  const clock = testClock(1_000);
  const use = async (callerId: string) => {
    const store = sqliteBudget({ path: join(dir, 'budget.db') });
    const budget = createBudget({ tokens: 1_000_000, windowMs: 60_000, store, clock });
    const executor = createExecutor({ models: { fast: scriptedModel([reply('done')]) }, ports: { budget }, clock });
    await executor.run(defineAgent({ id: 'worker', instructions: 'Work.' }), { prompt: 'Go.', callerId });
    await store.close();
  };
  await use(SECRET);
  expect(countIn(dir)).toBeGreaterThan(0);
  await clock.advance(3_600_000);
  await use('bob');
  expect(countIn(dir)).toBe(0);
});
