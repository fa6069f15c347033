import {
  type AnyActor,
  type AnyActorLogic,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  createActor,
  createMachine,
  type Snapshot,
} from 'xstate';
import type { MachineAction } from '../run/workflow/advanced.ts';
import { toErrorData } from '../values/error-data.ts';
import { WorkflowError } from '../values/errors.ts';
import type { JsonObject, JsonValue } from '../values/json.ts';
import { completionOf } from './completion.ts';
import { checkDelaysWithin } from './delays.ts';
import { transitionIds } from './outline.ts';

/** A call that a transition begins. */
export interface BegunActor {
  readonly id: string;
  readonly src: string;
  readonly input: unknown;
}

/** A timer that a transition sets. */
export interface SetTimer {
  /** Under it the machine cancels the timer, or sets it again; absent = it cannot. */
  readonly sendId?: string;
  readonly event: JsonObject;
  /** A finite number of ms, 0 or more. */
  readonly delayMs: number;
}

/** An event for another actor. */
export interface SentMessage {
  readonly to: 'parent' | { readonly actorId: string };
  readonly event: JsonObject;
  /** It is sent later; absent = with the transition. */
  readonly timer?: SetTimer;
}

/** One thing that a transition asks for, in the order of the machine. */
export type Effect =
  | { readonly kind: 'begin'; readonly actor: BegunActor }
  | { readonly kind: 'stop'; readonly id: string }
  | { readonly kind: 'timer'; readonly timer: SetTimer }
  | { readonly kind: 'cancel'; readonly sendId: string }
  | { readonly kind: 'send'; readonly event: JsonObject }
  | { readonly kind: 'message'; readonly message: SentMessage }
  | { readonly kind: 'emit'; readonly event: JsonValue }
  | { readonly kind: 'act'; readonly act: MachineAction };

/** The result of a transition: a snapshot as JSON, and what it asks for. It has started nothing. */
export interface Transition {
  readonly snapshot: JsonObject;
  readonly effects: readonly Effect[];
  /** Whether a state took the event. */
  readonly isTaken: boolean;
  /** The transitions that were taken, by the ids of the machine's outline: the first ones. */
  readonly took: readonly string[];
  /** Why the machine failed: it threw, or an error came that no state takes. */
  readonly failure?: unknown;
}

/** XState's own form of the actions that a transition gives. */
interface GivenAction {
  readonly type: string;
  readonly info: unknown;
  readonly params?: unknown;
  readonly exec?: ((info: unknown, params: unknown) => void) | undefined;
}

/** An actor that does nothing: what the machine calls is begun elsewhere, once the transition is stored. */
const inert: AnyActorLogic = {
  getInitialSnapshot: () => ({ status: 'active', output: undefined, error: undefined }),
  transition: (snapshot: Snapshot<unknown>) => snapshot,
  getPersistedSnapshot: (snapshot: Snapshot<unknown>) => snapshot,
  restoreSnapshot: (snapshot: Snapshot<unknown>) => snapshot,
} as unknown as AnyActorLogic;

const parent = createActor(inert);

type StateNode = AnyStateMachine['root'];
type Scope = Parameters<AnyStateMachine['transition']>[2];

/**
 * A machine as a pure function: from a snapshot and an event to the next snapshot and what it asks for. Nothing of XState's own
 * runs: no actor, no timer. XState's `transition()` is not used, because it runs the initial transition again on each call,
 * without input.
 */
export class Kernel {
  readonly #machine: AnyStateMachine;
  readonly #actors = new Map<string, AnyActor>();

  /** @param sources the names of the actors that the machine may begin */
  constructor(machine: AnyStateMachine, sources: readonly string[]) {
    const { config, implementations } = machine;
    const { context, options } = config;
    // One object would be the context of all runs; `provide` would lose the limit of microsteps.
    const own = context === undefined ? {} : { context: (given: FirstContext) => contextOf(context, given) };
    const bounded = { ...config, ...own, options: { ...options, maxIterations: MAX_MICROSTEPS } };
    const actors = Object.fromEntries(sources.map((src) => [src, inert]));
    this.#machine = createMachine(bounded as never, { ...implementations, actors } as never);
    checkDelaysWithin(this.#machine);
  }

  /** Begins the machine. @throws what the machine threw */
  begin(input: unknown): Transition {
    return this.#run([], (scope) => this.#machine.getInitialSnapshot(scope, input));
  }

  /** Restores a snapshot for a reader: nothing of the machine runs. @throws if the machine has not its states */
  restore(snapshot: JsonObject): AnyMachineSnapshot {
    return this.#machine.restoreSnapshot(structuredClone(snapshot) as never, scopeOf(createActor(inert), nothing));
  }

  /** Takes one event. @param snapshot of an earlier transition, through JSON @throws what the machine threw */
  take(snapshot: JsonObject, event: JsonObject): Transition {
    const children = Object.keys((snapshot.children ?? {}) as JsonObject);
    return this.#run(children, (scope, self) =>
      this.#machine.transition(this.#restored(snapshot, scope, self), event as never, scope),
    );
  }

  /**
   * Brings a snapshot to rest into which its migration has led, and no transition: final states end what is around them, and eventless
   * transitions are taken.
   * @throws what the machine threw
   */
  settle(snapshot: JsonObject): Transition {
    const children = Object.keys((snapshot.children ?? {}) as JsonObject);
    return this.#run(children, (scope, self) => {
      let now = this.#restored(snapshot, scope, self);
      const { events, ended } = completionOf(now, self);
      if (ended) return this.#machine.resolveState({ ...now, output: ended.output } as never);
      for (const event of [{ type: 'xstate.init' }, ...events]) {
        if (now.status !== 'active') break;
        now = this.#machine.transition(now, event as never, scope);
        (self as { _snapshot: unknown })._snapshot = now;
      }
      return now;
    });
  }

  /** A fresh parse each time: a machine that changes its context in place changes nothing but this transition. */
  #restored(snapshot: JsonObject, scope: Scope, self: object): AnyMachineSnapshot {
    const { children = {}, ...rest } = snapshot;
    const parsed = JSON.parse(JSON.stringify(rest)) as JsonObject;
    const now = this.#machine.restoreSnapshot({ ...parsed, children: {} } as never, scope);
    (now as { children: unknown }).children = this.#actorsOf(children as SlimChildren);
    // Of parallel states XState restores the outer ones first. It takes eventless transitions in this order: here it is that of the document.
    (now as unknown as { readonly _nodes: StateNode[] })._nodes.sort((one, other) => one.order - other.order);
    (self as { _snapshot: unknown })._snapshot = now;
    return now;
  }

  /**
   * The actors of a snapshot. They are asked for their names alone. XState makes new ones for each transition: of a machine with
   * many of them, that would be most of its work.
   */
  #actorsOf(children: SlimChildren): { readonly [id: string]: AnyActor } {
    if (this.#actors.size > MAX_KEPT_ACTORS) this.#actors.clear();
    const actors: { [id: string]: AnyActor } = {};
    for (const id of Object.keys(children)) {
      const src = children[id]?.src as string;
      const known = this.#actors.get(id);
      const actor = known?.src === src ? known : createActor(inert, { id, src, parent } as never);
      if (actor !== known) this.#actors.set(id, actor);
      actors[id] = actor;
    }
    return actors;
  }

  /** Runs one step, and collects what it asks for. @param children the ids of the actors that there were before */
  #run(children: readonly string[], next: (scope: Scope, self: object) => Snapshot<unknown>): Transition {
    const given: GivenAction[] = [];
    const self = createActor(inert);
    self.send = refuseSend;
    // A machine may be begun by another one, and by a host: whether there is a parent is not its matter.
    self._parent = parent;
    const taken: unknown[] = [];
    const { system } = self as unknown as { system: Inspected };
    system._sendInspectionEvent = ({ _transitions = [] }) => {
      if (taken.length < MAX_TOOK) taken.push(..._transitions);
    };
    const scope = scopeOf(self, (action) => void given.push(action));
    const snapshot = next(scope, self);
    // This names what may not begin: XState only says that it cannot be persisted.
    const effects = given.flatMap((action) => effectsOf(action, self));
    const { children: actors } = snapshot as unknown as { readonly children: { readonly [id: string]: AnyActor } };
    const persisted = this.#machine.getPersistedSnapshot({ ...snapshot, children: {} } as never);
    refuseSpawned(Object.keys(actors), children, effects);
    return {
      snapshot: slim(persisted, actors),
      effects,
      isTaken: taken.length > 0,
      took: transitionIds(this.#machine, taken.slice(0, MAX_TOOK)),
      ...(snapshot.status === 'error' ? { failure: snapshot.error } : {}),
    };
  }
}

/** A machine as a pure function. */
export type MachineKernel = Pick<Kernel, 'begin' | 'restore' | 'settle' | 'take'>;

/** A machine whose eventless transitions never end is stopped here. */
const MAX_MICROSTEPS = 5_000;
/** Most transitions of one event that it names. */
const MAX_TOOK = 32;

const nothing = () => {};

/** What XState gives to the function of a context. */
interface FirstContext {
  readonly input: unknown;
}

/** No state is the place of an error of the context. @throws {WORKFLOW_ERROR} */
function contextOf(context: unknown, given: FirstContext): unknown {
  if (typeof context !== 'function') return structuredClone(context);
  try {
    return context(given);
  } catch (cause) {
    const without = given.input === undefined ? '; it was started without input' : '';
    throw new WorkflowError(`the workflow failed in its context: ${toErrorData(cause).message}${without}`, { cause });
  }
}

function scopeOf(self: AnyActor, actionExecutor: (action: GivenAction) => void): Scope {
  return {
    ...{ self, system: self.system, id: self.id, sessionId: self.sessionId },
    ...{ defer: nothing, logger: nothing, stopChild: nothing, emit: nothing, actionExecutor },
  } as unknown as Scope;
}

/** XState's system, which says which transitions a step takes. */
interface Inspected {
  _sendInspectionEvent(event: { readonly _transitions?: readonly unknown[] }): void;
}

function refuseSend(): never {
  throw new TypeError('self.send has no effect in a workflow: use raise, which sends an event within the transition');
}

/** Of a child only its source is kept: a call has its input in the ledger. */
type SlimChildren = { readonly [id: string]: { readonly src: unknown } };

/** Most actors that are kept for the next transitions. */
const MAX_KEPT_ACTORS = 2_000;

/** An actor that a function spawns is in no action: it would never begin. @throws {TypeError} */
function refuseSpawned(now: readonly string[], before: readonly string[], effects: readonly Effect[]): void {
  const begun = effects.flatMap((effect) => (effect.kind === 'begin' ? [effect.actor.id] : []));
  const known = new Set([...before, ...begun]);
  const spawned = now.find((id) => !known.has(id));
  if (spawned === undefined) return;
  throw new TypeError(
    `the actor ${spawned} was begun by spawn in an assign, or in the context: use the action spawnChild`,
  );
}

function slim(persisted: Snapshot<unknown>, actors: { readonly [id: string]: AnyActor }): JsonObject {
  const { error: _, ...rest } = persisted;
  const children: { [id: string]: { readonly src: unknown } } = {};
  for (const id of Object.keys(actors)) children[id] = { src: actors[id]?.src };
  return { ...rest, children } as unknown as JsonObject;
}

function effectsOf({ type, info, params, exec }: GivenAction, self: object): readonly Effect[] {
  const given = (params ?? {}) as { readonly [name: string]: unknown };
  switch (type) {
    case 'xstate.spawnChild':
      return [{ kind: 'begin', actor: begunActor(given) }];
    case 'xstate.stopChild':
      return typeof given.id === 'string' ? [{ kind: 'stop', id: given.id }] : [];
    case 'xstate.raise':
      return given.delay === undefined ? [] : [{ kind: 'timer', timer: timerOf(given) }];
    case 'xstate.cancel':
      return [{ kind: 'cancel', sendId: String(given.sendId) }];
    case 'xstate.sendTo':
      return sent(given, self);
    case 'xstate.log':
      return [{ kind: 'act', act: { name: 'log', run: (log) => log(given.value, given.label as string | undefined) } }];
    case 'xstate.emit':
      return [{ kind: 'emit', event: given.event as JsonValue }];
    default:
      if (!exec) throw new TypeError(`the machine names an action that it does not have: ${type}`);
      return [{ kind: 'act', act: { name: type, run: () => exec(info, params) } }];
  }
}

function begunActor({ actorRef, id: given, src, input }: { readonly [name: string]: unknown }): BegunActor {
  const id = (actorRef as { readonly id?: unknown } | undefined)?.id;
  const source = typeof src === 'string' ? JSON.stringify(src) : 'inline logic';
  // XState's own id is a number of the process: another one after a restart. One that a function makes may be empty.
  if (given === undefined || given === '' || id === '')
    throw new TypeError(`spawnChild needs an id in a workflow: spawnChild(${source}, { id })`);
  if (typeof src !== 'string' || typeof id !== 'string')
    throw new TypeError(
      `the actor ${String(id ?? given)} is ${source}: make it with step, ask or waitForSignal, and name it in setup({ actors })`,
    );
  return { id, src, input };
}

function timerOf({ event, id, delay }: { readonly [name: string]: unknown }): SetTimer {
  return { ...(typeof id === 'string' ? { sendId: id } : {}), event: event as JsonObject, delayMs: delay as number };
}

/** An event for the machine itself, for an actor of it, or for its parent. */
function sent(given: { readonly [name: string]: unknown }, self: object): readonly Effect[] {
  const { to, targetId, event, delay } = given;
  const timer = delay === undefined ? undefined : timerOf(given);
  if (to === self) return [timer ? { kind: 'timer', timer } : { kind: 'send', event: event as JsonObject }];
  const id = (to as { readonly id?: unknown } | undefined)?.id ?? targetId;
  const receiver = to === parent ? ('parent' as const) : { actorId: String(id) };
  return [{ kind: 'message', message: { to: receiver, event: event as JsonObject, ...(timer ? { timer } : {}) } }];
}
