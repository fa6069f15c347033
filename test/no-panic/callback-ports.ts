import { type Clock, memoryStore, type Run, type RunOptions } from 'pawl';
import { callTool, hang, reply } from 'pawl/testing';
import { toolOf } from '../fixtures/host.ts';
import { type Failure, unreadable, withoutJson } from './failures.ts';
import { type Port, type Scene, throwing } from './scene.ts';

const script = [callTool('look'), reply('done')];
const durable = (): Scene => ({ options: { store: memoryStore() }, script, tools: [toolOf('look')] });
const withOptions = (options: NonNullable<Scene['options']>): Scene => ({
  ...durable(),
  options: { store: memoryStore(), ...options },
});
const withRunOptions = (runOptions: RunOptions): Scene => ({ ...durable(), runOptions });
const watched = (during: NonNullable<Scene['during']>): Scene => ({ ...durable(), during });

const realClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  setTimeout: (callback, ms) => setTimeout(callback, ms),
  clearTimeout: (timer) => clearTimeout(timer as NodeJS.Timeout),
};
const failingStore = () => ({ ...memoryStore(), append: () => Promise.reject(new Error('no')) });
const ok = { else: 'ok' } as const;

const callbacks: readonly Port[] = [
  { name: 'onOutcome', scene: (act) => withOptions({ onOutcome: act }), ends: ok },
  { name: 'onStep of the executor', scene: (act) => withOptions({ onStep: act }), ends: ok },
  { name: 'onStep of a run', scene: (act) => withRunOptions({ onStep: act }), isStartOnly: true, ends: ok },
  { name: 'inspect of the executor', scene: (act) => withOptions({ inspect: act }), ends: ok },
  { name: 'inspect of a run', scene: (act) => withRunOptions({ inspect: act }), isStartOnly: true, ends: ok },
  {
    name: 'logger.warn',
    scene: (act) => withOptions({ logger: { warn: act }, store: failingStore() }),
    ends: ok,
  },
  {
    name: 'ids',
    scene: (act) => ({ ...withOptions({ ids: act }), invocation: { runId: undefined as never } }),
    ends: ok,
  },
  { name: 'clock.now', scene: (act) => withOptions({ clock: { ...realClock, now: act } }), ends: ok },
  {
    name: 'clock.monotonic',
    scene: (act) => withOptions({ clock: { ...realClock, monotonic: act } }),
    ends: { else: ['ok', 'RUN_PANIC', 'MODEL'] },
  },
  {
    name: 'clock.setTimeout',
    scene: (act) => withOptions({ clock: { ...realClock, setTimeout: act } }),
    ends: { else: ['ok', 'RUN_PANIC', 'MODEL'] },
  },
  {
    name: 'clock.clearTimeout',
    scene: (act) => withOptions({ clock: { ...realClock, clearTimeout: act, setTimeout: () => 0 } }),
    ends: { else: ['ok', 'RUN_PANIC', 'MODEL'] },
  },
  {
    name: "a getter in the invocation's inputs",
    scene: (act) => ({
      ...durable(),
      invocation: { inputs: Object.defineProperty({}, 'a', { enumerable: true, get: act }) },
    }),
    failures: throwing,
    ends: { else: 'RUN_PANIC' },
  },
  {
    name: 'a getter in the invocation',
    scene: (act) => ({
      ...durable(),
      invocation: Object.defineProperty({}, 'callerId', { enumerable: true, get: act }),
    }),
    failures: throwing,
    isStartOnly: true,
    ends: { else: 'RUN_PANIC' },
  },
];

const observers: readonly Port[] = [
  { name: 'actor.subscribe function', scene: (act) => watched(({ actor }) => void actor.subscribe(act)), ends: ok },
  {
    name: 'actor.subscribe next',
    scene: (act) => watched(({ actor }) => void actor.subscribe({ next: act })),
    ends: ok,
  },
  {
    name: 'actor.subscribe complete',
    scene: (act) => watched(({ actor }) => void actor.subscribe({ complete: act })),
    ends: ok,
  },
  {
    name: 'actor.subscribe error and complete, as functions',
    scene: (act) => watched(({ actor }) => void actor.subscribe(act, act, act)),
    ends: ok,
  },
  {
    name: 'actor.subscribe complete, after the end',
    scene: (act) => watched(({ actor, result }) => void result.then(() => actor.subscribe({ complete: act }))),
    ends: ok,
  },
  { name: 'actor.on step.done', scene: (act) => watched(({ actor }) => void actor.on('step.done', act)), ends: ok },
  { name: 'actor.on *', scene: (act) => watched(({ actor }) => void actor.on('*', act)), ends: ok },
  { name: 'executor.runs subscriber', scene: (act) => watched((_, { runs }) => void runs.subscribe(act)), ends: ok },
  {
    name: 'executor.run$ subscriber',
    scene: (act) => watched(({ runId }, executor) => void executor.run$(runId)?.subscribe(act)),
    ends: ok,
  },
];

async function consume({ events }: Run, act: () => unknown): Promise<void> {
  try {
    for await (const _ of events()) await act();
  } catch {
    // What a consumer throws in its own loop is its own to catch; the run must not notice.
  }
}

/** A signal that is not one of the platform's: each of its methods may be a host's own. */
const strange = (part: 'aborted' | 'addEventListener' | 'removeEventListener' | 'reason', act: () => never) => {
  const { signal } = new AbortController();
  const own = {
    aborted: part === 'reason',
    addEventListener: () => {},
    removeEventListener: () => {},
    reason: signal.reason,
  };
  const isMethod = part.endsWith('Listener');
  return Object.defineProperty({ ...own }, part, isMethod ? { value: act } : { get: act }) as never as AbortSignal;
};

function reasonOf(failure: Failure): unknown {
  const reasons: Partial<Record<Failure, unknown>> = {
    'throws null': null,
    'throws what cannot be read': unreadable(),
    'throws what has a throwing toJSON': withoutJson(),
  };
  return failure in reasons ? reasons[failure] : Promise.reject.bind(Promise);
}

const consumers: readonly Port[] = [
  { name: 'a consumer of events', scene: (act) => watched((run) => void consume(run, act)), ends: ok },
  {
    name: 'what is given to steer',
    scene: (_, failure) => {
      const given = failure === 'gives what cannot be read' ? unreadable() : withoutJson();
      return watched(({ steer }) => void steer(given as never).catch(() => {}));
    },
    failures: ['gives what cannot be read', 'gives what has a throwing toJSON'],
    ends: ok,
  },
  {
    name: 'a consumer that reads nothing',
    scene: () => watched((run) => void run.events()),
    failures: ['hangs'],
    ends: ok,
  },
  {
    name: "the reason of the caller's signal",
    scene: (_, failure) => {
      const caller = new AbortController();
      return {
        ...durable(),
        script: [hang()],
        runOptions: { signal: caller.signal },
        during: () => caller.abort(reasonOf(failure)),
      };
    },
    failures: throwing,
    isStartOnly: true,
    ends: { else: 'CANCELLED' },
  },
  ...(['aborted', 'addEventListener', 'removeEventListener', 'reason'] as const).map(
    (part): Port => ({
      name: `signal.${part}`,
      scene: (act) => withRunOptions({ signal: strange(part, act) }),
      isStartOnly: true,
      ...(part === 'addEventListener' || part === 'removeEventListener' ? {} : { failures: throwing }),
      ends: { else: ['ok', 'CANCELLED'] },
    }),
  ),
];

export const callbackPorts = [...callbacks, ...observers, ...consumers];
