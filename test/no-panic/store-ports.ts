import { setImmediate as nextTurn } from 'node:timers/promises';
import { type Checkpointer, type CheckpointStore, type ExecutorOptions, memoryStore } from 'pawl';
import { callTool, hang, reply, type TestClock, testClock } from 'pawl/testing';
import { type MethodName, wrapStore } from '../../src/store/read-only.ts';
import { toolOf } from '../fixtures/host.ts';
import { plainStore } from '../fixtures/watched-store.ts';
import { type Port, type Scene, throwing } from './scene.ts';

const look = toolOf('look');
const send = toolOf('send', 'once');
const script = [callTool('look'), reply('done')];

const storeWith = (method: MethodName, act: () => never) =>
  wrapStore(memoryStore(), (name, call) => (name === method ? act : call));
const working = (store: CheckpointStore, options: Partial<ExecutorOptions> = {}): Scene => ({
  options: { store, ...options },
  script,
  tools: [look],
});

/** So much passes on a turning clock, ms: more than any limit of the rows that have one. */
const TURNING_MS = 400;
const TURNS_PER_MS = 10;

/** A clock that moves with the turns of the event loop: a busy machine does not use a limit up before the run has its turn. */
function turningClock(): TestClock {
  const clock = testClock();
  const turn = async () => {
    for (let turns = 0; turns < TURNING_MS * TURNS_PER_MS; turns++) {
      await nextTurn();
      if (turns % TURNS_PER_MS === 0) await clock.advance(1);
    }
  };
  void turn();
  return clock;
}

/** What is asked for before a run is accepted, and whose answer is needed: the run is refused. */
const refused = { hangs: 'PORT_TIMEOUT', else: 'STORE_UNAVAILABLE' } as const;
const ok = { else: 'ok' } as const;

const storePorts: readonly Port[] = [
  { name: 'store.save', scene: (act) => working(storeWith('save', act)), ends: ok },
  { name: 'store.save, four methods', scene: (act) => working({ ...plainStore(), save: act }), ends: ok },
  {
    name: 'store.save, requireDurable',
    scene: (act) => working(storeWith('save', act), { requireDurable: true }),
    ends: { 'gives what has a throwing toJSON': 'ok', else: 'NOT_DURABLE' },
  },
  { name: 'store.append', scene: (act) => working(storeWith('append', act)), ends: ok },
  {
    name: 'store.append, before a once call, then fail',
    scene: (act) => ({
      // biome-ignore lint/suspicious/noThenProperty: the policy's word
      ...working(storeWith('append', act), { onSaveError: { then: 'fail' } }),
      script: [callTool('send'), reply('done')],
      tools: [send],
    }),
    ends: { 'gives what has a throwing toJSON': 'ok', hangs: 'PORT_TIMEOUT', else: 'STORE_UNAVAILABLE' },
  },
  {
    name: 'store.append, before a once call, then wait',
    scene: (act) => ({
      ...working(storeWith('append', act), {
        clock: turningClock(),
        defaults: { maxRuntimeMs: 80, portMs: 20, finalizeMs: 40 },
      }),
      script: [callTool('send'), reply('done')],
      tools: [send],
    }),
    ends: { 'gives what has a throwing toJSON': 'ok', else: 'DEADLINE_EXCEEDED' },
  },
  {
    name: 'store.load',
    scene: (act) => working(storeWith('load', act)),
    ends: refused,
  },
  {
    name: 'store.commands.inbox',
    scene: (act) => ({
      ...working(storeWith('commands.inbox', act), { defaults: { controlMs: 5, portMs: 20, firstChunkMs: 60 } }),
      script: [hang(), hang(), hang()],
    }),
    ends: { else: 'MODEL_STALLED' },
  },
  {
    name: 'store.commands.acknowledge',
    scene: (act) => {
      const waiting = [{ runId: 'r', command: { id: 'a', kind: 'steer', text: 'hello' } }];
      let looks = 0;
      const inbox = async () => (looks++ < 3 ? waiting : []);
      const store = { ...memoryStore(), commands: { inbox, acknowledge: act, send: async () => {} } };
      return {
        ...working(store as CheckpointStore, { defaults: { controlMs: 5, portMs: 20, firstChunkMs: 60 } }),
        script: [hang(), hang(), hang()],
      };
    },
    ends: { else: 'MODEL_STALLED' },
  },
  {
    name: 'store.commands.send, to a run of another process',
    scene: (act) => {
      const store = memoryStore();
      return {
        ...working({ ...store, commands: { ...store.commands, send: act } }, { defaults: { portMs: 20 } }),
        after: async (executor) => {
          await store.claim('elsewhere', 'another process', 60_000);
          const control = executor.control('elsewhere');
          await Promise.allSettled([control.steer('hello'), control.cancel('enough')]);
        },
      };
    },
    ends: ok,
  },
  { name: 'store.delete', scene: (act) => working(storeWith('delete', act)), ends: ok },
  {
    name: 'store.claim',
    scene: (act) => working(storeWith('claim', act)),
    ends: refused,
  },
  {
    name: 'store.renew',
    scene: (act) => ({
      ...working(storeWith('renew', act), { defaults: { leaseMs: 60, portMs: 20, firstChunkMs: 120, finalizeMs: 40 } }),
      script: [hang(), hang(), hang()],
    }),
    // Only the store's word that somebody else has the run ends it: decision 20.
    ends: { else: 'MODEL_STALLED' },
  },
  {
    name: 'store.release, at a shutdown',
    scene: (act) => ({
      ...working(storeWith('release', act)),
      script: [hang()],
      during: (_, executor) => void executor.shutdown({ drainMs: 200 }),
    }),
    ends: { else: 'ERR_SHUTDOWN' },
  },
  {
    name: 'store.release, of a run that is not recorded',
    scene: (act) => ({
      ...working(memoryStore()),
      options: { ports: { checkpointer: { begin: async () => null, store: storeWith('release', act) } } },
    }),
    ends: ok,
  },
  {
    name: 'store.release, of a refused run',
    scene: (act) => ({ ...working(storeWith('release', act)), tools: ['unknown'] }),
    ends: { else: 'UNKNOWN_TOOL' },
  },
  { name: 'store.outcomes.keep', scene: (act) => working(storeWith('outcomes.keep', act)), ends: ok },
  {
    name: 'store.outcomes.find',
    scene: (act) => working(storeWith('outcomes.find', act)),
    ends: { ...refused, 'gives what has a throwing toJSON': 'CHECKPOINT_CORRUPT' },
  },
  {
    name: 'store.listInterrupted',
    scene: (act) => ({
      ...working(storeWith('listInterrupted', act)),
      after: (executor) => Promise.allSettled([executor.list(), executor.recover()]),
    }),
    ends: ok,
  },
];

/** Of a loaded record the properties may be bad to read as well. */
const loadedPorts: readonly Port[] = [
  {
    name: 'a getter in a loaded record',
    scene: (act) =>
      working({ ...memoryStore(), load: async () => Object.defineProperty({}, 'meta', { get: act }) as never }),
    failures: throwing,
    ends: { else: 'STORE_UNAVAILABLE' },
  },
];

type Bad = 'save' | 'complete' | 'fail';
const handle = (method: Bad | undefined, act: () => never): Checkpointer => {
  const good = { save: async () => {}, complete: async () => {}, fail: async () => {} };
  return method ? { ...good, [method]: act } : Object.defineProperty({ ...good }, 'durable', { get: act });
};
const begun = (checkpointer: Checkpointer): Partial<ExecutorOptions> => ({
  ports: { checkpointer: { begin: async () => checkpointer } },
});
const failing = [() => ({ type: 'fail' as const, error: new Error('model down') })];

const checkpointerPorts: readonly Port[] = [
  {
    name: 'factory.begin',
    scene: (act) => ({ options: { ports: { checkpointer: { begin: act } } } }),
    ends: { 'gives what has a throwing toJSON': ['ok', 'RUN_PANIC'], else: 'ok' },
  },
  {
    name: 'checkpointer.save, from a factory',
    scene: (act) => ({ options: begun(handle('save', act)), script, tools: [look] }),
    ends: ok,
  },
  {
    name: 'checkpointer.save and fail, from a factory',
    scene: (act) => ({
      options: begun({ ...handle('save', () => Promise.reject(new Error('full')) as never), fail: act }),
      script,
      tools: [look],
    }),
    ends: ok,
  },
  {
    name: 'checkpointer.complete, from a factory',
    scene: (act) => ({ options: begun(handle('complete', act)) }),
    ends: ok,
  },
  {
    name: 'checkpointer.fail, from a factory',
    scene: (act) => ({ options: begun(handle('fail', act)), script: failing }),
    ends: { else: 'MODEL' },
  },
  {
    name: 'checkpointer.durable, from a factory',
    scene: (act) => ({ options: begun(handle(undefined, act)) }),
    failures: throwing,
    ends: { else: ['ok', 'RUN_PANIC', 'NOT_DURABLE'] },
  },
  {
    name: 'checkpointer.save, handed over',
    scene: (act) => ({ runOptions: { checkpointer: handle('save', act) }, script, tools: [look] }),
    isStartOnly: true,
    ends: ok,
  },
  {
    name: 'checkpointer.complete, handed over',
    scene: (act) => ({ runOptions: { checkpointer: handle('complete', act) } }),
    isStartOnly: true,
    ends: ok,
  },
  {
    name: 'checkpointer.fail, handed over',
    scene: (act) => ({ runOptions: { checkpointer: handle('fail', act) }, script: failing }),
    isStartOnly: true,
    ends: { else: 'MODEL' },
  },
  {
    name: 'checkpointer.durable, handed over',
    scene: (act) => ({ runOptions: { checkpointer: handle(undefined, act) } }),
    isStartOnly: true,
    failures: throwing,
    ends: { else: ['ok', 'RUN_PANIC', 'NOT_DURABLE'] },
  },
];

export const storagePorts = [...storePorts, ...loadedPorts, ...checkpointerPorts];
