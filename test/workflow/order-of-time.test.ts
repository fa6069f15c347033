import { ask, defineWorkflow, waitForSignal } from 'pawl';
import { describe, expect, test } from 'vitest';
import { assign, setup } from 'xstate';
import { worldOf } from './world.ts';

/** A region that ends after so many seconds. */
function timing(seconds: number) {
  // biome-ignore lint/suspicious/noExplicitAny: the types of an action are those of its machine
  const done = { target: 'over', actions: assign(note(() => `timer ${seconds}`)) as any };
  return {
    initial: 'open',
    states: { open: { after: { [seconds * 1_000]: done } }, over: { type: 'final' as const } },
  };
}

/** Whether a person may answer is looked up elsewhere, which takes a while. */
let lookUp = Promise.resolve(true as const);

/** Waits for any event or answer, notes it, and ends after three things. */
const noting = defineWorkflow({
  id: 'noting',
  machine: setup({
    types: { context: {} as { came: string[] }, output: {} as string[], events: {} as { type: 'poke'; name: string } },
    actors: { person: ask({ question: 'Go on?', approvers: () => lookUp }), paid: waitForSignal('paid') },
  }).createMachine({
    context: { came: [] },
    type: 'parallel',
    states: {
      asking: {
        initial: 'open',
        states: {
          open: {
            invoke: {
              src: 'person',
              onDone: { target: 'over', actions: assign(note(({ event }) => `answer ${event.output}`)) },
            },
          },
          over: { type: 'final' },
        },
      },
      paying: {
        initial: 'open',
        states: {
          open: {
            invoke: {
              src: 'paid',
              onDone: { target: 'over', actions: assign(note(({ event }) => `signal ${event.output}`)) },
            },
          },
          over: { type: 'final' },
        },
      },
      early: timing(10),
      late: timing(20),
      end: timing(50),
    },
    on: { poke: { actions: assign(note(({ event }) => `event ${event.name}`)) } },
    output: ({ context }) => context.came,
  }),
});

// biome-ignore lint/suspicious/noExplicitAny: each transition has events of its own
function note(what: (at: any) => string) {
  // biome-ignore lint/suspicious/noExplicitAny: as above
  return { came: (at: any) => [...at.context.came, what(at)] };
}

type Sender = ReturnType<ReturnType<typeof worldOf>['boot']>;
type Deeds = { readonly [second: number]: (sender: Sender) => Promise<unknown> };

/** A run that rests without a process, and what senders do meanwhile, by the second at which they do it. */
async function away(deeds: Deeds, meanwhile = () => {}) {
  const { boot, clock, pass, store } = worldOf([noting]);
  const first = boot();
  await first.start(noting, { runId: 'r', input: undefined });
  await pass(2_000);
  await first.shutdown();
  // It knows no workflow: it can only send.
  const sender = boot(defineWorkflow({ id: 'other', machine: setup({}).createMachine({}) }));
  for (let second = 3; second <= 40; second++) {
    await clock.advance(1_000);
    await deeds[second]?.(sender);
  }
  await sender.shutdown();
  const last = boot();
  await last.recover();
  await pass(2_000);
  meanwhile();
  await pass(60_000, 12);
  const outcome = await store.outcomes.find('r');
  await last.shutdown();
  return outcome?.status === 'ok' ? (outcome.data as readonly string[]) : outcome;
}

const answer = (value: string) => async (sender: Sender) => {
  const [wait] = await sender.waiting({ kind: 'question' });
  await sender.control('r').answer(wait?.id ?? '', value, { by: { id: 'ada' } });
};
const signal = (value: string) => (sender: Sender) => sender.signal('paid', value, { id: value });
const poke = (name: string) => (sender: Sender) => sender.control('r').send({ type: 'poke', name });

const senders = { answer, signal, poke };

describe('what came while no process had the workflow', () => {
  const seconds = [5, 15, 25] as const;
  const orders = [
    [0, 1, 2],
    [0, 2, 1],
    [1, 0, 2],
    [1, 2, 0],
    [2, 0, 1],
    [2, 1, 0],
  ] as const;
  const cases = orders.map((places) => ({
    answer: seconds[places[0]],
    signal: seconds[places[1]],
    poke: seconds[places[2]],
  }));

  test.each(cases)(
    'is taken by its time, with two timers between: answer $answer s, signal $signal s, event $poke s (workflow 2)',
    async (at) => {
      const deeds = Object.entries(at).map(
        ([what, second]) => [second, senders[what as keyof typeof senders](`${second}`)] as const,
      );
      const names = { answer: 'answer', signal: 'signal', poke: 'event' };
      const sent = Object.entries(at).map(
        ([what, second]) => [second, `${names[what as keyof typeof names]} ${second}`] as const,
      );
      const all = [...sent, [10, 'timer 10'] as const, [20, 'timer 20'] as const, [50, 'timer 50'] as const].toSorted(
        ([one], [other]) => one - other,
      );
      expect(await away(Object.fromEntries(deeds))).toEqual(all.map(([, name]) => name));
    },
  );

  test('an answer comes before an event that was sent after it, and after one that was sent before it (workflow 2)', async () => {
    const all = { 5: answer('5'), 6: poke('6'), 11: poke('11'), 12: signal('12'), 13: poke('13') };
    expect(await away(all)).toEqual([
      'answer 5',
      'event 6',
      'timer 10',
      'event 11',
      'signal 12',
      'event 13',
      'timer 20',
      'timer 50',
    ]);
  });

  test('an answer comes before a timer that was due later, and before later events, although its check takes longer (workflow 2)', async () => {
    const check = Promise.withResolvers<true>();
    lookUp = check.promise;
    const came = await away({ 5: answer('5'), 6: poke('6'), 15: signal('15') }, () => check.resolve(true));
    expect(came).toEqual(['answer 5', 'event 6', 'timer 10', 'signal 15', 'timer 20', 'timer 50']);
  });
});
