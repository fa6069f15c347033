import { memoryStore, type RunObserver } from 'pawl';
import { callTool, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { hostOf, toolOf, until } from '../fixtures/host.ts';
import { afterCrash } from '../fixtures/watched-store.ts';
import { measuring } from './measuring.ts';
import { collecting, faultsOf, treeOf } from './spans.ts';

/** The store after a process that died during a `once` call of its second step. */
async function diedPaying(tracing: ReturnType<ReturnType<typeof collecting>['process']>, life: { isDead: boolean }) {
  const store = memoryStore();
  const tools = [toolOf('look'), toolOf('pay', 'once', () => new Promise(() => {}))];
  const dying = hostOf({ script: [callTool('look'), callTool('pay', {}, 'p1')], tools, store, tracing });
  await dying.start({ runId: 'a' });
  await until(async () => (await store.load('a'))?.openStep?.calls[0]?.state === 'started');
  life.isDead = true;
  return afterCrash(store);
}

const tools = [toolOf('look'), toolOf('pay', 'once')];

type Observed = Parameters<NonNullable<RunObserver['onEvent']>>;

const idsOf = ({ spans }: ReturnType<typeof collecting>) => spans().map((span) => span.spanContext().spanId);

describe('a run that a person parks', () => {
  test('has a whole trace at once, and its observers learn it: no later start tells the lost attempt again (otel 4, 32)', async () => {
    const collected = collecting();
    const life = { isDead: false };
    const store = await diedPaying(collected.process({}, life), life);
    const seen: unknown[] = [];
    const observer = {
      onEvent: (...[{ type }, { attempt, info }]: Observed) => seen.push([type, attempt, info.prompt]),
    };
    const redact = (text: string) => text.replace('Go', '***');
    const { executor } = hostOf({ tools, store, observers: [observer], redact, tracing: collected.process() });
    await executor.park('a', 'look at the bill');
    expect(seen).toEqual([['run.parked', undefined, '***.']]);
    const whole = ['invoke_agent Worker', '  chat scripted', '  execute_tool look', '  chat scripted'];
    expect(treeOf(collected.spans())).toEqual([...whole, '  execute_tool pay']);
    expect(faultsOf(collected)).toEqual([]);
    const [first] = collected.spans().filter(({ attributes }) => attributes['pawl.attempt'] === 1);
    expect(first?.attributes).toMatchObject({
      'pawl.attempt.lost': true,
      'pawl.status': 'parked',
      'pawl.code': 'PARKED',
    });

    const found = await hostOf({ tools, store, tracing: collected.process() }).run({ runId: 'a' });
    expect(found.error?.code).toBe('RUN_PARKED');
    const last = hostOf({ tools, store, script: [reply('end')], tracing: collected.process() });
    await last.executor.unpark('a');
    expect((await last.run({ runId: 'a' })).status).toBe('ok');
    expect(faultsOf(collected)).toEqual([]);
    expect(idsOf(collected).length).toBe(new Set(idsOf(collected)).size);
  });

  test('is in its trace after its next start, where who parked it has no tracing (otel 4)', async () => {
    const collected = collecting();
    const life = { isDead: false };
    const store = await diedPaying(collected.process({}, life), life);
    const bare = hostOf({ tools, store });
    await bare.executor.park('a', 'look at the bill');
    await hostOf({ tools, store, tracing: collected.process() }).run({ runId: 'a' });
    expect(faultsOf(collected)).toEqual([]);
  });

  test('is in its trace after its next start, where no provider listened when it was parked (otel 1, 4)', async () => {
    const collected = collecting();
    const life = { isDead: false };
    const store = await diedPaying(collected.process({}, life), life);
    const asked: string[] = [];
    const noted = (what: string) => () => void asked.push(what);
    const idle = { begin: () => undefined, enter: noted('enter'), event: noted('event'), isIdle: () => true };
    const parking = { tools, store, onUnknownOutcome: 'park', tracing: idle } as const;
    const { executor, run } = hostOf(parking);
    await executor.park('a', 'look at the bill');
    await executor.unpark('a');
    await run({ runId: 'a' });
    // Its calls are made all the same.
    await hostOf({ tools, script: [callTool('look'), reply('end')], tracing: idle }).run();
    expect(asked).toEqual([]);
    await hostOf({ tools, store, tracing: collected.process() }).run({ runId: 'a' });
    expect(faultsOf(collected)).toEqual([]);
  });

  test('still counts its call of unknown outcome once, by the process that parks it for that later (otel 14)', async () => {
    const life = { isDead: false };
    const store = await diedPaying(collecting().process({}, life), life);
    const { tracing, read } = measuring();
    const parking = { tools, store, onUnknownOutcome: 'park', tracing } as const;
    const { executor, run } = hostOf(parking);
    await executor.park('a', 'look at the bill');
    const unknown = async () => (await read()).of('pawl.outcomes.unknown', { 'pawl.agent.id': 'worker' });
    const parkings = async (code: string) =>
      (await read()).of('pawl.parkings', { 'pawl.agent.id': 'worker', 'pawl.code': code });
    expect([await parkings('PARKED'), await unknown()]).toEqual([1, 0]);
    await executor.unpark('a');
    for (let i = 0; i < 2; i++) await run({ runId: 'a' });
    // A person parks it once more, and its call is no news.
    await executor.park('a', 'wait for the bank');
    await executor.unpark('a');
    await run({ runId: 'a' });
    expect(await unknown()).toBe(1);
  });
});

describe('a run that is parked for a call of unknown outcome', () => {
  test('has a whole trace at once: the process that parks it tells the lost attempt, its call and the code, and no later one tells them again (otel 4, 11, 32)', async () => {
    const collected = collecting();
    const life = { isDead: false };
    const store = await diedPaying(collected.process({}, life), life);
    const parking = { tools, store, onUnknownOutcome: 'park' } as const;
    const parked = await hostOf({ ...parking, tracing: collected.process() }).run({ runId: 'a' });
    expect(parked.error?.code).toBe('RUN_PARKED');
    const whole = ['invoke_agent Worker', '  chat scripted', '  execute_tool look', '  chat scripted'];
    expect(treeOf(collected.spans())).toEqual([...whole, '  execute_tool pay']);
    expect(faultsOf(collected)).toEqual([]);
    const lost = collected.spans().filter(({ name }) => name === 'invoke_agent Worker' || name === 'execute_tool pay');
    expect(lost.map(({ attributes }) => attributes).toSorted((a) => ('pawl.attempt' in a ? -1 : 1))).toEqual([
      {
        ...{ 'gen_ai.operation.name': 'invoke_agent', 'gen_ai.agent.name': 'Worker', 'pawl.agent.id': 'worker' },
        ...{ 'pawl.run.id': 'a', 'pawl.root_id': 'a', 'pawl.attempt': 1, 'pawl.attempt.lost': true },
        ...{ 'pawl.status': 'parked', 'pawl.code': 'OUTCOME_UNKNOWN' },
      },
      {
        ...{ 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': 'pay', 'gen_ai.tool.type': 'function' },
        ...{ 'gen_ai.tool.call.id': 'p1', 'pawl.tool.attempt': 1, 'pawl.tool.lost': true, 'pawl.run.id': 'a' },
        ...{ 'pawl.tool.effect': 'once', 'pawl.step': 2 },
      },
    ]);

    // Another process finds it parked, a person frees it, and a third one ends it.
    const again = await hostOf({ ...parking, tracing: collected.process() }).run({ runId: 'a' });
    expect(again.error?.code).toBe('RUN_PARKED');
    const last = hostOf({ ...parking, script: [reply('end')], tracing: collected.process() });
    await last.executor.unpark('a');
    expect((await last.run({ runId: 'a' })).status).toBe('ok');
    expect(faultsOf(collected)).toEqual([]);
    const ids = collected.spans().map((span) => span.spanContext().spanId);
    expect(ids.length).toBe(new Set(ids).size);
    expect(treeOf(collected.spans())).toEqual([
      ...[...whole, '  execute_tool pay'],
      ...['  invoke_agent Worker', '    chat scripted'],
    ]);
  });

  test('is traced by the process that continues it, where the one that parked it has no tracing (otel 4)', async () => {
    const collected = collecting();
    const life = { isDead: false };
    const store = await diedPaying(collected.process({}, life), life);
    const bare = hostOf({ tools, store, onUnknownOutcome: 'park' });
    expect((await bare.run({ runId: 'a' })).error?.code).toBe('RUN_PARKED');
    await bare.executor.unpark('a');
    const last = hostOf({ tools, store, script: [reply('end')], tracing: collected.process() });
    expect((await last.run({ runId: 'a' })).status).toBe('ok');
    expect(faultsOf(collected)).toEqual([]);
    const [first] = collected.spans().filter(({ attributes }) => attributes['pawl.attempt'] === 1);
    expect(first?.attributes).toMatchObject({ 'pawl.attempt.lost': true });
    expect(first?.attributes).not.toHaveProperty('pawl.status');
  });

  test('counts as one call of unknown outcome, however often it is found parked (otel 14)', async () => {
    const life = { isDead: false };
    const store = await diedPaying(collecting().process({}, life), life);
    const { tracing, read } = measuring();
    const parking = { tools, store, onUnknownOutcome: 'park', tracing } as const;
    for (let i = 0; i < 3; i++) await hostOf(parking).run({ runId: 'a' });
    const last = hostOf({ ...parking, script: [reply('end')] });
    await last.executor.unpark('a');
    expect((await last.run({ runId: 'a' })).status).toBe('ok');
    expect((await read()).of('pawl.outcomes.unknown', { 'pawl.agent.id': 'worker' })).toBe(1);
  });
});
