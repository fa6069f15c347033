import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  createExecutor,
  defineAgent,
  defineTool,
  type ExecutorOptions,
  type JournalEvent,
  memoryStore,
  type Tool,
} from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { callTool, callTools, fail, hang, reply, type ScriptedEntry, scriptedModel } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { type MethodName, wrapStore } from '../../../src/store/read-only.ts';
import { type Clock, systemClock } from '../../../src/values/clock.ts';

const stores = {
  memory: () => memoryStore(),
  SQLite: () => sqliteStore({ path: join(mkdtempSync(join(tmpdir(), 'pawl-journal-')), 'runs.db') }),
};

type Store = ReturnType<(typeof stores)[keyof typeof stores]>;

const PACE = 5;
/** A clock that is fast: a reader looks into a journal once a second at rest. */
const quickClock: Clock = {
  ...systemClock,
  monotonic: () => systemClock.monotonic() * PACE,
  setTimeout: (callback, ms) => systemClock.setTimeout(callback, ms / PACE),
};

/** A process: an executor with a journal. */
const hostOn = (
  store: Store,
  script: readonly ScriptedEntry[] = [],
  tools: readonly Tool[] = [],
  defaults: ExecutorOptions['defaults'] = {},
) =>
  createExecutor({
    clock: quickClock,
    // Some processes end as if they had died: their calls never get an answer.
    logger: { warn: () => {} },
    defaults,
    models: { fast: scriptedModel(script) },
    agents: [defineAgent({ id: 'desk', instructions: 'Work.', tools: [...tools] })],
    store,
    journal: { flushMs: 1 },
  });
const deskWith = (...tools: readonly Tool[]) => defineAgent({ id: 'desk', instructions: 'Work.', tools: [...tools] });
const toolOf = (effect: 'read' | 'once', execute: () => Promise<string> | string, more = {}) =>
  defineTool({ name: 'look', description: 'Looks.', input: { type: 'object' }, effect, execute, ...more });

const asking = () => toolOf('once', () => 'yes', { needsApproval: true });

type Head = Parameters<Store['append']>[0]['head'];
const isOpen = ({ waiting }: Head) => (waiting?.waits.length ?? 0) > 0;

/** The store of a process that does nothing more from a save on. */
function dyingAfter(store: Store, isLast: (head: Head) => boolean): Store {
  let isDead = false;
  const never = () => new Promise<never>(() => {});
  const stopped: readonly MethodName[] = ['journal.publish', 'due.leave', 'renew', 'commands.inbox'];
  const alive = wrapStore(store, (name, call) =>
    stopped.includes(name) ? (...args) => (isDead ? never() : call(...args)) : call,
  );
  return {
    ...alive,
    append: async (...args: Parameters<Store['append']>) => {
      if (isDead) return never();
      await store.append(...args);
      isDead = isLast(args[0].head);
      return isDead ? never() : undefined;
    },
  } as Store;
}

async function read(
  events: AsyncIterable<JournalEvent>,
  until: (event: JournalEvent) => boolean = () => false,
): Promise<JournalEvent[]> {
  const read: JournalEvent[] = [];
  for await (const event of events) {
    read.push(event);
    if (until(event)) break;
  }
  return read;
}

const line = (event: JournalEvent): string => {
  if (event.type === 'model.delta') return `delta ${event.text}`;
  if (event.type === 'step.snapshot')
    return `snapshot ${event.content.map((part) => ('text' in part ? part.text : part.type)).join('+')}`;
  if (event.type === 'tool.done')
    return `tool.done ${JSON.stringify(event.output.type === 'text' ? event.output.value : event.output)}`;
  if (event.type === 'tool.started') return `tool.started ${JSON.stringify(event.input)}`;
  if (event.type === 'run.ended') return `run.ended ${event.status} ${event.output}`;
  return event.type;
};

describe.each(Object.keys(stores) as (keyof typeof stores)[])('the journal of a run in %s', (name) => {
  test('tells a reader of another process what a run does while it does it (web 1, 2, 4)', async () => {
    const store = stores[name]();
    const gate = Promise.withResolvers<string>();
    const tool = toolOf('once', () => gate.promise);
    const last = Promise.withResolvers<void>();
    const answer = () => last.promise.then(() => reply('It is well.'));
    const host = hostOn(store, [callTool('look', { at: 'a' }), answer], [tool]);
    const other = hostOn(store);
    const run = await host.start(deskWith(tool), { runId: 'r', prompt: 'Look.' });
    const events = await read(other.events('r'), (event) => {
      if (event.type === 'tool.started') gate.resolve('seen');
      if (event.type === 'step.done') last.resolve();
      return false;
    });
    await run.result;
    const lines = events.map(line).filter((text) => text !== 'step.started');
    expect(lines.slice(0, 3)).toEqual(['run.started', 'snapshot tool-call', 'tool.started {"at":"a"}']);
    expect(lines).toContain('tool.done "seen"');
    expect(lines.at(-1)).toBe('run.ended ok It is well.');
  });

  test('gives a late reader each recorded step whole, with the content of the record (web 1, 4)', async () => {
    const store = stores[name]();
    const tool = toolOf('read', () => 'seen');
    const host = hostOn(store);
    const ask = defineTool({
      name: 'ask',
      description: 'Asks.',
      input: { type: 'object' },
      effect: 'once',
      needsApproval: true,
      execute: () => 'yes',
    });
    const agent = defineAgent({ id: 'desk', instructions: 'Work.', tools: [tool, ask] });
    const last = Promise.withResolvers<void>();
    const model = scriptedModel([
      callTools([
        { name: 'look', input: { at: 'a' } },
        { name: 'look', input: { at: 'b' } },
      ]),
      callTool('ask', { money: 7 }),
      () => last.promise.then(() => reply('Paid.')),
    ]);
    const desk = createExecutor({ models: { fast: model }, agents: [agent], store, journal: { flushMs: 1 } });
    const run = await desk.start(agent, { runId: 'r', prompt: 'Look.' });
    const opened = await read(host.events('r'), ({ type }) => type === 'run.waiting');
    expect(opened.filter(({ type }) => type === 'wait.opened')).toMatchObject([
      { input: { money: 7 }, wait: { tool: 'ask' } },
    ]);
    expect((await run.result).status).toBe('waiting');
    const late = (await read(host.events('r'), ({ type }) => type === 'run.waiting')).map(line);
    expect(late).toEqual([
      'run.started',
      'snapshot tool-call+tool-call',
      'tool.done "seen"',
      'tool.done "seen"',
      'step.done',
      'snapshot tool-call',
      'wait.opened',
      'run.waiting',
    ]);
    const [wait] = await host.waiting();
    await host.control('r').approve(wait?.id ?? '', { by: { id: 'ada' } });
    await desk.recover();
    const rest = await read(host.events('r', { after: opened.at(-1)?.cursor }), ({ type }) => {
      if (type === 'tool.done') last.resolve();
      return false;
    });
    expect(rest.map(line)).toContain('wait.answered');
    expect(rest.map(line).at(-1)).toBe('run.ended ok Paid.');
    await desk.shutdown();
  });

  test('does not have a step of a model call that failed: its second attempt follows a reset (web 5)', async () => {
    const store = stores[name]();
    const gate = Promise.withResolvers<string>();
    const tool = toolOf('once', () => gate.promise);
    const busy = Object.assign(new Error('busy'), { statusCode: 503, isRetryable: true });
    const host = hostOn(store, [fail(busy), callTool('look'), reply('Well.')], [tool]);
    const run = await host.start(deskWith(tool), { runId: 'r', prompt: 'Look.' });
    const events = await read(hostOn(store).events('r'), ({ type }) => type === 'tool.started');
    expect(events.filter(({ type }) => type === 'step.snapshot')).toHaveLength(1);
    gate.resolve('x');
    await run.result;
  });

  test('of a run that was cancelled in its store ends with the end of the run (web 1)', async () => {
    const store = stores[name]();
    const ask = toolOf('once', () => 'yes', { needsApproval: true });
    const host = hostOn(store, [callTool('look')], [ask]);
    expect((await host.run(deskWith(ask), { runId: 'r', prompt: 'Look.' })).status).toBe('waiting');
    const other = hostOn(store);
    const reading = read(other.events('r'));
    await other.control('r').cancel('enough');
    expect((await reading).map(line).at(-1)).toBe('run.ended cancelled ');
  });

  test('begins for a reader of the newest events with one of the last steps, and continues as for any other (studio 33)', async () => {
    const store = stores[name]();
    const tool = toolOf('read', () => 'seen');
    const host = hostOn(store, [...Array.from({ length: 8 }, (_, at) => callTool('look', { at })), hang()], [tool]);
    const run = await host.start(deskWith(tool), { runId: 'r', prompt: 'Look.' });
    const isLast = (event: JournalEvent) => event.type === 'step.done' && event.step === 8;
    const other = hostOn(store);
    const whole = await read(other.events('r'), isLast);
    const recorded = (events: readonly JournalEvent[]) =>
      events.filter(({ type }) => type !== 'step.started').map((event) => `${event.seq} ${line(event)}`);
    const newest = recorded(await read(other.events('r', { newest: 2 }), isLast));
    expect(newest.length).toBeGreaterThanOrEqual(2);
    expect(newest.length).toBeLessThan(12);
    expect(recorded(whole).slice(-newest.length)).toEqual(newest);
    expect((await read(other.events('r', { newest: 1_000 }), isLast))[0]?.type).toBe('run.started');
    for (const wrong of [0, -1, 1.5, Number.NaN]) expect(() => other.events('r', { newest: wrong })).toThrow(TypeError);
    const rest = read(other.events('r', { newest: 1 }));
    await run.cancel('enough');
    expect((await rest).map(line).at(-1)).toMatch(/^run.ended cancelled /);
  });

  test('cannot be read without the option, for an unknown run, or with a wrong cursor (web 6, 8)', async () => {
    const store = stores[name]();
    const plain = createExecutor({ models: { fast: scriptedModel([]) }, store });
    await expect(read(plain.events('r'))).rejects.toMatchObject({ code: 'UNSUPPORTED' });
    const host = hostOn(store);
    await expect(read(host.events('r'))).rejects.toMatchObject({ code: 'JOURNAL_GONE' });
    expect(() => host.events('r', { after: 'x' })).toThrow(TypeError);
    expect(() => host.events('')).toThrow(expect.objectContaining({ code: 'INVALID_RUN_ID' }));
  });

  test('breaks off for its readers when their host shuts down, and ends for one that leaves (web 24)', async () => {
    const store = stores[name]();
    const ask = toolOf('once', () => 'yes', { needsApproval: true });
    const host = hostOn(store, [callTool('look')], [ask]);
    await host.run(deskWith(ask), { runId: 'r', prompt: 'Look.' });
    const other = hostOn(store);
    const leaving = new AbortController();
    const left = read(other.events('r', { signal: leaving.signal }), ({ type }) => {
      if (type === 'run.waiting') setTimeout(() => leaving.abort(), 1);
      return false;
    });
    expect((await left).at(-1)?.type).toBe('run.waiting');
    const iterator = other.events('r', { after: (await left).at(-1)?.cursor });
    const next = iterator.next();
    await iterator.return?.();
    expect(await next).toMatchObject({ done: true });
    const staying = read(other.events('r'));
    await new Promise((resolve) => setTimeout(resolve, 20));
    await other.shutdown();
    await expect(staying).rejects.toMatchObject({ code: 'ERR_SHUTDOWN' });
  });

  test('has the last event of a run whose record stays: a turn of a thread (web 1, 9)', async () => {
    await using host = hostOn(stores[name](), [reply('It is well.')]);
    const { runId } = await host.thread('t', { agent: deskWith(), callerId: 'ada' }).send({ id: 'm', text: 'Look.' });
    expect((await read(host.events(runId))).map(line).at(-1)).toBe('run.ended ok It is well.');
  });

  test('has the wait of a run whose process dies right after the save that opened it (web 1, 35)', async () => {
    const store = stores[name]();
    const host = hostOn(dyingAfter(store, isOpen), [callTool('look', { at: 'a' })], [asking()]);
    await host.start(deskWith(asking()), { runId: 'r', prompt: 'Look.' });
    const waiting = ({ type }: JournalEvent) => type === 'run.waiting';
    const events = await read(hostOn(store).events('r'), waiting);
    expect(events.at(-2)).toMatchObject({ input: { at: 'a' }, wait: { tool: 'look', kind: 'approval' } });
  });

  test('reports a run that rests again as waiting (web 1, 35)', async () => {
    const store = stores[name]();
    const agent = deskWith(asking());
    const dying = hostOn(dyingAfter(store, isOpen), [callTool('look')], [asking()], { leaseMs: 100 });
    await dying.start(agent, { runId: 'r', prompt: 'Look.' });
    await read(hostOn(store).events('r'), ({ type }) => type === 'wait.opened');
    const next = hostOn(store, [], [asking()], { leaseMs: 100 });
    await expect
      .poll(async () => (await next.run(agent, { runId: 'r', prompt: 'Look.' })).status, { interval: 10 })
      .toBe('waiting');
    const { entries = [] } = (await store.journal.read('r', { limit: 100 })) ?? {};
    expect(entries.map(({ event: { type } }) => type).slice(-2)).toEqual(['wait.opened', 'run.waiting']);
  });

  test('has what became of a wait although the process dies right after the save that records it (web 1, 35)', async () => {
    const store = stores[name]();
    const isSettled = ({ waiting }: Head) => (waiting?.settled.length ?? 0) > 0;
    // A slow machine must not take longer to answer: the run would rest before.
    const host = hostOn(dyingAfter(store, isSettled), [callTool('look')], [asking()], { waitLingerMs: 600_000 });
    await host.start(deskWith(asking()), { runId: 'r', prompt: 'Look.' });
    const events = hostOn(store).events('r');
    let waitId = '';
    await read(events, (event) => {
      if (event.type === 'wait.opened') waitId = event.wait.id;
      return event.type === 'run.waiting';
    });
    host
      .control('r')
      .approve(waitId, { by: { id: 'ada' } })
      .catch(() => {});
    const after = await read(hostOn(store).events('r'), ({ type }) => type === 'run.woken');
    expect(after.slice(-4).map(({ type }) => type)).toEqual([
      'wait.opened',
      'run.waiting',
      'wait.answered',
      'run.woken',
    ]);
    expect(after.at(-2)).toMatchObject({ waitId, how: 'approve', by: { id: 'ada' }, callId: 'call-1' });
  });

  test('has each event of a wait once, and in its order (web 1)', async () => {
    const store = stores[name]();
    await using host = hostOn(store, [callTool('look'), callTool('look'), reply('It is well.')], [asking()], {
      // A slow machine must not take longer to answer: the run would rest, and say that as well.
      waitLingerMs: 600_000,
    });
    const { result } = await host.start(deskWith(asking()), { runId: 'r', prompt: 'Look.' });
    const types: string[] = [];
    await read(host.events('r'), (event) => {
      types.push(event.type);
      if (event.type === 'wait.opened') void host.control('r').approve(event.wait.id, { by: { id: 'ada' } });
      return false;
    });
    await result;
    const isOfWait = (type: string) =>
      type.startsWith('wait.') || ['run.waiting', 'run.woken', 'run.resumed', 'tool.done'].includes(type);
    const one = ['wait.opened', 'run.waiting', 'wait.answered', 'run.woken', 'tool.done'];
    expect(types.filter(isOfWait)).toEqual([...one, ...one]);
  });

  test('passes on no text that the host redacts, also in events of its own (web 1)', async () => {
    const store = stores[name]();
    const ask = toolOf('once', () => 'yes', { needsApproval: true });
    const host = createExecutor({
      models: {
        fast: scriptedModel([
          callTool('look', { key: 'geheim' }),
          fail(Object.assign(new Error('geheim is wrong'), { statusCode: 400 })),
        ]),
      },
      store,
      journal: { flushMs: 1 },
      redact: (text) => text.replaceAll('geheim', '***'),
    });
    const reading = (async () => {
      for (;;) {
        try {
          return await read(hostOn(store).events('r'));
        } catch {
          await new Promise((resolve) => setTimeout(resolve, 5));
        }
      }
    })();
    await host.start(deskWith(ask), { runId: 'r', prompt: 'Look.' });
    await read(hostOn(store).events('r'), ({ type }) => type === 'wait.opened');
    await host.control('r').cancel('geheim again');
    const events = await reading;
    expect(events.at(-1)?.type).toBe('run.ended');
    expect(JSON.stringify(events)).not.toContain('geheim');
  });
});
