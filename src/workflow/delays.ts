import { type AnyStateMachine, raise, sendParent, sendTo } from 'xstate';
import { kindOf } from '../values/known-options.ts';

type StateNode = AnyStateMachine['root'];
type Implementations = AnyStateMachine['implementations'];

/** Returns why a value is no delay, as the end of a sentence; undefined: it is one. */
export function whyNoDelay(value: unknown): string | undefined {
  if (typeof value === 'number' && Number.isFinite(value) && value >= 0) return undefined;
  const shown = typeof value === 'string' ? JSON.stringify(value) : kindOf(value);
  return `is a finite number of ms, 0 or more, not ${shown}`;
}

/** What the functions of a machine get. */
interface Given {
  readonly args: unknown;
  readonly params?: unknown;
}

/**
 * Returns a delay in ms, as the machine has it: a number, a function or the name of a delay.
 * @throws {TypeError} for a name that the machine does not have, and for anything but a finite number of ms, 0 or more
 */
export function delayOf({ delays }: Pick<Implementations, 'delays'>, delay: unknown, { args, params }: Given): number {
  const isNamed = typeof delay === 'string';
  const known = delays as { readonly [name: string]: unknown };
  if (isNamed && known[delay] === undefined) throw new TypeError(`the machine has no delay ${JSON.stringify(delay)}`);
  const given = isNamed ? known[delay] : delay;
  const ms: unknown = typeof given === 'function' ? given(args, params) : given;
  const why = whyNoDelay(ms);
  if (why !== undefined) throw new TypeError(`${isNamed ? `the delay ${JSON.stringify(delay)}` : 'a delay'} ${why}`);
  return ms as number;
}

/** Returns all states of a machine, from its root. */
export function nodesOf(node: StateNode): readonly StateNode[] {
  return [node, ...Object.values(node.states).flatMap(nodesOf)];
}

/** Returns the transitions of a state. XState keeps those without an event, and those to the states in it, apart. */
export function transitionsOf({ type, initial, always = [], transitions }: StateNode): StateNode['always'] & object {
  return [...(type === 'compound' ? [initial] : []), ...always, ...[...transitions.values()].flat()] as never;
}

/**
 * Gives a machine delays that are checked: what is no delay is an error of the transition. XState takes it for no delay, and the event
 * comes at once. The machine is changed in place, so it is one that no other reader has.
 */
export function checkDelaysWithin(machine: AnyStateMachine): void {
  const checked = (actions: readonly unknown[]) => actions.map((action) => withCheckedDelay(machine, action)) as never;
  for (const node of nodesOf(machine.root)) {
    node.entry = checked(node.entry);
    node.exit = checked(node.exit);
    for (const transition of transitionsOf(node))
      (transition as { actions: unknown }).actions = checked(transition.actions);
  }
  const { actions } = machine.implementations as { actions: { readonly [name: string]: unknown } };
  (machine.implementations as { actions: object }).actions = Object.fromEntries(
    Object.entries(actions).map(([name, action]) => [name, withCheckedDelay(machine, action)]),
  );
}

/** What XState keeps at an action that it makes itself. */
interface BuiltIn {
  readonly delay?: unknown;
  readonly collect?: (given: { readonly enqueue: Enqueue }, params: unknown) => void;
}

type Enqueue = (action: unknown) => void;

function withCheckedDelay(machine: AnyStateMachine, action: unknown): unknown {
  if (typeof action !== 'function') return action;
  const { delay, collect } = action as BuiltIn;
  if (collect) {
    const checked: BuiltIn['collect'] = (given, params) =>
      collect({ ...given, enqueue: checkedEnqueue(machine, given.enqueue) }, params);
    return Object.assign(() => {}, action, { collect: checked });
  }
  if (delay === undefined) return action;
  const checked = (args: unknown, params: unknown) => delayOf(machine.implementations, delay, { args, params });
  return Object.assign(() => {}, action, { delay: checked });
}

/** A function of the machine enqueues actions that are not seen before. */
function checkedEnqueue(machine: AnyStateMachine, enqueue: Enqueue): Enqueue {
  const own: Enqueue = (action) => enqueue(withCheckedDelay(machine, action));
  const made = Object.entries({ raise, sendTo, sendParent }).map(
    ([name, make]) => [name, (...given: unknown[]) => own((make as (...all: unknown[]) => unknown)(...given))] as const,
  );
  return Object.assign(own, enqueue, Object.fromEntries(made));
}
