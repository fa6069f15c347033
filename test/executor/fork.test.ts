import { createPalette, defineAgent, type Message, memoryStore } from 'pawl';
import { readRun } from 'pawl/lab';
import { sqliteStore } from 'pawl/stores/sqlite';
import { callTool, hang, reply } from 'pawl/testing';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { type HostOptions, hostOf, toolOf, until } from '../fixtures/host.ts';

const stores = {
  memory: () => memoryStore(),
  SQLite: () => {
    const store = sqliteStore({ path: ':memory:' });
    onTestFinished(() => store.close());
    return store;
  },
};
const onStores = Object.entries(stores);

/** Tools that count what they do. */
function tools() {
  const did: string[] = [];
  const pay = toolOf('pay', 'once', (_, { idempotencyKey }) => {
    did.push(`pay ${idempotencyKey}`);
    return 'paid';
  });
  const look = toolOf('look', 'read', () => {
    did.push('look');
    return 'seen';
  });
  return { did, both: [pay, look] };
}

const script = [callTool('look', { n: 1 }), callTool('pay', { n: 2 }), callTool('look', { n: 3 }), reply('done')];
const request = { runId: 'r', prompt: 'Go.', callerId: 'ada', labels: { order: '17' } };
const kept = { retention: { records: 60_000 } };

/** A run of three steps with a call, and its answer. */
async function origin(options: HostOptions = {}) {
  const store = options.store ?? memoryStore();
  const { did, both } = tools();
  const result = await hostOf({ store, tools: both, script, ...kept, ...options }).run(request);
  const host = (more: HostOptions = {}) => hostOf({ store, tools: both, ...kept, ...more });
  return { store, did, result, host, before: did.length };
}

const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => 'none',
    (error: { code?: string; name: string }) => error.code ?? error.name,
  );

describe('executor.fork', () => {
  test.for(onStores)(
    'at each step of a run equals the whole run, and makes nothing before it again: %s (lab 11)',
    async ([, make]) => {
      for (let at = 0; at <= 4; at++) {
        const { result, host, did, before } = await origin({ store: make() });
        const next = host({ script: script.slice(at) });
        const run = await next.executor.fork('r', { at, runId: 'f', effects: 'live' });
        expect(run.accepted).toBe('started');
        const fork = await run.result;
        expect(fork).toMatchObject({ status: 'ok', output: 'done', forkedFrom: { runId: 'r', at } });
        const unmarked = ({ messages }: { messages: readonly Message[] }) =>
          messages.map(({ role, content }) => JSON.stringify([role, content]).replaceAll(/call[-\d]+/g, 'call'));
        expect(unmarked(fork)).toEqual(unmarked(result));
        expect(next.model.calls.length).toBe(4 - at);
        expect(did.length - before).toBe(Math.max(0, 3 - at));
      }
    },
  );

  test('is a run of its own: usage, keys and limits begin at 0, caller, labels and request are those of the origin (lab 12)', async () => {
    const { host, did, result } = await origin();
    const next = host({ script: script.slice(1), agent: { maxSteps: 3 } });
    const fork = await (await next.executor.fork('r', { at: 1, runId: 'f', effects: 'live', labels: { try: '2' } }))
      .result;
    expect(fork.status).toBe('ok');
    expect(fork.usage.outputTokens).toBeLessThan(result.usage.outputTokens);
    const keys = did.filter((each) => each.startsWith('pay'));
    expect(new Set(keys).size).toBe(2);
    const [line] = (await next.executor.history()).filter(({ runId }) => runId === 'f');
    expect(line).toMatchObject({
      forkedFrom: { runId: 'r', at: 1 },
      labels: { order: '17', try: '2' },
      meta: { callerId: 'ada', prompt: 'Go.' },
    });
  });

  test('stays when its origin is erased, and leaves the origin as it was (lab 12)', async () => {
    const { host, store } = await origin();
    const before = await store.load('r', { ended: true });
    const next = host({ script: [reply('other')] });
    await (await next.executor.fork('r', { at: 3, runId: 'f', effects: 'refuse' })).result;
    expect(await store.load('r', { ended: true })).toEqual(before);
    await next.executor.erase('r');
    expect(await next.executor.messages('f')).not.toBeNull();
  });

  test('takes a run that is live, and one that ended badly (lab 10)', async () => {
    const { both } = tools();
    const store = memoryStore();
    const live = hostOf({ store, tools: both, script: [callTool('look'), hang(), reply('forked')] });
    const run = await live.start(request);
    await until(async () => (await store.load('r'))?.iteration === 1);
    expect(await (await live.executor.fork('r', { at: 1, effects: 'live' })).result).toMatchObject({
      output: 'forked',
    });
    await run.cancel();
    const next = hostOf({ store, tools: both, script: [reply('again')] });
    expect(await (await next.executor.fork('r', { at: 1, effects: 'live' })).result).toMatchObject({ output: 'again' });
  });

  test('turns each message that it keeps into text once, for its save and for its size (lab 30)', async () => {
    const { host } = await origin({ store: sqliteStore({ path: ':memory:' }) });
    const next = host({ script: [hang()] });
    const encoded = vi.spyOn(JSON, 'stringify');
    onTestFinished(() => encoded.mockRestore());
    const fork = await next.executor.fork('r', { at: 3, runId: 'f', effects: 'live' });
    const results = encoded.mock.calls.filter(([value]) => (value as Message | undefined)?.role === 'tool');
    expect(results).toHaveLength(3);
    await fork.cancel();
  });

  test('is idempotent by its run id, and refuses another fork under it (lab 10)', async () => {
    const { host } = await origin();
    const options = { at: 3, runId: 'f', effects: 'live' } as const;
    const next = host({ script: [reply('once'), reply('twice')] });
    expect(await (await next.executor.fork('r', options)).result).toMatchObject({ output: 'once' });
    expect(await (await next.executor.fork('r', options)).result).toMatchObject({ output: 'once', kept: true });
    const other = await next.executor.fork('r', { ...options, at: 2 });
    expect((await other.result).error?.code).toBe('RUN_ID_CONFLICT');
    expect(next.model.calls.length).toBe(1);
  });

  test('says how many steps there are, and what it does not take (lab 10, 14)', async () => {
    const { host } = await origin();
    const { executor } = host();
    await expect(executor.fork('r', { at: 5, effects: 'live' })).rejects.toThrow('at must be 0 to 4');
    await expect(executor.fork('r', { at: 1, effects: 'none' as 'live' })).rejects.toThrow(TypeError);
    await expect(executor.fork('r', { at: 1, effect: 'live' } as never)).rejects.toThrow(TypeError);
    expect(await codeOf(executor.fork('nobody', { at: 0 }))).toBe('RUN_NOT_FOUND');
  });

  test('with another agent continues with its prompt and tools from the cut on (lab 15)', async () => {
    const { host } = await origin();
    const other = defineAgent({ id: 'other', instructions: 'Another way.' });
    const next = host({ script: [reply('so')] });
    const fork = await (await next.executor.fork('r', { at: 2, agent: other })).result;
    expect(fork).toMatchObject({ status: 'ok', output: 'so' });
    expect(next.model.calls[0]).toMatchObject({ system: 'Another way.' });
  });
});

describe('a fork of a turn of a thread', () => {
  async function turn(agent: HostOptions['agent'], script: NonNullable<HostOptions['script']>) {
    const store = memoryStore();
    const { both } = tools();
    const host = hostOf({ store, tools: both, agent: agent ?? {}, script });
    const thread = host.executor.thread('t', { agent: host.agent, callerId: 'ada' });
    let runId = '';
    for (const [id, text] of Object.entries({ m1: 'Hi.', m2: 'And?' })) {
      ({ runId } = await thread.send({ id, text }));
      await until(async () => (await thread.turn({ runId }))?.state === 'ended');
    }
    return { runId, store, next: hostOf({ store, tools: both, agent: agent ?? {}, script: [reply('two')] }) };
  }

  test('is a run of its own, with the turns before it (lab 15)', async () => {
    const { runId, next } = await turn({}, [reply('one'), callTool('look'), reply('two')]);
    const fork = await (await next.executor.fork(runId, { at: 1, effects: 'live' })).result;
    expect(fork).toMatchObject({ status: 'ok', output: 'two' });
    const first = JSON.stringify(next.model.calls[0]?.messages);
    for (const text of ['Hi.', 'one', 'And?', 'seen']) expect(first).toContain(text);
  });

  test('of a pipeline keeps the finished phases before the cut, and reads the turns before it (lab 11, 15)', async () => {
    const phases = ['plan', 'write'].map((name) => ({ name, instructions: name }));
    const script = [callTool('look'), reply('a plan'), callTool('look'), reply('two')];
    const { runId, next, store } = await turn({ phases }, [reply('p'), reply('one'), ...script]);
    for (let at = 0; at <= 4; at++) {
      const host = hostOf({ store, tools: tools().both, agent: { phases }, script: script.slice(at) });
      const fork = await (await host.executor.fork(runId, { at, effects: 'live' })).result;
      expect(fork).toMatchObject({ status: 'ok', output: 'two', forkedFrom: { runId, at } });
      expect(fork.phases.map(({ name, output }) => [name, output])).toEqual([
        ['plan', 'a plan'],
        ['write', 'two'],
      ]);
      expect(host.model.calls.length).toBe(4 - at);
      for (const { messages } of host.model.calls) {
        const texts = JSON.stringify(messages);
        for (const text of ['Hi.', 'one', 'And?']) expect(texts.split(text)).toHaveLength(2);
        // A phase reads the conversation before the run, and its own.
        if (at === 3) expect(texts).not.toContain('a plan');
      }
    }
    expect(await codeOf(next.executor.fork(runId, { at: 5, effects: 'live' }))).toBe('TypeError');
  });
});

describe('the effects of a fork', () => {
  test('must be said where it may have any, and nothing is recorded before (lab 13)', async () => {
    const { host, store } = await origin();
    expect(await codeOf(host().executor.fork('r', { at: 1, runId: 'f' }))).toBe('FORK_EFFECTS');
    expect(await store.load('f')).toBeNull();
    const reading = hostOf({ store, tools: [toolOf('look')], script: [reply('x')] });
    expect((await (await reading.executor.fork('r', { at: 3 })).result).status).toBe('ok');
  });

  test('that a sub-agent may have must be said too (lab 13)', async () => {
    const { store } = await origin();
    const child = defineAgent({ id: 'child', instructions: 'Pay.', tools: [toolOf('pay', 'once')] });
    const ports = { palette: createPalette({ agents: [child] }) };
    const host = hostOf({ store, agent: { subAgents: ['child'] }, ports });
    expect(await codeOf(host.executor.fork('r', { at: 3 }))).toBe('FORK_EFFECTS');
  });

  test('`refuse`: no call with an effect runs, the model reads why, and reads run (lab 13)', async () => {
    const { host, did, before } = await origin();
    const next = host({ script: [callTool('pay', { n: 9 }), callTool('look', { n: 8 }), reply('done')] });
    expect(await (await next.executor.fork('r', { at: 1, effects: 'refuse' })).result).toMatchObject({ status: 'ok' });
    expect(did.slice(before)).toEqual(['look']);
    expect(JSON.stringify(next.model.calls[1]?.messages.at(-1))).toContain('is a fork of another one');
  });

  test('`refuse`: a model that asks again and again has made no loop: its steps are limited, as of any run (lab 13)', async () => {
    const { host } = await origin();
    const again = Array.from({ length: 4 }, () => callTool('pay', { n: 9 }));
    const next = host({ script: [...again, reply('done')] });
    const fork = await (await next.executor.fork('r', { at: 1, effects: 'refuse' })).result;
    expect(fork).toMatchObject({ status: 'ok', output: 'done' });
  });

  test('that an agent may have must be said where it is reached again below itself, from its first phase (lab 13)', async () => {
    const { both } = tools();
    const phases = [
      { name: 'a', tools: ['pay'], instructions: 'Pay.' },
      { name: 'b', tools: ['look'], instructions: 'Look.' },
    ];
    const child = defineAgent({ id: 'child', instructions: 'Ask.', subAgents: ['top'] });
    const agent = { id: 'top', tools: both, phases, subAgents: ['child'] };
    const ports = { palette: createPalette({ agents: [child] }) };
    const first = hostOf({ store: memoryStore(), agent, script: [reply('one'), reply('two')], ports, ...kept });
    await first.run({ runId: 'p', prompt: 'Go.' });
    expect(await codeOf(first.executor.fork('p', { at: 1 }))).toBe('FORK_EFFECTS');
  });

  test('`ask`: each such call waits for a person, also where a policy lets it run, and after a restart (lab 13)', async () => {
    const { host, did, before } = await origin();
    const options = { approvals: () => 'run' as const, defaults: { waitLingerMs: 1 } };
    const first = host({ ...options, script: [callTool('pay', { n: 9 })] });
    expect((await (await first.executor.fork('r', { at: 1, runId: 'f', effects: 'ask' })).result).status).toBe(
      'waiting',
    );
    expect(did.length).toBe(before);
    const [wait] = await first.executor.waiting({ runId: 'f' });
    expect(wait).toMatchObject({ kind: 'approval', prompt: expect.stringContaining('a fork of run r') });
    await first.executor.shutdown();
    const next = host({ ...options, script: [callTool('pay', { n: 10 })] });
    await next.executor.control('f').approve(wait?.id ?? '', { by: { id: 'ada' } });
    await next.executor.recover();
    await until(async () => (await next.executor.waiting({ runId: 'f' })).some(({ id }) => id !== wait?.id));
    expect(did.length).toBe(before + 1);
  });

  test('`ask`: the question says what the origin did with the same call after the cut (lab 13)', async () => {
    const secret = (text: string) => text.replaceAll('paid', '[bank]');
    const asked = async (n: number, isErased = false) => {
      const { host } = await origin();
      const call = async () => {
        if (isErased) await next.executor.erase('r');
        return callTool('pay', { n });
      };
      const next: ReturnType<typeof host> = host({ script: [call], redact: secret, defaults: { waitLingerMs: 1 } });
      await (await next.executor.fork('r', { at: 1, runId: 'f', effects: 'ask' })).result;
      const [wait] = await next.executor.waiting({ runId: 'f' });
      return wait?.kind === 'approval' && wait.prompt;
    };
    const fork = 'This run is a fork of run r.';
    expect(await asked(2)).toBe(`${fork} Run r made the same call in step 2. Its result: [bank]`);
    expect(await asked(3)).toBe(`${fork} Run r did not make this call.`);
    expect(await asked(2, true)).toBe(fork);
  });

  test('hold for the children of the fork (lab 13)', async () => {
    const { did, both } = tools();
    const store = memoryStore();
    const child = defineAgent({ id: 'child', instructions: 'Pay.', tools: both });
    const options = {
      store,
      agent: { subAgents: ['child'] },
      ports: { palette: createPalette({ agents: [child] }) },
      ...kept,
    };
    await hostOf({ ...options, script: [reply('nothing')] }).run(request);
    const call = callTool('agent__child', { prompt: 'Pay.' });
    const next = hostOf({ ...options, script: [call, callTool('pay'), reply('not paid'), reply('done')] });
    const fork = await (await next.executor.fork('r', { at: 0, effects: 'refuse' })).result;
    expect(fork).toMatchObject({ status: 'ok', output: 'done' });
    expect(did).toEqual([]);
  });
});

test('a fork of a child is a run of its own, with the child’s first steps and no parent (lab 10, 12)', async () => {
  const store = memoryStore();
  const child = defineAgent({ id: 'child', instructions: 'Look.', tools: [toolOf('look', 'read')] });
  const palette = createPalette({ agents: [child] });
  const options = { store, agent: { subAgents: ['child'] }, ports: { palette }, ...kept };
  const call = callTool('agent__child', { prompt: 'Look.' });
  const host = hostOf({ ...options, script: [call, callTool('look'), reply('seen'), reply('done')] });
  await host.run(request);
  const [step] = (await readRun(host.executor, 'r')).steps;
  const childRunId = step?.calls[0]?.childRunId ?? '';
  const next = hostOf({ ...options, script: [reply('seen again')] });
  const fork = await (await next.executor.fork(childRunId, { at: 1, runId: 'f' })).result;
  expect(fork).toMatchObject({ status: 'ok', output: 'seen again', forkedFrom: { runId: childRunId, at: 1 } });
  const forked = await readRun(next.executor, 'f');
  expect([forked.parent, forked.prompt, forked.steps.length]).toEqual([undefined, 'Look.', 2]);
  expect(await readRun(next.executor, 'r')).toMatchObject({ status: 'ok', output: 'done' });
});

describe('the edit of a fork', () => {
  const toText = (text: string) => (message: Message) =>
    message.role === 'user' ? ({ role: 'user', content: [{ type: 'text', text }] } as Message) : message;

  test('changes texts of persons and results, and adds messages of a person at the end (lab 14)', async () => {
    const { host } = await origin();
    const next = host({ script: [reply('ok')] });
    const more: Message = { role: 'user', content: [{ type: 'text', text: 'And be quick.' }] };
    const edit = (messages: Message[]) => [...messages.map(toText('Go slowly.')), more];
    const fork = await (await next.executor.fork('r', { at: 1, edit, effects: 'live' })).result;
    expect(fork.forkedFrom).toEqual({ runId: 'r', at: 1, edited: true });
    const [line] = await next.executor.history({ limit: 1 });
    expect(line).toMatchObject({ meta: { prompt: 'Go slowly.' } });
    const texts = next.model.calls[0]?.messages.filter(({ role }) => role === 'user').map(({ content }) => content);
    expect(texts).toEqual([[{ type: 'text', text: 'Go slowly.' }], more.content]);
  });

  test('that gives no transcript of these answers is a TypeError, and its own throw is passed on (lab 14)', async () => {
    const { host, store } = await origin();
    const { executor } = host();
    const wrong: readonly ((messages: Message[]) => unknown)[] = [
      () => 'no list',
      (messages) => messages.slice(0, -1),
      (messages) => messages.filter(({ role }) => role !== 'assistant'),
      (messages) => [...messages, { role: 'assistant', content: [{ type: 'text', text: 'I say so.' }] }],
      (messages) => [...messages, { role: 'user', content: 7 }],
    ];
    for (const edit of wrong)
      await expect(executor.fork('r', { at: 1, runId: 'f', edit: edit as never, effects: 'live' })).rejects.toThrow(
        TypeError,
      );
    const own = () => {
      throw new RangeError('mine');
    };
    await expect(executor.fork('r', { at: 1, runId: 'f', edit: own, effects: 'live' })).rejects.toThrow(RangeError);
    expect(await store.load('f')).toBeNull();
  });
});

test('a fork counts the steps that readRun has, also of a pipeline (lab 1, 10)', async () => {
  const phases = ['plan', 'write'].map((name) => ({ name, instructions: name }));
  for (const agent of [{}, { phases }]) {
    const { host } = await origin({ agent, ...(agent.phases ? { script: [...script, reply('done')] } : {}) });
    const { executor } = host({ agent });
    const { steps } = await readRun(executor, 'r');
    await expect(executor.fork('r', { at: 99, effects: 'live' })).rejects.toThrow(`at must be 0 to ${steps.length},`);
    expect(steps.length).toBeGreaterThan(3);
  }
});

describe('a fork of a pipeline', () => {
  const phases = ['plan', 'write'].map((name) => ({ name, instructions: name }));
  const steps = [callTool('look', { n: 1 }), reply('the plan'), callTool('look', { n: 2 }), reply('the text')];

  test('keeps the finished phases before the cut, and makes the rest again (lab 11)', async () => {
    for (let at = 0; at <= 4; at++) {
      const store = memoryStore();
      const { both } = tools();
      await hostOf({ store, tools: both, agent: { phases }, script: steps, ...kept }).run(request);
      const next = hostOf({ store, tools: both, agent: { phases }, script: steps.slice(at) });
      const fork = await (await next.executor.fork('r', { at, effects: 'live' })).result;
      expect(fork).toMatchObject({ status: 'ok', output: 'the text' });
      expect(fork.phases.map(({ name, output }) => [name, output])).toEqual([
        ['plan', 'the plan'],
        ['write', 'the text'],
      ]);
      expect(next.model.calls.length).toBe(4 - at);
    }
  });

  test('with an agent of other first phases is DEFINITION_CHANGED (lab 15)', async () => {
    const store = memoryStore();
    const { both } = tools();
    await hostOf({ store, tools: both, agent: { phases }, script: steps, ...kept }).run(request);
    const other = hostOf({ store, tools: both, agent: { phases: phases.toReversed() } });
    expect(await codeOf(other.executor.fork('r', { at: 3, effects: 'live' }))).toBe('DEFINITION_CHANGED');
  });
});
