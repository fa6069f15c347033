import type { AnyStateMachine } from 'xstate';
import { toErrorData } from '../values/error-data.ts';
import { nodesOf, transitionsOf, whyNoDelay } from './delays.ts';
import { keptSnapshot } from './kept-snapshot.ts';
import type { StepCall } from './step.ts';

type StateNode = AnyStateMachine['root'];

/**
 * Checks what shows in a machine before it runs: that all it names is there, and that a stored run can keep it. What XState finds is not
 * refused: a built-in action, a function in the place of a name.
 * @param of what the machine belongs to, for messages
 * @throws {TypeError} with the path of the state
 */
export function checkMachine(of: string, machine: AnyStateMachine, calls: ReadonlyMap<string, StepCall>): void {
  const { actions, guards, delays } = machine.implementations;
  checkContext(of, machine);
  for (const [name, delay] of Object.entries(delays)) {
    const why = typeof delay === 'function' || delay === undefined ? undefined : whyNoDelay(delay);
    if (why !== undefined) throw new TypeError(`${of}: the delay ${JSON.stringify(name)} ${why}`);
  }
  for (const node of nodesOf(machine.root)) {
    const at = `${of}: state ${node.path.join('.') || machine.id}`;
    checkInitial(at, node);
    checkInvokes(at, node, calls);
    const transitions = transitionsOf(node);
    for (const { guard } of transitions) checkNames(at, { kind: 'guard', used: guardNames(guard), known: guards });
    for (const action of actionsIn(node)) checkAction(at, action, { machine, calls });
  }
  for (const [name, action] of Object.entries(actions))
    checkAction(`${of}: action ${name}`, action, { machine, calls });
  for (const [name, guard] of Object.entries(guards))
    checkNames(`${of}: guard ${name}`, { kind: 'guard', used: guardNames(guard), known: guards });
}

/** A context that is no function is there already. A function's is checked when it is called. */
function checkContext(of: string, { config: { context } }: AnyStateMachine): void {
  if (typeof context !== 'object') return;
  try {
    keptSnapshot({ context });
  } catch (cause) {
    throw new TypeError(`${of}: ${toErrorData(cause).message}`, { cause });
  }
}

/** XState reads this only when the state is entered. */
function checkInitial(at: string, { type, config, states }: StateNode): void {
  if (type !== 'compound') return;
  const { initial } = config as { readonly initial: string | { readonly target: string } };
  const begun = typeof initial === 'string' ? initial : initial.target;
  if (!states[begun])
    throw new TypeError(`${at} begins in ${JSON.stringify(begun)}, which is no state of it: ${listOf(states)}`);
}

function checkInvokes(at: string, { invoke }: StateNode, calls: ReadonlyMap<string, StepCall>): void {
  for (const invoked of invoke) {
    const { src, systemId } = invoked as { src: unknown; systemId?: string; onSnapshot?: unknown };
    if (systemId !== undefined)
      throw new TypeError(`${at}: systemId is not possible in a workflow: use the id of the actor`);
    if ((invoked as { onSnapshot?: unknown }).onSnapshot !== undefined)
      throw new TypeError(`${at}: onSnapshot is not possible in a workflow: a call has a result, and no snapshots`);
    if (typeof src !== 'string' || !calls.has(src))
      throw new TypeError(
        `${at} invokes ${named(src)}: declare it in setup({ actors }) with step, ask or waitForSignal`,
      );
  }
}

interface Named {
  readonly kind: 'action' | 'guard' | 'delay';
  readonly used: readonly string[];
  readonly known: object;
}

/** A name that the machine does not have would fail its run, after days of waiting perhaps. */
function checkNames(at: string, { kind, used, known }: Named): void {
  const missing = used.find((name) => (known as { readonly [name: string]: unknown })[name] === undefined);
  if (missing === undefined) return;
  throw new TypeError(
    `${at} names the ${kind} ${JSON.stringify(missing)}: declare it in setup({ ${kind}s }), which has ${listOf(known)}`,
  );
}

function listOf(known: object): string {
  return Object.keys(known).join(', ') || 'none';
}

/** The names of guards in a guard: `not`, `and` and `or` have others in them. */
function guardNames(guard: unknown): readonly string[] {
  if (typeof guard === 'string') return [guard];
  const { guards, type } = (guard ?? {}) as { readonly guards?: readonly unknown[]; readonly type?: string };
  if (typeof guard === 'function') return (guards ?? []).flatMap(guardNames);
  return type === undefined ? [] : [type];
}

/** Whether an action of a machine is `sendParent`. One that a function enqueues is seen only when it runs. */
export function sendsToParent({ root, implementations }: AnyStateMachine): boolean {
  const isToParent = (action: unknown): boolean =>
    typeof action === 'function' && (action as { readonly to?: unknown }).to === '#_parent';
  return [...nodesOf(root).flatMap(actionsIn), ...Object.values(implementations.actions)].some(isToParent);
}

function actionsIn(node: StateNode): readonly unknown[] {
  return [...node.entry, ...node.exit, ...transitionsOf(node).flatMap(({ actions }) => actions)];
}

/** What XState keeps at the actions that it makes itself. */
interface BuiltIn {
  readonly type?: unknown;
  readonly delay?: unknown;
  readonly src?: unknown;
  readonly id?: unknown;
  readonly systemId?: unknown;
  readonly syncSnapshot?: unknown;
}

interface Declared {
  readonly machine: AnyStateMachine;
  readonly calls: ReadonlyMap<string, StepCall>;
}

/** Checks an action. Those that a function enqueues are checked when it runs. */
function checkAction(at: string, action: unknown, { machine, calls }: Declared): void {
  const { actions, delays } = machine.implementations;
  if (typeof action !== 'function') {
    const name = typeof action === 'string' ? action : (action as { readonly type: string }).type;
    checkNames(at, { kind: 'action', used: [name], known: actions });
    return;
  }
  const { type, delay, ...spawned } = action as BuiltIn;
  if (type === 'xstate.spawnChild') checkSpawn(at, spawned, calls);
  if (typeof delay === 'string') {
    checkNames(at, { kind: 'delay', used: [delay], known: delays });
    return;
  }
  const why = delay === undefined || typeof delay === 'function' ? undefined : whyNoDelay(delay);
  if (why !== undefined) throw new TypeError(`${at}: a delay ${why}`);
}

function checkSpawn(
  at: string,
  { src, id, systemId, syncSnapshot }: BuiltIn,
  calls: ReadonlyMap<string, StepCall>,
): void {
  if (typeof src !== 'string' || !calls.has(src))
    throw new TypeError(`${at} spawns ${named(src)}: declare it in setup({ actors }) with step, ask or waitForSignal`);
  if (id === undefined)
    throw new TypeError(`${at}: spawnChild needs an id in a workflow: spawnChild(${JSON.stringify(src)}, { id })`);
  if (systemId !== undefined)
    throw new TypeError(`${at}: systemId is not possible in a workflow: use the id of the actor`);
  if (syncSnapshot)
    throw new TypeError(`${at}: syncSnapshot is not possible in a workflow: a call has a result, and no snapshots`);
}

/** XState names inline logic after its state. */
function named(src: unknown): string {
  return typeof src === 'string' && !src.startsWith('xstate.invoke.') ? JSON.stringify(src) : 'inline logic';
}
