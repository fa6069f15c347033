import { type Checkpointer, type CheckpointerFactory, memoryStore } from 'pawl';
import { createCheckpointerFactory } from 'pawl/stores/kit';
import { callTool, hang, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { hostOf, toolOf, until } from '../fixtures/host.ts';
import { hostMachine, outputOf, restoreHost, startHost } from '../fixtures/host-machine.ts';
import { afterCrash } from '../fixtures/watched-store.ts';

/** A host's own factory: a run is stored from its second step on. */
function lazyFactory(store = memoryStore()): CheckpointerFactory {
  const eager = createCheckpointerFactory(store);
  return {
    store,
    begin: async (info, options) => {
      const inner = (await eager.begin(info, options)) as Checkpointer;
      let isWritten = options?.landed !== undefined;
      return {
        get durable() {
          return isWritten;
        },
        save: async (state, how) => {
          if (!isWritten && state.iteration < 2) return;
          await inner.save(state, how);
          isWritten = true;
        },
        complete: async () => void (isWritten && (await inner.complete())),
        fail: async (error) => void (isWritten && (await inner.fail(error))),
      };
    },
  };
}

const tools = [toolOf('look')];

describe('a run of a lazy checkpointer (checkpoint 22, 23)', () => {
  test('says in its info, events and result that it is not durable until something is written, and then that it is', async () => {
    const store = memoryStore();
    const script = [callTool('look', { n: 1 }), callTool('look', { n: 2 }), reply('done')];
    const host = hostOf({ script, tools, ports: { checkpointer: lazyFactory(store) } });
    const run = await host.start({ runId: 'r' });
    expect(host.executor.run$('r')?.get().durable).toBe(false);
    const told: string[] = [];
    for await (const event of run.events()) {
      if (event.type === 'checkpoint.saved') told.push(`saved ${event.iteration}`);
    }
    expect(told).toEqual(['saved 2']);
    expect(await run.result).toMatchObject({ status: 'ok', durable: true });
    const short = hostOf({ script: [reply('done')], ports: { checkpointer: lazyFactory() } });
    expect(await short.run()).toMatchObject({ status: 'ok', durable: false });
  });

  test('acknowledges a steered message as queued while nothing of it is written, and as durable once it is', async () => {
    const script = [hang()];
    const host = hostOf({ script, tools, ports: { checkpointer: lazyFactory() } });
    const run = await host.start({ runId: 'r' });
    await until(() => host.model.calls.length === 1);
    expect(await run.steer('Quick!')).toBe('queued');
    await run.cancel();
    const later = hostOf({
      script: [callTool('look', { n: 1 }), callTool('look', { n: 2 }), hang()],
      tools,
      ports: { checkpointer: lazyFactory() },
    });
    const stored = await later.start({ runId: 'r' });
    await until(() => later.model.calls.length === 3);
    expect(await stored.steer('Quick!')).toBe('durable');
    await stored.cancel();
  });

  test('is refused with NOT_DURABLE where requireDurable is set, and makes no call', async () => {
    const host = hostOf({ ports: { checkpointer: lazyFactory() }, requireDurable: true });
    expect(await host.run()).toMatchObject({ status: 'error', error: { code: 'NOT_DURABLE' } });
    expect(host.model.calls).toHaveLength(0);
  });

  test('is whole in the snapshot of a host’s machine until it is stored, and continues from it in the next process', async () => {
    const store = memoryStore();
    const agent = { tools };
    const first = hostOf({ agent, script: [callTool('look'), hang()], ports: { checkpointer: lazyFactory(store) } });
    const actor = startHost(hostMachine(first.executor, first.agent));
    await until(() => first.model.calls.length === 2);
    const snapshot = actor.getPersistedSnapshot();
    expect(await store.load('r')).toBeNull();

    const left = lazyFactory(await afterCrash(store));
    const next = hostOf({ agent, script: [reply('done')], ports: { checkpointer: left } });
    const restored = restoreHost(hostMachine(next.executor, next.agent), snapshot);
    expect(await outputOf(restored)).toMatchObject({ status: 'ok', output: 'done', iterations: 2 });
  });
});
