import { createPalette, defineAgent, type JournalEvent, memoryStore, type RunEvent, type RunObserver } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { callTool, callTools, fail, hang, reply, testClock } from 'pawl/testing';
import { describe, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { type EndedRecord, reopened } from '../../src/record/reopen.ts';
import { type HostOptions, hostOf, toolOf, until } from '../fixtures/host.ts';
import { notingBudget } from '../fixtures/noting-ports.ts';
import { watchedStore } from '../fixtures/watched-store.ts';

const stores = {
  memory: () => memoryStore(),
  SQLite: () => {
    const store = sqliteStore({ path: ':memory:' });
    onTestFinished(() => store.close());
    return store;
  },
};
const onStores = Object.entries(stores);

const refused = () => fail(Object.assign(new Error('no key'), { statusCode: 400 }));
const request = { runId: 'r', prompt: 'Go.' };

/** A tool that counts what it did. */
function countedTool(name: string, effect: 'read' | 'once' = 'once') {
  const did: unknown[] = [];
  return { did, tool: toolOf(name, effect, async (_, { idempotencyKey }) => void did.push(idempotencyKey)) };
}

async function eventsOf(host: ReturnType<typeof hostOf>, runId: string): Promise<RunEvent['type'][]> {
  const types: RunEvent['type'][] = [];
  for await (const { type } of host.executor.events(runId)) types.push(type);
  return types;
}

describe('executor.retry', () => {
  test.for(onStores)(
    'continues a run that an error ended after its last recorded step, on %s (lab 4)',
    async ([, make]) => {
      const store = make();
      const { did, tool } = countedTool('pay');
      const first = await hostOf({ store, tools: [tool], script: [callTool('pay'), refused()] }).run(request);
      expect(first).toMatchObject({ status: 'error', iterations: 1 });
      const host = hostOf({ store, tools: [tool], script: [reply('paid')] });
      const run = await host.executor.retry('r');
      expect(run.accepted).toBe('resumed');
      const result = await run.result;
      expect(result).toMatchObject({ status: 'ok', output: 'paid', iterations: 2 });
      expect(did.length).toBe(1);
      expect(host.model.calls[0]?.messages).toEqual(first.messages);
      expect(result.usage.outputTokens).toBe(2 * first.usage.outputTokens);
      expect(await store.load('r', { ended: true })).toBeNull();
    },
  );

  test('makes no `once` call again that had begun, and repeats one that reads (lab 4)', async () => {
    const store = memoryStore();
    const began: string[] = [];
    const hanging = (name: string, effect: 'read' | 'once') =>
      toolOf(name, effect, async () => {
        began.push(name);
        await new Promise(() => {});
      });
    const first = hostOf({
      store,
      tools: [hanging('pay', 'once'), hanging('look', 'read')],
      script: [callTools(['pay', 'look'].map((name) => ({ name, input: {} })))],
    });
    const run = await first.start(request);
    await until(() => began.length === 2);
    expect(await run.cancel()).toMatchObject({ status: 'cancelled' });
    const [pay, look] = [countedTool('pay'), countedTool('look', 'read')];
    const next = hostOf({ store, tools: [pay.tool, look.tool], script: [reply('done')] });
    expect(await (await next.executor.retry('r')).result).toMatchObject({ status: 'ok' });
    expect([pay.did.length, look.did.length]).toEqual([0, 1]);
    expect(JSON.stringify(next.model.calls[0]?.messages.at(-1))).toContain('Outcome unknown');
  });

  test('keeps finished phases, and asks again for an answer that its schema refused (lab 4)', async () => {
    const store = memoryStore();
    const agent = {
      phases: ['plan', 'write'].map((name) => ({ name, instructions: name })),
      output: z.object({ total: z.number() }),
    };
    const first = hostOf({
      store,
      agent,
      script: [reply('a plan'), reply('no json'), reply('none')],
    });
    expect((await first.run(request)).error?.code).toBe('OUTPUT_INVALID');
    const next = hostOf({ store, agent, script: [reply('{"total":7}')] });
    const result = await (await next.executor.retry('r')).result;
    expect(result).toMatchObject({ status: 'ok', data: { total: 7 } });
    expect(result.phases.map(({ name }) => name)).toEqual(['plan', 'write']);
  });

  test('says in record, list and result that it is the same run, and is delivered with another outcomeId (lab 5)', async () => {
    const clock = testClock(1_000);
    const store = memoryStore({ clock });
    const ends: string[] = [];
    const onOutcome = ({ outcomeId }: { outcomeId: string }) => void ends.push(outcomeId);
    const options = { store, clock, onOutcome, retention: { records: '1d' } };
    const asked = { ...request, callerId: 'ada', labels: { order: '17' } };
    await hostOf({ ...options, script: [refused()] }).run(asked);
    const before = await store.load('r', { ended: true });
    await clock.advance(5_000);
    const next = hostOf({ ...options, script: [reply('done')] });
    const result = await (await next.executor.retry('r')).result;
    expect(result).toMatchObject({ runId: 'r', status: 'ok' });
    const record = await store.load('r', { ended: true });
    const { birth, beganAt, fingerprint, meta, labels } = before ?? {};
    expect(record).toMatchObject({ birth, beganAt, fingerprint, meta, labels });
    expect(labels).toEqual({ order: '17' });
    expect(record?.retries).toEqual([{ at: 6_000, steps: 0, error: { code: 'MODEL' }, used: expect.anything() }]);
    const list = await next.executor.history();
    expect(list).toMatchObject([{ runId: 'r', status: 'ok', labels, meta, beganAt: 1_000 }]);
    expect(new Set(ends).size).toBe(2);
  });

  test.for(onStores)('a record of 3 MB is reopened whole, with its journal, on %s (lab 4, 5)', async ([, make]) => {
    const store = make();
    const long = toolOf('look', 'read', async () => 'x'.repeat(1_000_000));
    const options = { store, journal: true, tools: [long] };
    const calls = [1, 2, 3].map((n) => callTool('look', { n }));
    const first = await hostOf({ ...options, script: [...calls, refused()] }).run(request);
    const next = hostOf({ ...options, script: [reply('done')] });
    const result = await (await next.executor.retry('r')).result;
    expect(result.messages.slice(0, -1)).toEqual(first.messages);
    expect((await eventsOf(next, 'r')).filter((type) => type === 'step.done')).toHaveLength(4);
  });

  test('keeps 64 characters of the code of an end, which may be any text of a host (lab 5)', async () => {
    const store = memoryStore();
    await hostOf({ store, script: [refused()] }).run(request);
    const record = (await store.load('r', { ended: true })) as EndedRecord;
    const error = { name: 'Error', code: 'c'.repeat(5_000), message: 'no' };
    const ended = { ...record, outcome: { ...record.outcome, error } } as EndedRecord;
    expect(reopened(ended, 7).retries?.[0]).toMatchObject({ at: 7, error: { code: 'c'.repeat(64) } });
  });

  test('a second bad end can be retried too, and the record names the newest 20 retries (lab 5)', async () => {
    const store = memoryStore();
    await hostOf({ store, script: [refused()] }).run(request);
    for (let i = 0; i < 22; i++) await (await hostOf({ store, script: [refused()] }).executor.retry('r')).result;
    const record = await store.load('r', { ended: true });
    expect(record?.retries?.length).toBe(20);
    expect(record?.retries?.filter(({ used }) => used)).toHaveLength(1);
  });

  test.for(onStores)('its journal continues, and has one end: %s (lab 5)', async ([, make]) => {
    const store = make();
    const options = { store, journal: true, tools: [toolOf('look')] };
    const first = hostOf({ ...options, script: [callTool('look'), refused()] });
    await first.run(request);
    expect((await eventsOf(first, 'r')).at(-1)).toBe('run.ended');
    const next = hostOf({ ...options, script: [reply('done')] });
    await (await next.executor.retry('r')).result;
    const types = await eventsOf(next, 'r');
    expect(types.filter((type) => type === 'run.ended' || type === 'run.retried')).toEqual([
      'run.retried',
      'run.ended',
    ]);
    expect(types.filter((type) => type === 'step.done')).toHaveLength(2);
  });

  test('a reader that had the end before the retry gets what came after it (lab 5)', async () => {
    const store = memoryStore();
    const first = hostOf({ store, journal: true, script: [refused()] });
    await first.run(request);
    let cursor = '';
    for await (const event of first.executor.events('r')) cursor = event.cursor;
    const next = hostOf({ store, journal: true, script: [reply('done')] });
    await (await next.executor.retry('r')).result;
    const types: string[] = [];
    for await (const { type } of next.executor.events('r', { after: cursor })) types.push(type);
    expect([types[0], types.at(-1)]).toEqual(['run.retried', 'run.ended']);
  });

  test.for(onStores)(
    'by a process that keeps no journal is in the events of its readers, in the place of the end, on %s (lab 5)',
    async ([, make]) => {
      const store = make();
      const first = hostOf({ store, journal: true, script: [refused()] });
      await first.run(request);
      let cursor = '';
      for await (const event of first.executor.events('r')) cursor = event.cursor;
      await hostOf({ store }).executor.control('r').retry();
      const next = hostOf({ store, journal: true, script: [reply('done')] });
      await next.executor.recover();
      await until(async () => (await store.outcomes.find('r'))?.status === 'ok');
      const shown: unknown[] = [];
      for await (const event of next.executor.events('r')) shown.push(event.type);
      expect(shown.filter((type) => String(type).startsWith('run.'))).toEqual([
        ...['run.started', 'run.retried', 'run.resumed', 'run.ended'],
      ]);
      const after: JournalEvent[] = [];
      for await (const event of next.executor.events('r', { after: cursor })) after.push(event);
      expect(after[0]).toMatchObject({ type: 'run.retried', status: 'error', error: { code: 'MODEL' } });
      expect([after[1]?.type, after.at(-1)?.type]).toEqual(['run.resumed', 'run.ended']);
    },
  );

  test('keeps who asked for it in the event of the retry (lab 5)', async () => {
    const store = memoryStore();
    const host = hostOf({ store, journal: true, script: [refused(), reply('done')] });
    await host.run(request);
    const by = { id: 'ada', name: 'Ada' };
    await expect(host.executor.retry('r', { by: 'ada' as never })).rejects.toThrow('by must be { id, name? }');
    await (await host.executor.retry('r', { by })).result;
    const events: JournalEvent[] = [];
    for await (const event of host.executor.events('r')) events.push(event);
    expect(events.find(({ type }) => type === 'run.retried')).toMatchObject({ status: 'error', by });
  });

  test('the totals of its day count each step once (lab 5)', async () => {
    const store = memoryStore();
    const options = { store, audit: true, tools: [toolOf('look')] };
    const first = await hostOf({ ...options, script: [callTool('look'), refused()] }).run(request);
    const next = await (await hostOf({ ...options, script: [reply('done')] }).executor.retry('r')).result;
    const totals = (await store.history.totals?.()) ?? [];
    expect(totals.map(({ status, iterations }) => [status, iterations])).toEqual([
      ['error', 1],
      ['ok', 1],
    ]);
    const sum = totals.reduce((tokens, { usage }) => tokens + usage.outputTokens, 0);
    expect(sum).toBe(next.usage.outputTokens);
    expect(next.usage.outputTokens).toBeGreaterThan(first.usage.outputTokens);
  });

  test('its attempts continue: the first one after the retry says that the one before had left (lab 5)', async () => {
    const store = memoryStore();
    await hostOf({ store, tools: [toolOf('look')], script: [callTool('look'), refused()] }).run(request);
    const seen: unknown[] = [];
    const onEvent: RunObserver['onEvent'] = (_, { attempt, previous }) => void seen.push([attempt, previous?.how]);
    const observers = [{ onEvent }];
    await (await hostOf({ store, tools: [toolOf('look')], observers, script: [reply('done')] }).executor.retry('r'))
      .result;
    expect(new Set(seen.map((each) => JSON.stringify(each)))).toEqual(new Set(['[2,"left"]']));
  });

  test('a child that the end of its run has cancelled continues with the call that began it (lab 4)', async () => {
    const store = memoryStore();
    const { did, tool } = countedTool('pay');
    const child = defineAgent({ id: 'child', instructions: 'Work.', tools: [tool] });
    const palette = createPalette({ agents: [child] });
    const desk = (script: HostOptions['script'] = []) =>
      hostOf({ store, agent: { subAgents: ['child'] }, ports: { palette }, script });
    const first = desk([callTool('agent__child', { prompt: 'Pay.' }), callTool('pay'), hang()]);
    const run = await first.start(request);
    await until(() => did.length === 1 && first.model.calls.length === 3);
    await run.cancel();
    const next = desk([reply('child done'), reply('done')]);
    const result = await (await next.executor.retry('r')).result;
    expect(result).toMatchObject({ status: 'ok', output: 'done' });
    expect(did.length).toBe(1);
    expect(JSON.stringify(result.messages)).toContain('child done');
  });

  test('a parked run is unparked, a live one is joined, and one that waits is left as it is (lab 6)', async () => {
    const store = memoryStore();
    const first = hostOf({ store, script: [hang()] });
    await first.start(request);
    expect((await first.executor.retry('r')).accepted).toBe('joined');
    await first.executor.shutdown({ drainMs: 0 });
    const next = hostOf({ store, script: [reply('done')] });
    await next.executor.park('r', 'a look');
    expect(await (await next.executor.retry('r')).result).toMatchObject({ status: 'ok' });

    const asking: HostOptions = { approvals: () => 'ask', defaults: { waitLingerMs: 1 } };
    const waiting = (script: HostOptions['script'] = []) =>
      hostOf({ store, tools: [toolOf('pay', 'once')], script, ...asking });
    expect(await waiting([callTool('pay')]).run({ ...request, runId: 'w' })).toMatchObject({ status: 'waiting' });
    const before = await store.load('w');
    const host = waiting();
    expect(await (await host.executor.retry('w')).result).toMatchObject({ status: 'waiting' });
    await host.executor.control('w').retry({ by: { id: 'ada' } });
    expect(await store.load('w')).toEqual(before);
    expect(host.model.calls).toEqual([]);
  });

  test('two at once, here and in another process, are one run that continues (lab 6)', async () => {
    const store = memoryStore();
    const { did, tool } = countedTool('pay');
    await hostOf({ store, tools: [tool], script: [callTool('pay'), refused()] }).run(request);
    const one = hostOf({ store, tools: [tool], script: [reply('done')] });
    const other = hostOf({ store, tools: [tool], script: [reply('done')] });
    const runs = await Promise.all([one.executor.retry('r'), one.executor.retry('r'), other.executor.retry('r')]);
    const results = await Promise.all(runs.map(({ result }) => result));
    expect(results.filter(({ status }) => status === 'ok').length).toBeGreaterThanOrEqual(1);
    expect(one.model.calls.length + other.model.calls.length).toBe(1);
    expect(did.length).toBe(1);
  });

  test('a process that dies at any write of a retry leaves the end, or a run that continues (lab 6)', async () => {
    for (let diesAfter = 1; ; diesAfter++) {
      const clock = testClock(1_000);
      const inner = memoryStore({ clock });
      const { did, tool } = countedTool('pay');
      await hostOf({ store: inner, clock, tools: [tool], script: [callTool('pay'), refused()] }).run(request);
      let writes = 0;
      const never = () => new Promise<never>(() => {});
      const mortal = watchedStore(
        {
          before: () => (writes >= diesAfter ? never() : undefined),
          after: ({ method }) => {
            if (['claim', 'save', 'append', 'end', 'release'].includes(method)) writes += 1;
            return writes >= diesAfter ? never() : undefined;
          },
        },
        inner,
      );
      const dying = hostOf({ store: mortal, clock, tools: [tool], script: [reply('done')] });
      const retried = dying.executor.retry('r').then(({ result }) => result);
      await Promise.race([retried, until(() => writes >= diesAfter)]);
      const isDead = writes >= diesAfter;
      await clock.advance(120_000);
      const next = hostOf({ store: inner, clock, tools: [tool], script: [reply('done')] });
      const kept = (await inner.load('r', { ended: true }))?.outcome ?? (await inner.outcomes.find('r'));
      const last = kept?.status === 'ok' ? kept : await (await next.executor.retry('r')).result;
      expect(last.status).toBe('ok');
      expect(did.length).toBe(1);
      if (!isDead) return;
    }
  });
});

test.for(['park', 'fail'] as const)(
  'a run whose budget is exceeded continues by a retry once the limit is raised, after its recorded steps: %s (lab 9)',
  async (onBudgetExceeded) => {
    const limit = { calls: 1 };
    const { did, tool } = countedTool('pay');
    const budget = notingBudget({ refuse: () => limit.calls-- <= 0 });
    const script = [callTool('pay'), reply('done')];
    const host = hostOf({ store: memoryStore(), tools: [tool], script, onBudgetExceeded, ports: { budget } });
    expect(await host.run(request)).toMatchObject({
      status: onBudgetExceeded === 'park' ? 'interrupted' : 'error',
      error: { code: 'BUDGET_EXCEEDED' },
    });
    // The budget is asked as it stands now.
    expect((await (await host.executor.retry('r')).result).error?.code).toBe('BUDGET_EXCEEDED');
    limit.calls = 9;
    expect(await (await host.executor.retry('r')).result).toMatchObject({
      status: 'ok',
      output: 'done',
      iterations: 2,
    });
    expect(did.length).toBe(1);
  },
);

describe('start with ifFailed: retry', () => {
  test('continues a run of the same request that ended badly, and is a start otherwise (lab 8)', async () => {
    const store = memoryStore();
    const { did, tool } = countedTool('pay');
    const open = (script: HostOptions['script'] = []) => hostOf({ store, tools: [tool], script });
    const again = { ifFailed: 'retry' } as const;
    expect(await open([callTool('pay'), refused()]).run(request, again)).toMatchObject({ status: 'error' });
    expect(await open([]).run(request)).toMatchObject({ status: 'error', kept: true });
    const other = await open([]).start({ ...request, prompt: 'Another.' }, again);
    expect(other.error?.code).toBe('RUN_ID_CONFLICT');
    expect(await open([reply('paid')]).run(request, again)).toMatchObject({ status: 'ok', output: 'paid' });
    expect(await open([]).run(request, again)).toMatchObject({ status: 'ok', kept: true });
    expect(did.length).toBe(1);
  });

  test('says RECORD_GONE where only the end is kept, and a wrong word is a TypeError (lab 7, 8)', async () => {
    const store = memoryStore();
    const options = { store, retention: { records: 0 }, tools: [toolOf('look')] };
    await hostOf({ ...options, script: [callTool('look'), refused()] }).run(request);
    const run = await hostOf({ ...options, script: [] }).start(request, { ifFailed: 'retry' });
    expect(run.error?.code).toBe('RECORD_GONE');
    await expect(hostOf({ store }).start(request, { ifFailed: 'again' as 'retry' })).rejects.toThrow('ifFailed');
  });
});

describe('the records of runs that did not end ok', () => {
  test('are kept as long as their outcome by default, those of others are not (lab 3)', async () => {
    const clock = testClock(1_000);
    const store = memoryStore({ clock });
    await hostOf({ store, clock, script: [refused()], retention: { outcomes: 5_000 } }).run(request);
    await hostOf({ store, clock }).run({ runId: 'good' });
    expect(await store.load('r', { ended: true })).toMatchObject({ outcome: { status: 'error' } });
    expect(await store.load('good', { ended: true })).toBeNull();
    await clock.advance(6_000);
    expect(await store.load('r', { ended: true })).toBeNull();
  });

  test('`retention.records` says it for both, and 0 keeps none (lab 3)', async () => {
    const store = memoryStore();
    await hostOf({ store, script: [refused()], retention: { records: 0 } }).run(request);
    expect(await store.load('r', { ended: true })).toBeNull();
    await hostOf({ store, script: [reply('ok')], retention: { records: '1d' } }).run({ runId: 'good' });
    expect(await store.load('good', { ended: true })).not.toBeNull();
  });
});
