import { createCheckpointer, memoryStore } from 'pawl';
import { callTool, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { gate, hostOf, toolOf } from '../fixtures/host.ts';
import { watchedStore } from '../fixtures/watched-store.ts';

const three = [callTool('look', { n: 1 }), callTool('look', { n: 2 }), reply('found')];
const tools = [toolOf('look')];
const invocation = { runId: 'run-1', prompt: 'Find it.', callerId: 'caller' };
const begun = 'run: checkpointer begin failed; running non-durable';

describe('a run without a record', () => {
  test('works as any other when there is no store, and says durable: false (checkpoint 15, 22)', async () => {
    const host = hostOf({ script: three, tools });
    expect(await host.run()).toMatchObject({ status: 'ok', output: 'found', durable: false, saveErrors: 0 });
    expect(host.warnings).toEqual([]);
    expect(await host.executor.list()).toEqual([]);
    expect(await host.executor.recover()).toEqual({ resumed: [], parked: [], skipped: [], failed: [] });
  });

  test('whose factory says null never touches the store, with the same result (checkpoint 22)', async () => {
    const durable = await hostOf({ script: three, tools, checkpoints: memoryStore() }).run(invocation);
    const choosy = await hostOf({
      script: three,
      tools,
      ports: { checkpointer: { begin: async (): Promise<null> => null } },
    }).run(invocation);
    const noStore = await hostOf({ script: three, tools, checkpoints: undefined as never }).run(invocation);
    expect(choosy).toEqual({ ...durable, durable: false });
    expect(noStore).toEqual({ ...durable, durable: false });
  });

  test('starts its tools with effects at once: there is no intent to wait for (executor 14)', async () => {
    const once = toolOf('once', 'once', () => 'sent');
    const result = await hostOf({ script: [callTool('once'), reply('done')], tools: [once] }).run();
    expect(result).toMatchObject({ status: 'ok', durable: false });
  });

  test.for([
    ['no store', {}],
    ['a factory that says null', { ports: { checkpointer: { begin: async (): Promise<null> => null } } }],
    [
      'a begin that throws',
      { ports: { checkpointer: { begin: (): Promise<null> => Promise.reject(new Error('no disk')) } } },
    ],
    [
      'a first save that fails',
      { checkpoints: watchedStore({ before: ({ method }) => method === 'save' && Promise.reject(new Error('full')) }) },
    ],
  ] as const)('is refused with NOT_DURABLE under requireDurable: %s (checkpoint 24)', async ([, options]) => {
    const host = hostOf({ ...options, requireDurable: true });
    const result = await host.run();
    expect(result).toMatchObject({ status: 'error', error: { code: 'NOT_DURABLE' }, durable: false, iterations: 0 });
    expect(host.model.calls).toHaveLength(0);
  });

  test.for([
    ['rejects', (): Promise<null> => Promise.reject(new Error('no disk'))],
    [
      'throws',
      (): Promise<null> => {
        throw new Error('no disk');
      },
    ],
  ] as const)(
    'a begin that %s costs one warning and the durability, not the run (checkpoint 24)',
    async ([, begin]) => {
      const host = hostOf({ script: three, tools, ports: { checkpointer: { begin } } });
      expect(await host.run({ runId: 'run-1' })).toMatchObject({ status: 'ok', output: 'found', durable: false });
      expect(host.warned).toEqual([{ message: begun, fields: expect.objectContaining({ runId: 'run-1' }) }]);
    },
  );

  test('a first save that fails is a begin that throws: one warning, no second try (checkpoint 24)', async () => {
    const store = watchedStore({ before: ({ method }) => method === 'save' && Promise.reject(new Error('full')) });
    const host = hostOf({ script: three, tools, checkpoints: store });
    expect(await host.run({ runId: 'run-1' })).toMatchObject({ status: 'ok', durable: false });
    expect(host.warnings).toEqual([begun]);
    expect(store.methods.filter((name) => name === 'save' || name === 'append')).toEqual(['save']);
    expect(store.methods.at(-1)).toBe('release');
  });

  test('is nobody else’s as long as it lives, when its first save may have landed and cannot be taken back (checkpoint 24; promise c)', async () => {
    const inner = memoryStore();
    let isDown = false;
    const store = watchedStore(
      {
        before: ({ method }) => isDown && method !== 'renew' && Promise.reject(new Error('down')),
        after: ({ method }) => {
          if (method !== 'save') return;
          isDown = true;
          throw new Error('the connection broke');
        },
      },
      inner,
    );
    const paying = gate<string>();
    let effects = 0;
    const script = [callTool('pay'), reply('done')];
    const pay = toolOf('pay', 'once', () => {
      effects += 1;
      return paying.pass();
    });
    const host = hostOf({ script, tools: [pay], checkpoints: store });
    const run = await host.start({ runId: 'r' });
    await paying.reached;
    const other = hostOf({ script, tools: [pay], checkpoints: inner });
    const reason = expect.stringContaining('RUN_OWNED_ELSEWHERE');
    expect((await other.executor.recover()).skipped).toEqual([{ runId: 'r', reason }]);
    isDown = false;
    paying.open('paid');
    expect(await run.result).toMatchObject({ status: 'ok', durable: false });
    expect(effects).toBe(1);
    expect(await inner.listInterrupted()).toEqual([]);
    expect(await inner.claim('r', 'another', 1_000)).not.toBeNull();
  });

  test('an undefined store makes a checkpointer whose methods succeed and do nothing (checkpoint 15)', async () => {
    const nothing = createCheckpointer(undefined, {} as never);
    expect(nothing.durable).toBe(false);
    await nothing.save({ iteration: 1 });
    await nothing.complete();
    await nothing.fail(new Error('x'));
    expect(await hostOf().run({}, { checkpointer: nothing })).toMatchObject({ status: 'ok', durable: false });
  });
});
