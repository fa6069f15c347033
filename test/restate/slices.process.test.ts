import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { defineTool, defineWorkflow, memoryStore, step } from 'pawl';
import { callTool, reply } from 'pawl/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { setup } from 'xstate';
import { StoreUnavailableError } from '../../src/values/errors.ts';
import { inEngine, programOf, whyNo } from '../engines/engines.ts';
import { eventually } from '../fixtures/eventually.ts';
import { gate, toolOf } from '../fixtures/host.ts';
import { type RestateHost, type RestateHostOptions, restateHost } from './restate-host.ts';
import { WatchedServer } from './watched-server.ts';

const server = new WatchedServer(programOf('restate-server'), mkdtempSync(join(tmpdir(), 'pawl-restate-')));
const hosts: RestateHost[] = [];

async function hostWith(options: RestateHostOptions = {}): Promise<RestateHost> {
  const host = await restateHost(server, { store: memoryStore(), ...options });
  hosts.push(host);
  return host;
}

/** The states of all slices that ended, in their order. */
function statesOf(host: RestateHost): string[] {
  const states: string[] = [];
  const drive = host.executor.drive;
  host.executor.drive = async (...args) => {
    const driven = await drive(...args);
    states.push(driven.state);
    return driven;
  };
  return states;
}

const begin = (host: RestateHost, runId: string) => host.call(runId, 'start', { agentId: 'worker', prompt: 'Go.' });

const waitOf = (host: RestateHost, runId: string) =>
  eventually(async () => {
    const found = (await host.executor.waiting()).find((wait) => wait.runId === runId);
    if (!found) throw new Error('the run does not wait yet');
    return found;
  }, 5);

const ended = (host: RestateHost, runId: string) =>
  eventually(async () => {
    const run = await host.executor.find(runId);
    if (run?.status !== 'ended') throw new Error(`the run is ${run?.status}`);
    return run;
  });

/** A tool that waits for a person. */
const asking = defineTool({
  name: 'ask',
  description: 'Asks.',
  input: { type: 'object' },
  effect: 'read',
  execute: async (_, context) => String(await context.ask({ question: 'Which?' })),
});

/** A tool that sleeps for some time, without a process. */
const napping = (ms: number) =>
  defineTool({
    name: 'nap',
    description: 'Sleeps.',
    input: { type: 'object' },
    effect: 'read',
    execute: async (_, context) => {
      await context.sleep(ms);
      return 'awake';
    },
  });

describe.skipIf(whyNo('restate-server'))(inEngine('restate-server', 'runs that Restate drives'), () => {
  beforeAll(() => server.start());
  afterAll(async () => {
    for (const host of hosts) await host.close();
    await server.kill();
  });

  test('one invocation is one slice: drive sends itself at once while there is more (engine 23)', async () => {
    const look = toolOf('look', 'read', () => sleep(30));
    const script = [1, 2, 3].map((n) => callTool('look', { n }));
    const host = await hostWith({
      script: [...script, reply('found')],
      agent: { tools: [look] },
      restate: { budgetMs: 20, graceMs: 1_000 },
    });
    const states = statesOf(host);
    expect(await begin(host, 'r')).toMatchObject({ runId: 'r', accepted: 'started' });
    expect(await ended(host, 'r')).toMatchObject({ outcome: { status: 'ok', output: 'found' } });
    expect(host.model.calls).toHaveLength(4);
    expect(new Set(states.slice(0, -1))).toEqual(new Set(['more']));
    expect(states.length).toBeGreaterThanOrEqual(4);
    expect(states.at(-1)).toBe('ended');
    await eventually(async () => expect(await host.invocations()).toEqual([]));
  });

  test('a workflow is begun, gets its machine events and its timers, and ends in slices of Restate, as a run of an agent does (workflow 1)', async () => {
    const look = toolOf('look', 'read', () => 'seen');
    const machine = setup({
      types: { events: {} as { type: 'go'; by: string }, input: {} as { order: string } },
      actors: { look: step(look) },
    }).createMachine({
      initial: 'first',
      states: {
        first: { invoke: { src: 'look', input: {}, onDone: 'asking' } },
        asking: { on: { go: 'resting' } },
        resting: { after: { 200: 'done' } },
        done: { type: 'final' },
      },
      output: { paid: true },
    });
    const flow = defineWorkflow({ id: 'flow', machine });
    const host = await hostWith({ workflows: [flow] });
    const states = statesOf(host);
    const begun = () => host.call('w', 'start', { agentId: 'flow', input: { order: '42' } });
    expect(await begun()).toMatchObject({ runId: 'w', accepted: 'started' });
    await eventually(async () => expect((await host.executor.explain('w'))?.workflow?.state).toBe('asking'));
    await eventually(() => expect(states.at(-1)).toBe('waiting'));
    expect(await host.call('w', 'send', { event: { type: 'go', by: 'ada' }, id: 'click-7' })).toBe('sent');
    expect(await ended(host, 'w')).toMatchObject({ outcome: { status: 'ok', data: { paid: true } } });
    await eventually(() => expect(states.at(-1)).toBe('ended'));
    await eventually(async () => expect(await host.invocations()).toEqual([]));
    expect(await begun()).toMatchObject({ accepted: 'ended' });
    await expect(host.call('w', 'send', { event: { type: 'go', by: 'ada' } })).rejects.toThrow('RUN_NOT_FOUND');
  });

  test('a waiting run has no invocation, only a delayed send; an answer to it begins a slice at once, and the timer does nothing (engine 23, 24)', async () => {
    const host = await hostWith({ script: [callTool('nap'), reply('done')], agent: { tools: [napping(6_000)] } });
    const states = statesOf(host);
    await begin(host, 'r');
    await eventually(async () => expect(await host.invocations()).toMatchObject([{ status: 'scheduled' }]));
    expect(states.at(-1)).toBe('waiting');
    const [wait] = (await host.executor.waiting()) ?? [];
    await host.call('r', 'answer', { waitId: wait?.id, how: 'wake' });
    await ended(host, 'r');
    await eventually(() => expect(states.at(-1)).toBe('ended'));
    const slices = states.length;
    await eventually(async () => expect(await host.invocations()).toEqual([]));
    expect(states.slice(slices)).toEqual([]);
  });

  test('a run that rests without a time has no invocation at all, and continues with an answer (engine 24)', async () => {
    const host = await hostWith({ script: [callTool('ask'), reply('thanks')], agent: { tools: [asking] } });
    await begin(host, 'r');
    const wait = await waitOf(host, 'r');
    await eventually(async () => expect(await host.invocations()).toEqual([]));
    expect(await host.call('r', 'status')).toMatchObject({
      runId: 'r',
      status: 'waiting',
      waits: [{ id: wait.id, kind: 'question' }],
    });
    await host.call('r', 'answer', { waitId: wait.id, how: 'answer', value: 'the red one', by: { id: 'ada' } });
    expect(await ended(host, 'r')).toMatchObject({ outcome: { output: 'thanks' } });
  });

  test('each answer that falls into the end of a slice makes the run continue (engine 24)', async () => {
    const host = await hostWith({
      script: Array.from({ length: 30 }, () => [callTool('ask'), reply('thanks')]).flat(),
      agent: { tools: [asking] },
    });
    for (let n = 0; n < 15; n++) {
      const runId = `r${n}`;
      await begin(host, runId);
      const wait = await waitOf(host, runId);
      // Sent while the slice that left it resting may still be on its way.
      await host.call(runId, 'answer', { waitId: wait.id, how: 'answer', value: n });
      await ended(host, runId);
    }
  });

  test.each([1_000, 1_000_000])(
    'the journal of a slice has at most 2 KB and no text of the run, with a transcript of %i characters (engine 25, 40)',
    async (length) => {
      const secret = 'a secret of the run ';
      const look = toolOf('look', 'read', () => secret.repeat(length / secret.length));
      const host = await hostWith({
        script: [callTool('look', { secret }), callTool('nap', { secret }), reply(secret)],
        agent: { tools: [look, napping(200)], instructions: secret },
        restate: { budgetMs: 0 },
      });
      await server.keepJournals(host.name);
      await host.start({ runId: 'r', prompt: secret.repeat(50) }, { drive: 'later' });
      await ended(host, 'r');
      // Restate keeps the journals of invocations that a handler sent. The first was sent by its ingress.
      const slices = await eventually(async () => {
        const invocations = await host.invocations();
        expect(invocations.every(({ status }) => status === 'completed')).toBe(true);
        expect(invocations.length).toBeGreaterThan(2);
        return invocations;
      });
      const journals = await Promise.all(slices.map(({ id }) => server.journalOf(id)));
      expect(journals.some(({ text }) => text.includes('"state":"more"'))).toBe(true);
      expect(journals.some(({ text }) => text.includes('"state":"ended"'))).toBe(true);
      expect(Math.max(...journals.map(({ bytes }) => bytes))).toBeLessThan(2_048);
      expect(journals.filter(({ text }) => text.includes('secret'))).toEqual([]);
    },
  );

  test('start is shared: it does not queue behind a slice of the run, and its repetition finds the run (engine 26)', async () => {
    const open = gate();
    const host = await hostWith({ script: [() => open.pass().then(() => reply('done'))] });
    expect(await begin(host, 'r')).toMatchObject({ accepted: 'started' });
    await open.reached;
    expect(await begin(host, 'r')).toMatchObject({ runId: 'r', accepted: 'joined' });
    await expect(host.call('r', 'start', { agentId: 'worker', prompt: 'Another.' })).resolves.toMatchObject({
      accepted: 'refused',
      code: 'RUN_ID_CONFLICT',
    });
    open.open();
    await ended(host, 'r');
    await eventually(async () => expect(await host.invocations()).toEqual([]));
    // Restate has forgotten the request. The store has not.
    expect(await begin(host, 'r')).toMatchObject({ accepted: 'ended' });
    expect(host.model.calls).toHaveLength(1);
  });

  test('errors that no repetition changes are terminal: an unknown agent, a wait that is gone, a wrong call (engine 26)', async () => {
    const host = await hostWith();
    await expect(host.call('r', 'start', { agentId: 'other', prompt: 'p' })).rejects.toThrow('AGENT_NOT_FOUND');
    await expect(host.call('r', 'start', null)).rejects.toThrow('400');
    await expect(host.call('r', 'steer', { text: 7 })).rejects.toThrow('400');
    await expect(host.call('r', 'answer', { waitId: 'w', how: 'maybe' })).rejects.toThrow('400');
    await expect(host.call('r', 'cancel')).rejects.toThrow('404 ');
    await expect(host.call('r', 'answer', { waitId: 'w', how: 'wake' })).rejects.toThrow('404 ');
    expect(await host.call('r', 'status')).toBeNull();
  });

  test('cancel is a command, and so is a cancel by Restate; the run ends once (engine 27)', async () => {
    const open = gate();
    const host = await hostWith({
      script: Array.from({ length: 2 }, () => () => open.pass().then(() => reply('done'))),
    });
    await begin(host, 'a');
    await open.reached;
    expect(await host.call('a', 'cancel', { reason: 'no longer needed' })).toBe('ended');
    expect(await ended(host, 'a')).toMatchObject({ outcome: { status: 'cancelled' } });
    await begin(host, 'b');
    const [slice] = await eventually(async () => {
      const running = (await host.invocations()).filter(
        ({ status, target }) => status === 'running' && target.includes('/b/'),
      );
      expect(running).toHaveLength(1);
      expect(host.model.calls).toHaveLength(2);
      return running;
    });
    await server.end(slice?.id ?? '', 'cancel');
    expect(await ended(host, 'b')).toMatchObject({ outcome: { status: 'cancelled' } });
    await eventually(async () => expect(await host.invocations()).toEqual([]));
    open.open();
  });

  test('a kill by Restate is a crash: the run is left due, and the sweep drives it again (engine 27, 30)', async () => {
    const open = gate();
    const host = await hostWith({
      script: [() => open.pass().then(() => reply('first')), reply('second')],
      restate: { dueMs: 300, graceMs: 500 },
    });
    await begin(host, 'r');
    await open.reached;
    const [slice] = await host.invocations();
    await server.end(slice?.id ?? '', 'kill');
    expect(await host.call('r', 'status')).not.toMatchObject({ status: 'ended' });
    const ending = new AbortController();
    const sweeping = host.runs.sweep({ signal: ending.signal });
    expect(await ended(host, 'r')).toMatchObject({ outcome: { status: 'ok' } });
    ending.abort();
    await sweeping;
    open.open();
  });

  test('a slice has its time and a minute, and is repeated without end (engine 28)', async () => {
    const host = await hostWith({ restate: { budgetMs: 5_000, graceMs: 3_000 } });
    expect(await server.service(host.name)).toMatchObject({
      journal_retention: '0s',
      idempotency_retention: '0s',
      inactivity_timeout: '1m 8s',
      abort_timeout: '1m',
      retry_policy: {
        initial_interval: '100ms',
        exponentiation_factor: 2,
        max_interval: '10s',
        max_attempts: 1_000_000_000,
        on_max_attempts: 'Pause',
      },
    });
  });

  test('while the store is away a slice is repeated with pauses, and then the run continues (engine 28)', async () => {
    const store = memoryStore();
    let isAway = false;
    const load: typeof store.load = async (...args) => {
      if (isAway) throw new StoreUnavailableError('the store is away');
      return store.load(...args);
    };
    const host = await hostWith({ store: { ...store, load } });
    const states = statesOf(host);
    await host.executor.start(host.agent, { runId: 'r', prompt: 'p' }, { drive: 'later' });
    isAway = true;
    await sleep(700);
    expect(states).toEqual([]);
    isAway = false;
    await ended(host, 'r');
  });

  test('attach resolves an awakeable with the outcome, before and after the end; status reads the store (engine 29)', async () => {
    const host = await hostWith({ script: [callTool('ask'), reply('thanks')], agent: { tools: [asking] } });
    await begin(host, 'r');
    const wait = await waitOf(host, 'r');
    const before = host.outcome('r');
    await eventually(async () => expect(await server.stateOf(host.name, 'attached')).toHaveLength(1));
    await host.call('r', 'answer', { waitId: wait.id, how: 'answer', value: 'red' });
    expect(await before).toMatchObject({ runId: 'r', status: 'ok', output: 'thanks' });
    expect(await host.outcome('r')).toMatchObject({ runId: 'r', status: 'ok' });
    expect(await host.outcome('never begun')).toBeNull();
    await eventually(async () => expect(await server.stateOf(host.name, 'attached')).toEqual([]));
    expect(await host.call('r', 'status')).toEqual({ runId: 'r', status: 'ended', result: 'ok' });
  });

  test('ids and texts of any kind reach their run (engine 26)', async () => {
    const ids = ['a/b?c=d&e#f', 'ä %2F \n\t"\'', '😀', '%', '{{.Query}}', '...', `${'long '.repeat(90)}`];
    const host = await hostWith({ script: ids.flatMap(() => [reply('done'), reply('done')]) });
    for (const id of ids) {
      expect(await begin(host, id)).toMatchObject({ runId: id, accepted: 'started' });
      expect(await ended(host, id)).toMatchObject({ runId: id });
      const other = `${id}!`;
      await host.start({ runId: other, prompt: 'p' }, { drive: 'later' });
      expect(await ended(host, other)).toMatchObject({ runId: other });
    }
  });
});
