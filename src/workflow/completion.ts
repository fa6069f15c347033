import type { AnyMachineSnapshot, AnyStateMachine } from 'xstate';

type StateNode = AnyStateMachine['root'];

/** An event by which XState says that the states in a state are over. */
interface StateDone {
  readonly type: string;
  readonly output?: unknown;
}

/** What the final states of a snapshot end. */
interface Completion {
  /** The events of the states around them, as XState raises them. */
  readonly events: readonly StateDone[];
  /** The machine itself is over. */
  readonly ended?: { readonly output: unknown };
}

/** Returns what the final states of a snapshot end, as if they were entered now. @throws what an output of the machine throws */
export function completionOf({ _nodes: nodes, context, machine }: AnyMachineSnapshot, self: object): Completion {
  const { root } = machine;
  const event = { type: 'xstate.init' };
  const outputOf = (output: unknown, by: object) =>
    typeof output === 'function' ? output({ context, event: by, self }) : output;
  const active = new Set<StateNode>(nodes);
  const events = (nodes as readonly StateNode[]).flatMap((node): StateDone[] => {
    if (!isMachineOver(node, active) || node.type === 'final') return [];
    const last = Object.values(node.states).find((each) => each.type === 'final' && active.has(each));
    return [{ type: `xstate.done.state.${node.id}`, output: outputOf(last?.output, event) }];
  });
  if (!isMachineOver(root, active)) return { events: events.toReversed() };
  const last = nodes.find((node: StateNode) => node.type === 'final' && node.parent === root);
  const done = { type: `xstate.done.state.${(last ?? root).id}`, output: outputOf(last?.output, event) };
  return { events: [], ended: { output: outputOf(root.output, done) } };
}

/** Returns whether the active states leave nothing to do in a state. */
export function isMachineOver(node: StateNode, active: ReadonlySet<StateNode>): boolean {
  const inner = Object.values(node.states).filter(({ type }) => type !== 'history');
  if (node.type === 'compound') return inner.some((each) => each.type === 'final' && active.has(each));
  return node.type === 'parallel' ? inner.every((each) => isMachineOver(each, active)) : node.type === 'final';
}
