import type { AnyStateMachine } from 'xstate';
import { change } from '../run/change.ts';
import type { Progress } from '../run/progress.ts';
import { statePaths, type WorkflowState } from '../run/workflow/state.ts';
import { toErrorData } from '../values/error-data.ts';
import { frozenJson, isObject, type JsonObject } from '../values/json.ts';
import { isMachineOver } from './completion.ts';
import { delayOf } from './delays.ts';
import { keptSnapshot } from './kept-snapshot.ts';
import type { BegunActor, SetTimer } from './kernel.ts';
import type { MigratedSnapshot, Program } from './program.ts';

type StateNode = AnyStateMachine['root'];

/**
 * Returns why a stored workflow cannot continue in the machine as it is now; undefined: it can. XState itself takes most of these changes
 * silently: a new invoke of an active state would never start, and the run would wait without an end.
 */
export function unfitnessOf(program: Program, state: WorkflowState): string | undefined {
  const { root } = program.machine;
  // One that has not begun begins in the machine as it is.
  if (state.snapshot.status === undefined) return undefined;
  const lost = lostActor(program, state);
  if (lost !== undefined || state.hash === program.hash) return lost;
  const { value } = state.snapshot;
  if (isMachineOver(root, new Set(activeNodes(root, value))))
    return `state ${statePaths(value ?? null).join(', ')} became final`;
  return unfitIn(root, value, state);
}

/** An actor of an action is of no state: it may be open in any. */
function lostActor({ calls }: Program, { snapshot, calls: open }: WorkflowState): string | undefined {
  const children = (snapshot.children ?? {}) as { readonly [id: string]: { readonly src?: unknown } };
  const lost = Object.keys(open).find((id) => children[id] && !calls.has(String(children[id].src)));
  return lost && `the machine has no actor ${JSON.stringify(children[lost]?.src)} any more, which ${lost} is`;
}

/** Looks for a difference below a node. @param value its active states, as XState writes them */
function unfitIn(node: StateNode, value: unknown, state: WorkflowState): string | undefined {
  const own = gainedBy(node, state);
  if (own) return own;
  const active = typeof value === 'string' ? { [value]: undefined } : isObject(value) ? value : {};
  const keys = Object.keys(active);
  const isNested = Object.keys(node.states).length > 0;
  if (keys.length === 0) return isNested ? `${nameOf(node)} became ${node.type}` : undefined;
  if (node.type === 'parallel') {
    const gained = Object.keys(node.states).find((key) => !keys.includes(key));
    if (gained !== undefined) return `${nameOf(node)} gained the region ${gained}`;
  } else if (keys.length > 1) return `${nameOf(node)} is parallel no more`;
  for (const key of keys) {
    const child = node.states[key];
    if (!child) return `${nameOf(node)} has no state ${JSON.stringify(key)} any more`;
    const found = unfitIn(child, active[key], state);
    if (found) return found;
  }
  return undefined;
}

/** What an active state has, and had not when it was entered: a call or a timer that would never begin. */
function gainedBy(node: StateNode, { snapshot, armed }: WorkflowState): string | undefined {
  const children = isObject(snapshot.children) ? snapshot.children : {};
  for (const { id, src } of node.invoke) {
    const known = children[id];
    if (!isObject(known) || known.src !== src)
      return `${nameOf(node)} gained the call ${JSON.stringify(id)} of ${String(src)}`;
  }
  const timer = node.after.find(({ eventType }) => !armed.includes(eventType));
  return timer && `${nameOf(node)} gained the timer ${timer.eventType}`;
}

function nameOf(node: StateNode): string {
  return node.path.length === 0 ? 'the machine' : `state ${node.path.join('.')}`;
}

/** What a migrated workflow lacks in its new states, and has of its old ones. */
interface Entry {
  readonly begin: readonly BegunActor[];
  readonly timers: readonly SetTimer[];
  /** The actors and timers of states that are active no more. */
  readonly leaves: readonly string[];
  /** The actors that it has then, as its snapshot names them. */
  readonly children: JsonObject;
}

type Entered = Pick<Progress, 'workflow' | 'openStep'>;

/**
 * Returns what begins and ends when a workflow continues in the states that its migration gave it. An actor that an action has begun
 * stays, as XState keeps it until `stopChild`.
 * @throws what the machine throws
 */
export function entryOf({ machine }: Program, { workflow, openStep }: Entered): Entry {
  const state = workflow as WorkflowState;
  const nodes = activeNodes(machine.root, state.snapshot.value);
  const args = { context: state.snapshot.context, event: { type: 'xstate.init' }, self: undefined };
  const begin = nodes.flatMap(({ invoke }) =>
    invoke
      .filter(({ id }) => state.calls[id] === undefined)
      .map(({ id, src, input }) => ({
        id,
        src: String(src),
        input: typeof input === 'function' ? input(args as never) : input,
      })),
  );
  const timers = nodes.flatMap(({ after }) =>
    after
      .filter(({ eventType }) => !state.armed.includes(eventType))
      .map(({ eventType, delay }) => ({
        sendId: eventType,
        event: { type: eventType },
        delayMs: delayOf(machine.implementations, delay, { args }),
      })),
  );
  const spawned = new Set(openStep?.calls.flatMap(({ callId, isSpawned }) => (isSpawned ? [callId] : [])));
  const stays = new Set([
    ...nodes.flatMap(({ invoke, after }) => [
      ...invoke.map(({ id }) => id),
      ...after.map(({ eventType }) => eventType),
    ]),
    ...Object.entries(state.calls).flatMap(([id, callId]) => (spawned.has(callId) ? [id] : [])),
  ]);
  const leaves = [...Object.keys(state.calls), ...state.armed].filter((id) => !stays.has(id));
  const before = Object.entries((state.snapshot.children ?? {}) as JsonObject);
  const children = Object.fromEntries([
    ...before.filter(([id]) => !leaves.includes(id)),
    ...begin.map(({ id, src }) => [id, { src }] as const),
  ]);
  return { begin, timers, leaves, children };
}

/** Returns whether an active state invokes the actor of an id. */
export function isInvoked({ machine }: Program, value: unknown, actorId: string): boolean {
  return activeNodes(machine.root, value).some(({ invoke }) => invoke.some(({ id }) => id === actorId));
}

function activeNodes(node: StateNode, value: unknown): readonly StateNode[] {
  const active = typeof value === 'string' ? { [value]: undefined } : isObject(value) ? value : {};
  const below = Object.entries(active).flatMap(([key, each]) => {
    const child = node.states[key];
    return child ? activeNodes(child, each) : [];
  });
  return [node, ...below];
}

/**
 * Gives the snapshot of a workflow of another version to its `migrate`.
 * @returns the state to continue in, or why there is none: it threw, or what it gave is no state of the machine
 */
export function migrateState(
  program: Program,
  fields: Entered & { readonly workflow: WorkflowState },
  from: string,
): { readonly state: WorkflowState } | { readonly why: string } {
  const { migrate, machine } = program;
  const { workflow: state } = fields;
  if (!migrate || state.snapshot.status === undefined) return { state };
  const { value = null, context = {} } = state.snapshot;
  let what = 'migrate threw';
  try {
    const migrated = change({ value, context } as MigratedSnapshot, (draft) => {
      migrate(draft, { from });
    });
    if (!isStateOf(machine.root, migrated.value))
      return { why: `migrate gave ${JSON.stringify(migrated.value)}, which is no state of the machine` };
    const snapshot = keptSnapshot({ ...state.snapshot, ...(frozenJson(migrated, 'snapshot') as JsonObject) });
    const workflow: WorkflowState = { ...state, snapshot, hash: program.hash, isMigrated: true };
    const lost = lostActor(program, workflow);
    if (lost) return { why: lost };
    what = `the state that migrate gave, ${JSON.stringify(migrated.value)}, cannot be entered`;
    tryToEnter(program, { ...fields, workflow });
    return { state: workflow };
  } catch (error) {
    return { why: `${what}: ${toErrorData(error).message}` };
  }
}

/** What the first transition of a migrated run will do, without its effects: a run that would fail there is parked. @throws what the machine throws */
function tryToEnter(program: Program, entered: Entered & { readonly workflow: WorkflowState }): void {
  const { children } = entryOf(program, entered);
  const { failure, snapshot } = program.kernel.settle({ ...entered.workflow.snapshot, children });
  if (failure !== undefined) throw failure;
  keptSnapshot(snapshot);
}

/** Whether a value names a whole configuration of a node. */
function isStateOf(node: StateNode, value: unknown): boolean {
  const all = Object.keys(node.states);
  if (typeof value === 'string') return node.type === 'compound' && isLeaf(node.states[value]);
  if (!isObject(value)) return false;
  const keys = Object.keys(value);
  const isWhole = node.type === 'parallel' ? keys.length === all.length : keys.length === 1;
  return isWhole && keys.every((key) => node.states[key] && isBelow(node.states[key], value[key]));
}

const isLeaf = (node: StateNode | undefined): boolean => node !== undefined && Object.keys(node.states).length === 0;

/** An atomic region of a parallel state is written as an empty object. */
function isBelow(node: StateNode, value: unknown): boolean {
  if (isLeaf(node)) return isObject(value) && Object.keys(value).length === 0;
  return isStateOf(node, value);
}
