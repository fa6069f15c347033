import type { AnyStateMachine, StateNode } from 'xstate';

/** A state of a workflow's machine, with the states in it. */
export interface StateOutline {
  /** Its name in the state around it; of the machine itself its id. */
  readonly key: string;
  readonly type: 'atomic' | 'compound' | 'parallel' | 'final' | 'history';
  readonly description?: string;
  /** The path of the state in which it begins. */
  readonly initial?: string;
  /** Of a history: whether it also remembers the states in the states. */
  readonly isDeep?: boolean;
  /** The actors that it invokes. */
  readonly invokes: readonly { readonly id: string; readonly src: string }[];
  readonly transitions: readonly TransitionOutline[];
  readonly states: readonly StateOutline[];
}

/** A transition of a state. */
export interface TransitionOutline {
  /** As `workflow.transition` names it in `took`. */
  readonly id: string;
  /** The type of its event as the machine has it, with the names of XState for results and timers; '' = none: it is taken at once. */
  readonly event: string;
  /** The name of its guard; '' for a function without a name. Absent: it has none. */
  readonly guard?: string;
  /** The delay of a timer, ms, if the machine says it as a number. */
  readonly delayMs?: number;
  /** The paths of the states to which it leads; none = it changes no state. */
  readonly targets: readonly string[];
}

type Node = StateNode<never, never>;
type Definition = Node['always'] extends readonly (infer Each)[] | undefined ? Each : never;

const outlines = new WeakMap<AnyStateMachine, StateOutline>();

/** Returns the states and transitions of a machine; the same object for the same machine. */
export function outlineOf(machine: AnyStateMachine): StateOutline {
  const known = outlines.get(machine) ?? outlineIn(machine.root as unknown as Node);
  outlines.set(machine, known);
  return known;
}

function outlineIn(node: Node): StateOutline {
  const { key, type, description, history, initial } = node;
  const begin = type === 'compound' ? initial.target[0] : undefined;
  return {
    key,
    type,
    ...(description === undefined ? {} : { description }),
    ...(begin === undefined ? {} : { initial: pathOf(begin as unknown as Node) }),
    ...(type === 'history' ? { isDeep: history === 'deep' } : {}),
    invokes: node.invoke.map(({ id, src }) => ({ id, src: String(src) })),
    transitions: type === 'history' ? historyIn(node) : definitionsOf(node).map((each) => transitionOf(node, each)),
    states: Object.values(node.states).map((inner) => outlineIn(inner as unknown as Node)),
  };
}

const pathOf = ({ path }: Pick<Node, 'path'>): string => path.join('.');

/** All transitions of a state, each with the name that no other one of the machine has. */
function definitionsOf(node: Node): readonly { readonly id: string; readonly definition: Definition }[] {
  const on = (node.config.on ?? {}) as { readonly [event: string]: unknown };
  // A type that a state forbids leads nowhere.
  const taken = [...node.transitions].filter(([event]) => !Object.hasOwn(on, event) || on[event] !== undefined);
  const all = [['', node.always ?? []] as const, ...taken];
  return all.flatMap(([event, definitions]) =>
    definitions.map((definition, index) => ({ id: `${pathOf(node)}:${event}:${index}`, definition })),
  );
}

function transitionOf(node: Node, { id, definition }: ReturnType<typeof definitionsOf>[number]): TransitionOutline {
  const { eventType, guard, target = [] } = definition;
  const delay = node.after.find((after) => after.eventType === eventType)?.delay;
  const ms = typeof delay === 'string' ? node.machine.implementations.delays[delay] : delay;
  return {
    id,
    event: eventType,
    ...(guard === undefined ? {} : { guard: nameOf(guard) }),
    ...(typeof ms === 'number' ? { delayMs: ms } : {}),
    targets: target.map((each) => pathOf(each as unknown as Node)),
  };
}

/** The name that JavaScript gives to a function in `guard: …` says nothing. */
function nameOf(guard: unknown): string {
  const { name = '', type } = guard as { readonly name?: string; readonly type?: string };
  if (typeof guard === 'string') return guard;
  return typeof guard === 'function' ? (name === 'guard' ? '' : name) : (type ?? '');
}

/** Where a history leads that remembers nothing. */
function historyIn(node: Node): readonly TransitionOutline[] {
  const { target } = node.config as { readonly target?: string };
  if (target === undefined || node.parent === undefined) return [];
  const path = target.startsWith('#')
    ? pathOf(node.machine.getStateNodeById(target) as unknown as Node)
    : [...node.parent.path, ...target.split('.').filter((part) => part !== '')].join('.');
  return [{ id: `${pathOf(node)}::0`, event: '', targets: [path] }];
}

const names = new WeakMap<AnyStateMachine, ReadonlyMap<unknown, string>>();

/** Returns the ids of transitions of a machine, as XState hands them over; those that it makes itself, as at the beginning, have none. */
export function transitionIds(machine: AnyStateMachine, taken: readonly unknown[]): readonly string[] {
  let known = names.get(machine);
  if (!known) {
    const all = (node: Node): readonly (readonly [unknown, string])[] => [
      ...definitionsOf(node).map(({ id, definition }) => [definition, id] as const),
      ...Object.values(node.states).flatMap((inner) => all(inner as unknown as Node)),
    ];
    known = new Map(all(machine.root as unknown as Node));
    names.set(machine, known);
  }
  return taken.flatMap((each) => known.get(each) ?? []);
}
