import { memoryStore, type Phase } from 'pawl';
import { asSnapshot } from 'pawl/stores/kit';
import { callTool, hang, reply, type ScriptedEntry } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { createActor } from 'xstate';
import { hostOf, settle, toolOf, until } from '../fixtures/host.ts';
import { childOf, hostMachine, outputOf, restoreHost, roundTrip, startHost } from '../fixtures/host-machine.ts';
import { look, outputsOf, systemsOf, tell } from '../fixtures/phases.ts';
import { afterCrash, onlyRecord } from '../fixtures/watched-store.ts';

const tools = [toolOf('look')];
const phases: Phase[] = [look, tell, { name: 'c', instructions: 'C saw {{.b}}' }];
const script: ScriptedEntry[] = [
  callTool('look', {}, 'c1'),
  reply('one'),
  callTool('look', {}, 'c2'),
  reply('two'),
  reply('three'),
];

/** A host machine whose pipeline is in its model call of this number. */
async function hostedAt(call: number, store?: ReturnType<typeof memoryStore>, given = phases) {
  const parts = hostOf({
    agent: { phases: given },
    tools,
    script: [...script.slice(0, call), hang()],
    ...(store ? { store } : {}),
  });
  const host = startHost(hostMachine(parts.executor, parts.agent));
  await until(() => parts.model.calls.length === call + 1);
  await settle();
  return { ...parts, host, snapshot: roundTrip(host.getPersistedSnapshot()) };
}

function restoredFrom(snapshot: unknown, entries: readonly ScriptedEntry[], store?: ReturnType<typeof memoryStore>) {
  const options = { agent: { phases }, tools, script: entries, ...(store ? { store } : {}) };
  const parts = hostOf(options);
  return { ...parts, host: restoreHost(hostMachine(parts.executor, parts.agent), snapshot) };
}

describe('a pipeline inside a host’s machine', () => {
  test('gives its result as output, with its phases and without messages', async () => {
    const { executor, agent } = hostOf({ agent: { phases }, tools, script });
    const output = await outputOf(startHost(hostMachine(executor, agent)));
    expect(output).toMatchObject({ status: 'ok', output: 'three', iterations: 5 });
    expect(outputsOf(output)).toEqual(['a: one', 'b: two', 'c: three']);
    expect(output).not.toHaveProperty('messages');
  });

  describe.for([true, false])('durable: %s', (isDurable) => {
    // Call 2 is the first of its phase: in the record nothing of it is there yet.
    test.for([0, 1, 2, 3])(
      'continues when the host is persisted in model call %i and restored (pipeline 8)',
      async (call) => {
        const store = isDurable ? memoryStore() : undefined;
        const { snapshot } = await hostedAt(call, store);
        const left = store && (await afterCrash(store));
        const next = restoredFrom(snapshot, script.slice(call), left);
        const output = await outputOf(next.host);
        expect(output).toMatchObject({ status: 'ok', output: 'three', iterations: 5, durable: isDurable });
        expect(outputsOf(output)).toEqual(['a: one', 'b: two', 'c: three']);
        const all = ['Look at Go.', 'Look at Go.', 'B saw one', 'B saw one', 'C saw two'];
        expect(systemsOf(next.model)).toEqual(all.slice(call));
      },
    );
  });

  test('is in the host’s snapshot as a reference when it is durable, and with its open phase when it is not', async () => {
    const durable = childOf((await hostedAt(3, memoryStore())).snapshot);
    expect(durable).toMatchObject({ stored: true, messages: [], completedPhases: [{ name: 'a', output: 'one' }] });
    const whole = childOf((await hostedAt(3)).snapshot);
    expect(whole).toMatchObject({ openPhase: { index: 1, iteration: 1 }, completedPhases: [{ name: 'a' }] });
    // The opening, a step and the answer of the first phase, and a step of the second.
    expect(whole).toMatchObject({ openPhase: { from: 4 }, completedPhases: [{ from: 0 }] });
    expect(whole.messages).toHaveLength(6);
    expect(whole).not.toHaveProperty('stored');
  });

  test('without a store, persisted in a phase that begins again, keeps its completed phases (pipeline 8)', async () => {
    const anew = phases.map((phase): Phase => ({ ...phase, recovery: 'boundary' }));
    const { snapshot } = await hostedAt(3, undefined, anew);
    const child = childOf(snapshot);
    expect(child).toMatchObject({ completedPhases: [{ name: 'a', output: 'one', from: 0 }], iteration: 2 });
    expect(child.messages).toHaveLength(4);
    const parts = hostOf({ agent: { phases: anew }, tools, script: script.slice(2) });
    const output = await outputOf(restoreHost(hostMachine(parts.executor, parts.agent), snapshot));
    expect(output).toMatchObject({ status: 'ok', output: 'three', iterations: 5 });
    expect(systemsOf(parts.model)).toEqual(['B saw one', 'B saw one', 'C saw two']);
  });

  test('continues from a stored record between two phases that is given as a snapshot (pipeline 8)', async () => {
    const store = memoryStore();
    await hostedAt(2, store);
    const record = await onlyRecord(store);
    expect(record.messages).toHaveLength(4);
    const next = hostOf({ agent: { phases }, tools, store: memoryStore(), script: script.slice(2) });
    const actor = createActor(next.executor.logic(next.agent), { snapshot: asSnapshot(record) }).start();
    await until(() => actor.getSnapshot().status === 'done');
    expect(actor.getSnapshot().output).toMatchObject({ status: 'ok', output: 'three', iterations: 5, durable: true });
  });

  test('is left at its phase when the host leaves, and another host continues', async () => {
    const store = memoryStore();
    const { host, model } = await hostedAt(3, store);
    host.send({ type: 'leave' });
    await until(async () => (await store.load('r'))?.attempts === 0 && model.calls.length === 4);
    await settle();
    expect(await onlyRecord(store)).toMatchObject({ openPhase: { index: 1, iteration: 1 } });
    const next = hostOf({ agent: { phases }, tools, store, script: script.slice(3) });
    const output = await outputOf(startHost(hostMachine(next.executor, next.agent)));
    expect(output).toMatchObject({ status: 'ok', output: 'three', iterations: 5 });
  });

  test('whose phases have changed stays active, and its record is parked (pipeline 9, edges 14)', async () => {
    const store = memoryStore();
    const { snapshot } = await hostedAt(3, store);
    const left = await afterCrash(store);
    const parts = hostOf({
      agent: { phases: phases.toReversed() },
      isForeign: true,
      tools,
      store: left,
      script: [],
    });
    const host = restoreHost(hostMachine(parts.executor, parts.agent), snapshot);
    await until(() => host.getSnapshot().children.run?.getSnapshot().hasTag('parked'));
    expect(await onlyRecord(left)).toMatchObject({ parked: { code: 'DEFINITION_CHANGED' } });
    await parts.executor.shutdown();
  });
});
