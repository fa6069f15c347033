import { createPalette, defineAgent, type JsonObject, memoryStore } from 'pawl';
import { callTool, callTools, fail, hang, reply, type ScriptedEntry, testClock } from 'pawl/testing';
import { expect, test } from 'vitest';
import { type HostOptions, hostOf, toolOf, until } from '../fixtures/host.ts';
import { notingCritic } from '../fixtures/noting-ports.ts';
import { afterCrash } from '../fixtures/watched-store.ts';

const refused = () => fail(Object.assign(new Error('no key'), { statusCode: 400 }));
const request = { runId: 'r', prompt: 'Go.' };

const look = toolOf('look', 'read');
const failing = toolOf('look', 'read', () => {
  throw new Error('no');
});
const differing = [callTool('look', { n: 1 }), callTool('look', { n: 2 })];
const again = callTool('look', { n: 3 });

/** A run meets its limit with the first calls, and would meet it again at once with the calls of the retry. */
const limits: Record<string, { host: HostOptions; first: readonly ScriptedEntry[]; next: readonly ScriptedEntry[] }> = {
  maxSteps: { host: { tools: [look], agent: { maxSteps: 2 } }, first: differing, next: [again] },
  maxConsecutiveToolErrors: {
    host: { tools: [failing], defaults: { maxConsecutiveToolErrors: 2 } },
    first: differing,
    next: [again],
  },
  maxSameToolCallRepeats: {
    host: { tools: [look], defaults: { maxSameToolCallRepeats: 2 } },
    first: [again, again],
    next: [again],
  },
};

test.for(Object.entries(limits))(
  'a retry gives the run its limits again: one that met %s works on (lab 5)',
  async ([limit, { host, first, next }]) => {
    const store = memoryStore();
    const ended = await hostOf({ store, ...host, script: first }).run(request);
    expect(ended.error?.code).toBe(limit === 'maxSteps' ? 'STEP_LIMIT' : 'TOOL_LOOP');
    const retried = hostOf({ store, ...host, script: [...next, reply('done')] });
    expect(await (await retried.executor.retry('r')).result).toMatchObject({ status: 'ok', output: 'done' });
  },
);

test('a retry gives the run its working time again (lab 5)', async () => {
  const clock = testClock(1_000);
  const store = memoryStore({ clock });
  const slow = toolOf('look', 'read', async () => {
    await clock.advance(600);
    return 'seen';
  });
  const options = { store, clock, tools: [slow], agent: { maxRuntimeMs: 1_000 } };
  expect(await hostOf({ ...options, script: differing }).run(request)).toMatchObject({
    error: { code: 'DEADLINE_EXCEEDED' },
  });
  // The call that was open is made again, and takes 600 ms.
  const next = hostOf({ ...options, script: [reply('done')] });
  expect(await (await next.executor.retry('r')).result).toMatchObject({ status: 'ok', output: 'done' });
});

test('a retry gives the run its starts again: one that died in each of them may be started as often (lab 5)', async () => {
  const defaults = { maxAttempts: 2 };
  let store = memoryStore();
  const options = () => ({ store, defaults, tools: [look] });
  /** Processes that die before they record anything. */
  const die = async (start: (host: ReturnType<typeof hostOf>) => Promise<unknown>) => {
    const host = hostOf({ ...options(), script: [hang()] });
    await start(host);
    await until(() => host.model.calls.length === 1);
    store = await afterCrash(store);
  };
  const started = hostOf({ ...options(), script: [callTool('look'), hang()] });
  await started.start(request);
  await until(() => started.model.calls.length === 2);
  store = await afterCrash(store);
  for (let n = 0; n < 2; n++) await die((host) => host.start(request));
  expect(await hostOf(options()).run(request)).toMatchObject({ status: 'error', error: { code: 'RUN_PARKED' } });
  await hostOf(options()).executor.control('r').cancel();
  await until(async () => (await store.load('r', { ended: true }))?.outcome);
  await die((host) => host.executor.retry('r'));
  const last = hostOf({ ...options(), script: [reply('done')] });
  expect(await last.run(request)).toMatchObject({ status: 'ok', output: 'done' });
});

test('a retry begins with a critic that has seen nothing (lab 5)', async () => {
  const store = memoryStore();
  const saved: (JsonObject | undefined)[] = [];
  const critic = () =>
    notingCritic((run) => {
      saved.push(run.saved);
      return { state: () => ({ warned: true }) };
    });
  const open = (script: readonly ScriptedEntry[]) =>
    hostOf({ store, tools: [look], ports: { critic: critic() }, script });
  await open([callTool('look'), refused()]).run(request);
  expect((await store.load('r', { ended: true }))?.critic).toEqual({ warned: true });
  await (await open([reply('done')]).executor.retry('r')).result;
  expect(saved).toEqual([undefined, undefined]);
});

test('a call that a retry makes again has the idempotency key it had, below the run too (lab 5)', async () => {
  const store = memoryStore();
  const keys: string[] = [];
  const book = (isHanging: boolean) =>
    toolOf('book', 'idempotent', async (_, { idempotencyKey }) => {
      keys.push(idempotencyKey);
      if (isHanging) await new Promise(() => {});
    });
  const open = (isHanging: boolean, script: readonly ScriptedEntry[]) => {
    const tools = [book(isHanging)];
    const child = defineAgent({ id: 'child', instructions: 'Book.', tools });
    return hostOf({
      ...{ store, tools, agent: { subAgents: ['child'] }, ports: { palette: createPalette({ agents: [child] }) } },
      script,
    });
  };
  const both = callTools([
    { name: 'book', input: {} },
    { name: 'agent__child', input: { prompt: 'Book.' } },
  ]);
  const first = open(true, [both, callTool('book')]);
  const run = await first.start(request);
  await until(() => keys.length === 2);
  await run.cancel();
  const next = open(false, [reply('child done'), reply('done')]);
  expect(await (await next.executor.retry('r')).result).toMatchObject({ status: 'ok', output: 'done' });
  expect(new Set(keys).size).toBe(2);
  expect(keys.slice(2).toSorted()).toEqual(keys.slice(0, 2).toSorted());
});
