import type { ActorRefFrom } from 'xstate';
import type { runMachine } from '../../../machines/run.ts';
import type { Agent } from '../../agent/agent.ts';
import type { RunSummary } from '../services/registry.ts';

/** A run's actor: a real XState actor of the run machine. */
export type RunActor = ActorRefFrom<ReturnType<typeof runMachine>>;

/** Returns the summary of a live run: agent, state, steps, usage, whether it is durable. */
export function summaryOf(actor: RunActor, agent: Agent, durable: boolean): RunSummary {
  const { value, context } = actor.getSnapshot();
  const { meta, labels, iteration, usage } = context.progress;
  const { id: agentId, name: agentName } = agent;
  const summary = { runId: meta.runId, agentId, agentName, state: pathOf(value), iteration, usage, durable };
  return labels ? { ...summary, labels } : summary;
}

/** `running.calling-tools` of `{ running: 'calling-tools' }`. */
function pathOf(value: unknown): string {
  if (typeof value === 'string') return value;
  const [[name, inner]] = Object.entries(value as Record<string, unknown>) as [[string, unknown]];
  return `${name}.${pathOf(inner)}`;
}
