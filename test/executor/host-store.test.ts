import { type CheckpointStore, memoryStore } from 'pawl';
import { callTool, hang, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { type MethodName, wrapStore } from '../../src/store/read-only.ts';
import { StoreUnavailableError } from '../../src/values/errors.ts';
import { hostOf, toolOf, until } from '../fixtures/host.ts';
import { leftBehind, replies } from '../fixtures/left-runs.ts';
import { plainStore, withoutDue } from '../fixtures/watched-store.ts';

const tools = [toolOf('look')];

/** A store whose entries are what a host made of them. */
function listing(store: CheckpointStore, change: (entry: Record<string, unknown>) => unknown): CheckpointStore {
  const listInterrupted = async () => (await store.listInterrupted()).map((entry) => change({ ...entry }));
  return { ...plainStore(store), listInterrupted } as CheckpointStore;
}

/** The reference's own entry: the run's id stands in its meta. */
const withoutRunId = ({ runId: _, ...entry }: Record<string, unknown>) => entry;

describe("a host's own list of interrupted runs", () => {
  test('needs no runId where meta.runId says it: recover() takes the runs up and reports them by that id', async () => {
    const host = hostOf({ script: replies(2), tools, store: listing(await leftBehind(2), withoutRunId) });
    expect((await host.executor.list()).map(({ runId }) => runId)).toEqual(['r0', 'r1']);
    const { resumed, failed } = await host.executor.recover();
    expect({ resumed: resumed.map(({ runId }) => runId).sort(), failed }).toEqual({
      resumed: ['r0', 'r1'],
      failed: [],
    });
    expect(await host.executor.get('r0')?.result).toMatchObject({ status: 'ok', output: 'end' });
  });

  test('is complained of by the name of its port where an entry has no run id at all, and the others are taken up', async () => {
    const nameless = ({ runId, meta, ...entry }: Record<string, unknown>) =>
      runId === 'r0' ? { ...entry, meta: { ...(meta as object), runId: undefined } } : { ...entry, runId, meta };
    const host = hostOf({ script: replies(1), tools, store: listing(await leftBehind(2), nameless) });
    const report = await host.executor.recover();
    expect(report.resumed).toEqual([{ runId: 'r1' }]);
    const reason = expect.stringMatching(
      /^STORE_UNAVAILABLE: it cannot be read: store\.listInterrupted returned an entry without a runId/,
    );
    expect(report.skipped).toEqual([{ runId: '', reason }]);
  });

  test.for([
    ['without a meta', ({ meta: _, ...entry }: Record<string, unknown>) => entry],
    ['whose meta names no agent', (entry: Record<string, unknown>) => ({ ...entry, meta: { runId: entry.runId } })],
  ] as const)('is complained of where an entry is %s, by the id of the run', async ([, change]) => {
    const host = hostOf({ store: listing(await leftBehind(1), change) });
    const { skipped } = await host.executor.recover();
    const reason = expect.stringContaining('store.listInterrupted returned an entry without a meta.agentId');
    expect(skipped).toEqual([{ runId: 'r0', reason }]);
  });

  test.for([null, 7, 'r0', undefined] as const)('may contain %s, which hides no other run', async (entry) => {
    const store = await leftBehind(1);
    const listInterrupted = async () => [entry as never, ...(await store.listInterrupted())];
    const host = hostOf({ script: replies(1), tools, store: { ...plainStore(store), listInterrupted } });
    expect((await host.executor.recover()).resumed).toEqual([{ runId: 'r0' }]);
  });

  test.for([undefined, null, {}, 'none'] as const)(
    'that is %s is STORE_UNAVAILABLE, and the message says what is expected',
    async (answer) => {
      const store = { ...memoryStore(), listInterrupted: async () => answer as never };
      await expect(hostOf({ store }).executor.recover()).rejects.toMatchObject({
        code: 'STORE_UNAVAILABLE',
        message: expect.stringContaining('it must resolve to an array'),
      });
    },
  );
});

const refusing = (method: MethodName, error: unknown, store: CheckpointStore = memoryStore()): CheckpointStore =>
  wrapStore(store, (name, call) => (name === method ? () => Promise.reject(error) : call));

const down = { code: 'STORE_UNAVAILABLE', cause: { message: 'ECONNREFUSED' } };

describe("a plain error of a host's store", () => {
  test.for(['load', 'claim', 'outcomes.find'] as const)(
    'is STORE_UNAVAILABLE with its cause where %s ends a start by it',
    async (method) => {
      const { status, error } = await hostOf({ store: refusing(method, new Error('ECONNREFUSED')) }).run({
        runId: 'r',
      });
      expect({ status, error }).toMatchObject({ status: 'error', error: down });
      expect(error?.message).toBe(`store.${method} failed: ECONNREFUSED`);
    },
  );

  test.for(['load', 'claim'] as const)(
    'is STORE_UNAVAILABLE with its cause where %s ends a resume by it',
    async (method) => {
      const checkpoints = refusing(method, new Error('ECONNREFUSED'), withoutDue(await leftBehind(1)));
      const { failed } = await hostOf({ tools, store: checkpoints }).executor.recover();
      expect(failed).toEqual([{ runId: 'r0', reason: `STORE_UNAVAILABLE: store.${method} failed: ECONNREFUSED` }]);
    },
  );

  test('makes recover() claim each run by itself, where due.take fails (engine 16)', async () => {
    const store = refusing('due.take', new Error('ECONNREFUSED'), await leftBehind(3));
    const { resumed, failed } = await hostOf({ tools, store, script: replies(3) }).executor.recover();
    expect([resumed.length, failed]).toEqual([3, []]);
  });

  test('is what recover() rejects with, as a StoreUnavailableError, where the list is not to be had', async () => {
    const plain = new Error('ECONNREFUSED');
    const recovering = hostOf({ store: refusing('listInterrupted', plain) }).executor.recover();
    await expect(recovering).rejects.toThrow(StoreUnavailableError);
    await expect(recovering).rejects.toMatchObject({ cause: plain });
  });

  test.for(['save', 'append', 'delete', 'outcomes.keep'] as const)(
    'is logged and published as STORE_UNAVAILABLE, from %s',
    async (method) => {
      const script = [callTool('look'), reply('done')];
      const host = hostOf({ script, tools, store: refusing(method, new Error('ECONNREFUSED')) });
      const run = await host.start({ runId: 'r' });
      const published: unknown[] = [];
      const listening = (async () => {
        for await (const event of run.events()) if (event.type === 'checkpoint.failed') published.push(event.error);
      })();
      await run.result;
      await Promise.all([listening, host.executor.shutdown()]);
      const logged = host.warned.map(({ fields }) => fields.error).filter((error) => error !== undefined);
      for (const error of [...logged, ...published]) expect(error).toMatchObject(down);
      expect(JSON.stringify(host.warned)).not.toContain('"code":"RUN_PANIC","message":"store');
      expect(logged.length).toBeGreaterThan(0);
    },
  );

  test("is logged as STORE_UNAVAILABLE, too, where it comes from a host's own checkpointer", async () => {
    const fails = async () => Promise.reject(new Error('ECONNREFUSED'));
    const handle = { save: fails, complete: fails, fail: fails };
    const host = hostOf({ ports: { checkpointer: { begin: async () => handle } } });
    await host.run();
    expect(host.warned.map(({ fields }) => fields.error)).toMatchObject([down]);
  });

  test.for([
    [
      'a refused connection of Node',
      Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED', errno: -111 }),
    ],
    ['a text', 'down'],
    ['null', null],
    ['an object', {}],
  ])('may be %s', async ([, thrown]) => {
    const { error } = await hostOf({ store: refusing('load', thrown) }).run({ runId: 'r' });
    expect(error).toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: expect.stringMatching(/^store\.load failed: ./),
    });
  });

  test('keeps a code of its own', async () => {
    const own = Object.assign(new Error('the shard moved'), { code: 'SHARD_MOVED' });
    expect((await hostOf({ store: refusing('load', own) }).run({ runId: 'r' })).error).toMatchObject({
      code: 'SHARD_MOVED',
      message: 'the shard moved',
    });
  });
});

describe("what a method of a host's store resolves to", () => {
  const wrong = [
    [5, 'the number 5'],
    ['x', 'a string'],
    [true, 'true'],
    [[], 'an array'],
    [{}, 'an object'],
    [new Date(0), 'an object'],
  ] as const;

  test.for(wrong)(
    'as a record must be one: %j is STORE_UNAVAILABLE by the name of the port',
    async ([answer, shown]) => {
      const store = { ...plainStore(await leftBehind(1)), load: async () => answer as never };
      const message = `store.load returned ${shown}; it must resolve to a record or null`;
      const host = hostOf({ script: [], tools, store });
      expect((await host.run({ runId: 'r0' })).error).toMatchObject({ code: 'STORE_UNAVAILABLE', message });
      const { failed, skipped } = await host.executor.recover();
      expect([...failed, ...skipped]).toEqual([{ runId: 'r0', reason: `STORE_UNAVAILABLE: ${message}` }]);
    },
  );

  test('as a record must be that of the run: another one is CHECKPOINT_CORRUPT, and nothing of it is handed out', async () => {
    const store = await leftBehind(2);
    const host = hostOf({ script: [], tools, store: { ...plainStore(store), load: () => store.load('r1') } });
    const { error } = await host.run({ runId: 'r0' });
    expect(error?.code).toBe('CHECKPOINT_CORRUPT');
    expect(error?.message).toBe('store.load returned the record of another run for "r0"');
  });

  test('as an outcome must be that of the run: another one is CHECKPOINT_CORRUPT, also for the same request', async () => {
    const store = memoryStore();
    await hostOf({ script: [reply('secret')], store }).run({ runId: 'a' });
    const host = hostOf({
      script: [],
      store: { ...store, outcomes: { ...store.outcomes, find: () => store.outcomes.find('a') } },
    });
    const result = await host.run({ runId: 'b' });
    expect(result).toMatchObject({ status: 'error', output: '', error: { code: 'CHECKPOINT_CORRUPT' } });
    expect(result.error?.message).toBe('store.outcomes.find returned the outcome of another run for "b"');
  });

  test.for([
    ['claim', 5, 'store.claim returned the number 5; it must resolve to a claim with its epoch and attempts, or null'],
    ['claim', {}, 'store.claim returned an object; it must resolve to a claim with its epoch and attempts, or null'],
    ['outcomes.find', 'x', 'store.outcomes.find returned a string; it must resolve to an outcome or null'],
  ] as const)('from %s must be what it says: %j is STORE_UNAVAILABLE', async ([method, answer, message]) => {
    const host = hostOf({
      script: [],
      store: wrapStore(memoryStore(), (name, call) => (name === method ? async () => answer : call)),
    });
    expect((await host.run({ runId: 'r' })).error).toMatchObject({ code: 'STORE_UNAVAILABLE', message });
  });

  test.for([5, {}, [5], [{ runId: 'r' }]])(
    'from commands.inbox must be a list of commands: %j is logged by the name of the port',
    async (answer) => {
      const store = wrapStore(memoryStore(), (name, call) => (name === 'commands.inbox' ? async () => answer : call));
      const host = hostOf({ script: [hang()], store, defaults: { controlMs: 1 } });
      await host.start({ runId: 'r' });
      await until(() => host.warned.length > 0);
      expect(host.warned[0]).toMatchObject({
        message: 'run: commands from other processes cannot be read',
        fields: {
          error: {
            code: 'STORE_UNAVAILABLE',
            message: expect.stringMatching(/^store\.commands\.inbox returned .+; it must resolve to an array/),
          },
        },
      });
      await host.executor.shutdown();
    },
  );
});
