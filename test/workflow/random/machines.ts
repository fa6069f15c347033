import fc from 'fast-check';
import {
  type AnyActorLogic,
  type AnyStateMachine,
  assign,
  cancel,
  emit,
  enqueueActions,
  setup,
  spawnChild,
  stopChild,
} from 'xstate';
import { numberOf } from '../../crash/random.ts';

/** The kinds of calls: a call of one kind fails or succeeds by its input alone. */
export const sources = ['look', 'put', 'pay'] as const;
export type Source = (typeof sources)[number];

const acts = ['raise', 'later', 'dated', 'cancel', 'spawn', 'stop', 'self', 'emit', 'count'] as const;

/** One action of a machine. What the number means depends on the kind. */
interface Act {
  readonly kind: (typeof acts)[number];
  readonly n: number;
}

interface Edge {
  /** The number of its target in the list of all targets; absent = it stays. */
  readonly to: number | undefined;
  readonly guard: 'none' | 'even' | 'third' | 'event';
  readonly reenter: boolean;
  readonly acts: readonly Act[];
}

interface Invoked {
  readonly src: Source;
  readonly isNamed: boolean;
  readonly done: readonly Edge[];
  readonly failed: readonly Edge[];
}

interface State {
  readonly kind: 'atomic' | 'compound' | 'parallel' | 'final';
  readonly entry: readonly Act[];
  readonly exit: readonly Act[];
  readonly on: readonly { readonly type: (typeof eventTypes)[number]; readonly edge: Edge }[];
  readonly always: readonly Edge[];
  readonly after: readonly { readonly ms: number | undefined; readonly edge: Edge }[];
  readonly invoke: readonly Invoked[];
  readonly done: readonly Edge[];
  readonly history: { readonly isDeep: boolean; readonly to: number | undefined } | undefined;
  readonly states: readonly State[];
}

/** Events that come from outside, and that a machine raises. */
export const eventTypes = ['A', 'B', 'C'] as const;
/** Wildcards too: XState gives them what nothing else takes, also ends of calls. */
const takenTypes = [...eventTypes, 'A', 'B', '*', 'xstate.done.actor.*', 'xstate.error.actor.*'] as const;

/** A random machine, as a plan that `machineOf` makes one of. */
export interface MachinePlan {
  readonly root: State;
  /** Whether its calls may answer at once, so that several results are there together; then none of them is `once`. */
  readonly isTogether: boolean;
  /** Whether errors that nothing else takes are taken by the root. */
  readonly isForgiving: boolean;
}

/** Delays and times of calls, ms: so long that what a restart costs is nothing beside them. */
export const SHORTEST_MS = 2_000_000;
const LONGEST_MS = 40_000_000;
const times = fc.integer({ min: SHORTEST_MS, max: LONGEST_MS });

const act = fc.record<Act>({ kind: fc.constantFrom(...acts), n: fc.nat(11) });
const actions = fc.array(act, { maxLength: 2 });
const edge = fc.record<Edge>({
  to: fc.option(fc.nat(30), { nil: undefined, freq: 4 }),
  guard: fc.constantFrom('none', 'none', 'none', 'even', 'third', 'event'),
  reenter: fc.boolean(),
  acts: fc.array(act, { maxLength: 1 }),
});
const edges = fc.array(edge, { maxLength: 2 });
const invoked = fc.record<Invoked>({
  src: fc.constantFrom(...sources),
  isNamed: fc.boolean(),
  done: fc.array(edge, { minLength: 1, maxLength: 2 }),
  failed: edges,
});

const { root } = fc.letrec<{ root: State; state: State }>((tie) => {
  const stateOf = (kind: fc.Arbitrary<State['kind']>, below: fc.Arbitrary<readonly State[]>) =>
    fc.record<State>({
      kind,
      entry: actions,
      exit: fc.array(act, { maxLength: 1 }),
      on: fc.array(fc.record({ type: fc.constantFrom(...takenTypes), edge }), { maxLength: 3 }) as fc.Arbitrary<
        State['on']
      >,
      always: fc.oneof({ weight: 3, arbitrary: fc.constant([]) }, { weight: 1, arbitrary: edges }),
      after: fc.array(fc.record({ ms: fc.option(times, { nil: undefined, freq: 6 }), edge }), { maxLength: 1 }),
      invoke: fc.oneof(
        { weight: 1, arbitrary: fc.constant([]) },
        { weight: 2, arbitrary: fc.array(invoked, { minLength: 1, maxLength: 2 }) },
      ),
      done: edges,
      history: fc.option(fc.record({ isDeep: fc.boolean(), to: fc.option(fc.nat(30), { nil: undefined }) }), {
        nil: undefined,
        freq: 2,
      }),
      states: below,
    });
  const below = fc.array(tie('state'), { minLength: 2, maxLength: 3 });
  return {
    root: stateOf(fc.constantFrom('compound', 'parallel'), fc.array(tie('state'), { minLength: 2, maxLength: 4 })),
    state: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      { weight: 4, arbitrary: stateOf(fc.constantFrom('atomic', 'atomic', 'atomic', 'final'), fc.constant([])) },
      { weight: 2, arbitrary: stateOf(fc.constantFrom('compound', 'parallel'), below) },
    ),
  };
});

/** Random machines: nested, parallel, with histories, final states, timers, loops, calls, spawned and stopped ones. */
export const machinePlans: fc.Arbitrary<MachinePlan> = fc.record({
  root,
  isTogether: fc.boolean(),
  isForgiving: fc.constantFrom(true, true, true, true, false),
});

/** What the machine keeps: what happened, in its order, is one number. */
export interface Context {
  readonly trail: number;
  readonly steps: number;
  /** So many steps it may make by itself: it ends loops. */
  readonly room: number;
  readonly count: number;
}

/** So many steps a machine makes by itself, until it takes what comes from outside. */
const ROOM = 16;

type Facts = {
  readonly context: Context;
  readonly event: {
    readonly type: string;
    readonly output?: unknown;
    readonly error?: unknown;
    readonly outside?: number;
  };
};

const isEven = ({ context }: Facts) => context.trail % 2 === 0;
const isThird = ({ context }: Facts) => context.trail % 3 === 0;
const isOdd = ({ event }: Facts) => Number(event.output ?? 1) % 2 === 1;
const hasRoom = ({ context }: Facts) => context.steps < context.room;
const isSent = ({ event }: Facts) => (eventTypes as readonly string[]).includes(event.type);

function noted({ context, event }: Facts, place: string): Context {
  const { type, output = null, error } = event;
  const code = (error as { readonly code?: string } | undefined)?.code ?? null;
  const what = JSON.stringify([context.trail, place, type, output, code]);
  return { ...context, trail: Math.floor(numberOf(what) * 1_000_000), steps: context.steps + 1 };
}

/** What a call is asked: it has a place and a moment, so that no two are equal. */
export interface Asked {
  readonly place: string;
  readonly step: number;
  readonly trail: number;
}

const askedAt =
  (place: string) =>
  ({ context: { steps: step, trail } }: Facts): Asked => ({ place, step, trail });

/** Makes the machine of a plan. Built twice with equal actors it is the same machine. */
export function machineOf(plan: MachinePlan, actors: { readonly [name in Source]: AnyActorLogic }): AnyStateMachine {
  return new Builder(plan).build(actors);
}

class Builder {
  readonly #plan: MachinePlan;
  readonly #targets: string[] = [];
  #numbered = 0;

  constructor(plan: MachinePlan) {
    this.#plan = plan;
    this.#name(plan.root, true);
  }

  build(actors: { readonly [name in Source]: AnyActorLogic }): AnyStateMachine {
    this.#numbered = 0;
    const config = this.#stateOf(this.#plan.root, { isRoot: true, isFirst: true });
    const parts = setup({
      types: { context: {} as Context },
      actors,
      delays: { computed: ({ context }: { context: Context }) => SHORTEST_MS + context.trail * 20 },
    } as never);
    return parts.createMachine({
      ...config,
      context: { trail: 1, steps: 0, room: ROOM, count: 0 },
      output: ({ context }: Facts) => context,
    } as never) as unknown as AnyStateMachine;
  }

  /** The targets are known before the first edge is made. */
  #name(state: State, isRoot = false): void {
    const id = this.#numbered++;
    if (!isRoot) this.#targets.push(`#s${id}`);
    if (state.history && state.states.length > 0) this.#targets.push(`#h${id}`);
    for (const each of state.states) this.#name(each);
  }

  #stateOf(state: State, { isRoot = false, isFirst = false } = {}): object {
    const n = this.#numbered++;
    const id = `s${n}`;
    const note = (what: string) => assign(({ context, event }) => noted({ context, event } as Facts, `${what} ${id}`));
    const entry = [note('in'), ...state.entry.flatMap((each, i) => this.#act(each, `${id}i${i}`))];
    if (state.kind === 'final' && !isFirst) return { id, type: 'final', entry };
    const own = {
      id,
      entry,
      exit: [note('out'), ...state.exit.flatMap((each, i) => this.#act(each, `${id}o${i}`))],
      on: this.#on(state, { id, isForgiving: isRoot && this.#plan.isForgiving }),
      always: isRoot ? [] : state.always.map((each, i) => this.#edge(each, `${id}always${i}`)),
      after: Object.fromEntries(
        state.after.map(({ ms, edge }, i) => [ms ?? 'computed', this.#edge(edge, `${id}after${i}`)]),
      ),
      invoke: state.invoke.map((each, i) => this.#invoked(each, `${id}call${i}`)),
    };
    if (state.states.length === 0) return own;
    const first = `s${this.#numbered}`;
    const states = Object.fromEntries(
      state.states.map((each, i) => [`s${this.#numbered}`, this.#stateOf(each, { isFirst: isRoot && i === 0 })]),
    );
    return {
      ...own,
      ...(state.kind === 'parallel' ? { type: 'parallel' } : { initial: first }),
      ...(isRoot ? {} : { onDone: state.done.map((each, i) => this.#edge(each, `${id}done${i}`)) }),
      states: { ...states, ...(state.history ? this.#history(state.history, { n, keys: Object.keys(states) }) : {}) },
    };
  }

  #on({ on }: State, { id, isForgiving }: { id: string; isForgiving: boolean }): object {
    const errors = 'xstate.error.actor.*';
    const types = new Set<string>([...on.map(({ type }) => type), ...(isForgiving ? [errors] : [])]);
    const edgesOf = (type: string) =>
      on.flatMap(({ type: of, edge }, i) => (of === type ? [this.#edge(edge, `${id}${type}${i}`, true)] : []));
    return Object.fromEntries(
      [...types].map((type) => [type, [...edgesOf(type), ...(isForgiving && type === errors ? [{}] : [])]]),
    );
  }

  /** A history has its default in its own parent. */
  #history({ isDeep, to }: NonNullable<State['history']>, { n, keys }: { n: number; keys: readonly string[] }): object {
    const target = to === undefined ? {} : { target: keys[to % keys.length] };
    return { [`h${n}`]: { id: `h${n}`, type: 'history', history: isDeep ? 'deep' : 'shallow', ...target } };
  }

  /** @param isOn whether it takes events by their type: those that may come from outside need no room */
  #edge({ to, guard, reenter, acts }: Edge, place: string, isOn = false): object {
    const checks = { none: () => true, even: isEven, third: isThird, event: isOdd };
    return {
      guard: (facts: Facts) => ((isOn && isSent(facts)) || hasRoom(facts)) && checks[guard](facts),
      ...(to === undefined ? {} : { target: this.#targets[to % this.#targets.length] }),
      reenter,
      actions: [
        assign(({ context, event }) => {
          const next = noted({ context, event } as Facts, place);
          return isOn && (event as Facts['event']).outside !== undefined ? { ...next, room: next.steps + ROOM } : next;
        }),
        ...acts.flatMap((each, i) => this.#act(each, `${place}x${i}`)),
      ],
    };
  }

  #invoked({ src, isNamed, done, failed }: Invoked, place: string): object {
    return {
      src: this.#sourceOf(src),
      ...(isNamed ? { id: place } : {}),
      input: askedAt(place),
      onDone: done.map((each, i) => this.#edge(each, `${place}d${i}`)),
      ...(failed.length === 0 ? {} : { onError: [...failed.map((each, i) => this.#edge(each, `${place}e${i}`)), {}] }),
    };
  }

  #sourceOf(src: Source): Source {
    return this.#plan.isTogether && src === 'pay' ? 'put' : src;
  }

  #act({ kind, n }: Act, place: string): unknown {
    // Mostly what is under the same id is ended before: XState leaves it running, out of reach.
    const isTidy = n > 1;
    const event = { type: eventTypes[n % 3], n };
    const actor = `p${n % 3}`;
    const limited = (enter: (enqueue: { raise: (event: unknown, options?: object) => void }) => void) =>
      enqueueActions(({ context, enqueue }) => {
        if (!hasRoom({ context, event } as unknown as Facts)) return;
        enqueue.assign(({ context: now }: { context: Context }) => ({ steps: now.steps + 1 }) as never);
        enter(enqueue as never);
      });
    const src = this.#sourceOf(sources[n % sources.length] as Source);
    const again = { id: actor, input: askedAt(place) };
    switch (kind) {
      case 'raise':
        return limited((enqueue) => enqueue.raise(event));
      case 'later':
        return [
          ...(isTidy ? [cancel(place)] : []),
          limited((enqueue) => enqueue.raise(event, { delay: SHORTEST_MS * (1 + n) + 77_777 * n, id: place })),
        ];
      case 'dated':
        return [
          ...(isTidy ? [cancel(`t${n % 3}`)] : []),
          limited((enqueue) => enqueue.raise(event, { delay: 'computed', id: `t${n % 3}` })),
        ];
      case 'cancel':
        return cancel(`t${n % 3}`);
      case 'spawn':
        return [...(isTidy ? [stopChild(actor)] : []), spawnChild(src as never, again as never)];
      case 'stop':
        return stopChild(actor);
      case 'self':
        return enqueueActions(({ context, enqueue, self }) => {
          if (hasRoom({ context, event } as unknown as Facts)) enqueue.sendTo(self, event as never);
        });
      case 'emit':
        return emit({ type: 'said', place } as never);
      default:
        return assign(({ context }) => ({ count: (context as Context).count + n }) as never);
    }
  }
}
/** What a call answers, and after which time: by what it is asked, so that every world has the same answer. */
export function answerTo(
  src: Source,
  asked: Asked,
  isTogether: boolean,
): { readonly ms: number; readonly output?: number; readonly code?: string } {
  const draw = (what: string) => numberOf(JSON.stringify([src, asked, what]));
  const ms =
    isTogether && draw('at once') < 0.6 ? 0 : SHORTEST_MS + Math.floor(draw('ms') * (LONGEST_MS - SHORTEST_MS));
  return draw('fails') < 0.25 ? { ms, code: 'BAD_LUCK' } : { ms, output: Math.floor(draw('output') * 1_000) };
}
