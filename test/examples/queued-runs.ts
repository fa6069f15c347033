import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Agent,
  type CheckpointStore,
  createExecutor,
  defineAgent,
  type Executor,
  type ExecutorOptions,
  type Message,
  type ToolEffect,
} from 'pawl';
import { callTools, reply, scriptedModel } from 'pawl/testing';
import { toolOf } from '../fixtures/host.ts';

/** What the model asks for, step by step. */
const plan: readonly (readonly ToolEffect[])[] = [
  ['read'],
  ['once', 'idempotent'],
  ['idempotent'],
  ['once'],
  ['read', 'once', 'idempotent'],
  ['once'],
  ['read'],
  ['idempotent', 'once'],
];

/** A call of a tool that began: of which run, and which. */
export type Began = `${string} ${string}`;

/** Runs of eight steps that hosts on one store share. A run takes longer than a slice, and a call less than what a slice has for its end. */
export class QueuedRuns {
  readonly began: Began[] = [];
  readonly #store: CheckpointStore;

  constructor(store: CheckpointStore) {
    this.#store = store;
  }

  /** A process of a host, with an executor of its own. */
  host(options: Partial<ExecutorOptions> = {}): { readonly executor: Executor; readonly agent: Agent } {
    const agent = defineAgent({
      ...{ id: 'worker', name: 'Worker', instructions: 'Follow the plan.', maxSteps: plan.length + 1 },
      tools: (['read', 'idempotent', 'once'] as const).map((effect) =>
        toolOf(effect, effect, async (_, { runId, callId }) => {
          this.began.push(`${runId} ${callId}`);
          await sleep(2);
          return `${effect} at ${callId}`;
        }),
      ),
    });
    const answer = async ({ messages }: { readonly messages: readonly Message[] }) => {
      await sleep(15);
      const step = messages.filter(({ role }) => role === 'assistant').length;
      const effects = plan[step];
      if (effects === undefined) return reply(`done after ${step} steps`);
      return callTools(effects.map((name, i) => ({ name, input: { i }, callId: `${step}-${i}` })));
    };
    const executor = createExecutor({
      ...{ models: { fast: scriptedModel(Array.from({ length: 5_000 }, () => answer)) }, agents: [agent] },
      ...{ store: this.#store, retention: { records: 600_000 }, logger: { warn: () => {} } },
      ...options,
    });
    return { executor, agent };
  }

  /** The `once` calls that began more than once. A busy machine may cut another call at the end of a slice: that one is repeated. */
  repeated(): readonly Began[] {
    return this.began.filter((call, i) => this.began.indexOf(call) !== i && effectOf(call) === 'once');
  }
}

function effectOf(call: Began): ToolEffect | undefined {
  const [step, position] = (call.split(' ')[1] ?? '').split('-').map(Number);
  return plan[step ?? 0]?.[position ?? 0];
}

/** What a run says that nobody cuts into slices. */
export async function uncutMessages(store: CheckpointStore): Promise<readonly Message[]> {
  const { executor, agent } = new QueuedRuns(store).host();
  const { messages } = await executor.run(agent, { runId: 'uncut', prompt: 'Begin.' });
  return messages;
}

/** Waits until all these runs have ended. @param meanwhile what a host does at times */
export async function ended(executor: Executor, runIds: readonly string[], meanwhile = () => sleep(20)): Promise<void> {
  const latest = performance.now() + 40_000;
  for (;;) {
    const found = await Promise.all(runIds.map((runId) => executor.find(runId)));
    const statuses = found.map((each) => each?.status);
    if (statuses.every((status) => status === 'ended')) return;
    if (performance.now() > latest) throw new Error(`the runs have not ended: ${statuses}`);
    await meanwhile();
  }
}
