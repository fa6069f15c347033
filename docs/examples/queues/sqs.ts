// Runs on a queue like SQS: messages may come twice, late, in another order, or never. A message names a run; working on it is one slice.
import type { Executor } from 'pawl';

/** What is used of the queue. Of SQS: SendMessage, ReceiveMessage with a VisibilityTimeout, DeleteMessage. */
export interface Queue {
  send(body: string, options: { readonly delaySeconds: number }): Promise<void>;
  receive(options: { readonly visibilitySeconds: number }): Promise<{ body: string; receipt: string } | undefined>;
  delete(receipt: string): Promise<void>;
}

export interface QueueOptions {
  readonly queue: Queue;
  readonly budgetMs?: number;
  readonly graceMs?: number;
  /** The longest delay of a message; of SQS 900 s. A run that is due later has several messages, one after another. */
  readonly maxDelaySeconds?: number;
}

export function runsOnQueue({ queue, budgetMs = 60_000, graceMs = 30_000, maxDelaySeconds = 900 }: QueueOptions) {
  // As long as a slice may take, and the saves after it: the message must not come again while the slice works.
  const visibilitySeconds = Math.ceil((budgetMs + graceMs) / 1_000) + 30;
  const onDue = (runId: string, at: number): Promise<void> => {
    const delaySeconds = Math.min(maxDelaySeconds, Math.max(0, Math.ceil((at - Date.now()) / 1_000)));
    return queue.send(JSON.stringify({ runId, at }), { delaySeconds });
  };
  return {
    onDue,
    /** Handles one message. If it rejects, the message comes again: set no maxReceiveCount, for Pawl counts starts and parks. */
    handleOne: async (executor: Executor, signal?: AbortSignal): Promise<boolean> => {
      const message = await queue.receive({ visibilitySeconds });
      if (message === undefined) return false;
      const { runId, at } = JSON.parse(message.body) as { runId: string; at: number };
      if (at > Date.now()) await onDue(runId, at);
      else {
        const { state, wakeAt } = await executor.drive(runId, { budgetMs, graceMs, ...(signal && { signal }) });
        // A run without a time waits for a person: the answer calls onDue.
        const next = state === 'more' ? Date.now() : wakeAt;
        if (state !== 'ended' && next !== undefined) await onDue(runId, next);
      }
      // Last: a process that dies before it leaves the message, and a slice too many changes nothing.
      await queue.delete(message.receipt);
      return true;
    },
    /** Each minute, from one process or from all: finds the runs whose message was lost. */
    sweep: (executor: Executor) => executor.drive('due', { budgetMs, graceMs }),
  };
}
