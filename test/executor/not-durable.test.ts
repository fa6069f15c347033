import { memoryStore } from 'pawl';
import { createCheckpointer } from 'pawl/stores/kit';
import { callTool, hang, reply, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { gate, type HostOptions, hostOf, settle, toolOf } from '../fixtures/host.ts';
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
    expect(await host.executor.recover()).toEqual({ resumed: [], parked: [], skipped: [], failed: [], waiting: 0 });
  });

  test('whose factory says null never touches the store, with the same result (checkpoint 22)', async () => {
    const durable = await hostOf({ script: three, tools, store: memoryStore() }).run(invocation);
    const choosy = await hostOf({
      script: three,
      tools,
      ports: { checkpointer: { begin: async (): Promise<null> => null } },
    }).run(invocation);
    const noStore = await hostOf({ script: three, tools, store: undefined as never }).run(invocation);
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
      { store: watchedStore({ before: ({ method }) => method === 'save' && Promise.reject(new Error('full')) }) },
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
    const host = hostOf({ script: three, tools, store });
    expect(await host.run({ runId: 'run-1' })).toMatchObject({ status: 'ok', durable: false });
    expect(host.warnings).toEqual([begun]);
    expect(store.methods.filter((name) => name === 'save' || name === 'append')).toEqual(['save']);
    expect(store.methods.at(-1)).toBe('release');
  });

  test('continues when a lease is renewed while its first save is taken back (checkpoint 24)', async () => {
    const clock = testClock();
    const slow = gate();
    const store = watchedStore(
      {
        before: ({ method }) => method === 'save' && Promise.reject(new Error('full')),
        after: ({ method }) => (method === 'delete' ? slow.pass() : undefined),
      },
      memoryStore({ clock }),
    );
    const running = hostOf({ script: [reply('found')], store, clock }).run({ runId: 'r' });
    await slow.reached;
    await clock.advance(11_000);
    slow.open();
    expect(await running).toMatchObject({ status: 'ok', durable: false });
  });
});

describe('a run that continues without a record, although its first save may have landed and cannot be taken back (checkpoint 24, promise c)', () => {
  /** Its store commits the first save, and cannot be reached from then on. */
  function cutOff(options: Partial<HostOptions> = {}) {
    const clock = testClock();
    const inner = memoryStore({ clock });
    const state = { isDown: false, effects: 0 };
    const store = watchedStore(
      {
        before: ({ method }) => state.isDown && method !== 'renew' && Promise.reject(new Error('down')),
        after: ({ method }) => {
          if (method !== 'save') return;
          state.isDown = true;
          throw new Error('the connection broke');
        },
      },
      inner,
    );
    const paying = gate<string>();
    const script = [callTool('pay'), reply('done')];
    const pay = toolOf('pay', 'once', () => {
      state.effects += 1;
      return paying.pass();
    });
    const host = hostOf({ script, tools: [pay], store, clock, ...options });
    const other = hostOf({ script, tools: [pay], store: inner, clock });
    return { clock, inner, state, paying, host, other };
  }

  test('is of no other process while it lives, and leaves nothing', async () => {
    const { inner, state, paying, host, other } = cutOff();
    const run = await host.start({ runId: 'r' });
    await paying.reached;
    const reason = expect.stringContaining('RUN_OWNED_ELSEWHERE');
    expect((await other.executor.recover()).skipped).toEqual([{ runId: 'r', reason }]);
    state.isDown = false;
    paying.open('paid');
    expect(await run.result).toMatchObject({ status: 'ok', durable: false });
    expect(state.effects).toBe(1);
    expect(await inner.listInterrupted()).toEqual([]);
    expect(await inner.claim('r', 'another', 1_000)).not.toBeNull();
  });

  test('leaves nothing either when its host cannot take the outcome', async () => {
    const { inner, state, paying, host, other } = cutOff({ onOutcome: () => Promise.reject(new Error('away')) });
    const run = await host.start({ runId: 'r' });
    await paying.reached;
    state.isDown = false;
    paying.open('paid');
    await run.result;
    expect(await inner.listInterrupted()).toEqual([]);
    expect((await other.executor.recover()).resumed).toEqual([]);
    expect(state.effects).toBe(1);
  });

  test('has taken it back before its end is delivered: a slow host makes it remove no other process’s run', async () => {
    const slow = gate();
    const { clock, inner, state, paying, host } = cutOff({ onOutcome: () => slow.pass() });
    const run = await host.start({ runId: 'r' });
    await paying.reached;
    state.isDown = false;
    paying.open('paid');
    await slow.reached;
    expect(await inner.listInterrupted()).toEqual([]);
    await clock.advance(11_000);
    await run.result;
    await hostOf({ script: [hang()], store: inner, clock }).start({ runId: 'r' });
    slow.open();
    await settle();
    expect((await inner.listInterrupted()).map(({ runId }) => runId)).toEqual(['r']);
  });

  test.for([
    ['at once', () => false],
    ['before its host is told', (nth: number) => nth === 1],
  ] as const)('ends well when the unconfirmed delete has landed %s', async ([, isRefused]) => {
    const inner = memoryStore();
    const told: string[] = [];
    let deletes = 0;
    let isLost = false;
    const store = watchedStore(
      {
        before: ({ method }) => {
          if (method === 'delete' && isRefused(++deletes)) throw new Error('down');
        },
        after: ({ method }) => {
          const isUnheard = method === 'save' || (method === 'delete' && !isLost);
          if (method === 'delete') isLost = true;
          if (isUnheard) throw new Error('the answer was lost');
        },
      },
      inner,
    );
    const onOutcome = ({ status }: { status: string }) => void told.push(status);
    const host = hostOf({ script: [reply('done')], store, onOutcome });
    expect(await host.run({ runId: 'r' })).toMatchObject({ status: 'ok', durable: false });
    expect(told).toEqual(['ok']);
    expect(await inner.listInterrupted()).toEqual([]);
  });
});

describe('a run without a store', () => {
  test('an undefined store makes a checkpointer whose methods succeed and do nothing (checkpoint 15)', async () => {
    const nothing = createCheckpointer(undefined, {} as never);
    expect(nothing.durable).toBe(false);
    await nothing.save({ iteration: 1 });
    await nothing.complete();
    await nothing.fail(new Error('x'));
    expect(await hostOf().run({}, { checkpointer: nothing })).toMatchObject({ status: 'ok', durable: false });
  });
});
