import { fromPromise, initialTransition, transition } from 'xstate';
import { type FanOutEmitted, type FanOutEvent, fanOutMachine } from '../../machines/fan-out.ts';
import type { RunOutput } from '../../src/run/result.ts';
import type { ErrorData } from '../../src/values/error-data.ts';

export const cause: ErrorData = { name: 'ShutdownError', code: 'ERR_SHUTDOWN', message: 'the fan-out leaves off' };
export const late: ErrorData = { ...cause, message: 'the model is out of time' };
export const outputOf = (status: RunOutput['status']) => ({ status, output: `ended ${status}` }) as RunOutput;

interface Sent {
  readonly to: string;
  readonly type: string;
}

const machines = new Map<number, ReturnType<typeof fanOutMachine>>();

/** With runs that never answer by themselves. Made once for each number of models: that takes longer than a story. */
function machineOf(count: number): ReturnType<typeof fanOutMachine> {
  const known = machines.get(count);
  if (known) return known;
  const places = Array.from({ length: count }, (_, place) => place);
  const runs = places.map((place) => [`model(${place})`, fromPromise(() => new Promise<never>(() => {}))]);
  const machine = fanOutMachine(places.map((place) => ({ id: `m${place}` }))).provide({
    actors: Object.fromEntries(runs),
  });
  machines.set(count, machine);
  return machine;
}

/** The machine, walked by hand: what its actors answer is given by the test. @param answered places that are not asked again */
export function walk({ count = 3, hasJudge = false, answered = [] as readonly number[] } = {}) {
  const places = Array.from({ length: count }, (_, place) => place);
  const machine = machineOf(count);
  let [snapshot] = initialTransition(machine, { hasJudge });
  const emitted: FanOutEmitted[] = [];
  const sent: Sent[] = [];
  const send = (event: FanOutEvent | { readonly type: string; readonly output?: unknown }) => {
    const [next, actions] = transition(machine, snapshot, event as FanOutEvent);
    snapshot = next;
    for (const { type, params } of actions as unknown as readonly { type: string; params: never }[]) {
      if (type === 'xstate.emit') emitted.push((params as { event: FanOutEmitted }).event);
      if (type !== 'xstate.sendTo') continue;
      const { to, event } = params as { to: string | { id: string }; event: { type: string } };
      sent.push({ to: typeof to === 'string' ? to : to.id, type: event.type });
    }
  };
  const done = (id: string, output?: unknown) =>
    send({ type: `xstate.done.actor.${id}`, actorId: id, output } as never);
  const invocations = places.map((place) =>
    answered.includes(place) ? null : { runId: `r${place}`, prompt: 'Which?' },
  );
  return {
    emitted,
    sent,
    send,
    done,
    opened: () => done('open', { invocations }),
    ends: (place: number, status: RunOutput['status'] = 'ok') => done(`model(${place})`, outputOf(status)),
    leave: () => send({ type: 'fan-out.leave', cause }),
    overdue: (place: number) => send({ type: 'model.overdue', place, cause: late }),
    get state() {
      return typeof snapshot.value === 'string' ? snapshot.value : (Object.keys(snapshot.value)[0] ?? '');
    },
    region: (place: number): unknown => {
      const regions = (snapshot.value as { asking?: Record<string, unknown> }).asking;
      return regions?.[`model(${place})`];
    },
    get context() {
      return snapshot.context;
    },
    get children() {
      return Object.entries(snapshot.children).flatMap(([id, child]) => (child ? [id] : []));
    },
    of: (type: FanOutEmitted['type']) => emitted.filter((event) => event.type === type).map(({ place }) => place),
  };
}
