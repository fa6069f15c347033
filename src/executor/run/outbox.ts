import { callOf } from '../../run/open-step.ts';
import type { WorkflowMessage } from '../../run/workflow/state.ts';
import { type Backoff, backoffMs } from '../../values/backoff.ts';
import { policyOf } from '../../values/error-codes.ts';
import { type ErrorData, toErrorData } from '../../values/error-data.ts';
import type { ActiveRun, ExecutorServices } from './active-run.ts';

/** The pauses while a receiver or the store does not take an event. */
const pauses: Backoff = { firstMs: 250, maxMs: 30_000 };

/**
 * Sends the events of a workflow to other runs, each once its transition is stored, to each run in their order. A process that
 * dies on the way leaves them in the record: the next one sends them again, and their receivers know their ids.
 */
export class Outbox {
  readonly #run: ActiveRun;
  /** Those that are stored and have not arrived. */
  #stored: readonly WorkflowMessage[] = [];
  #isSending = false;
  #hasNews = false;
  #isPausing = false;
  #failures = 0;
  #timer: unknown;

  constructor(run: ActiveRun) {
    this.#run = run;
  }

  /** Takes events that are stored, or will be when `boundary` is. */
  add(messages: readonly WorkflowMessage[], boundary?: number): void {
    if (messages.length === 0) return;
    const enter = () => {
      this.#stored = [...this.#stored, ...messages];
      this.look();
    };
    if (boundary !== undefined && this.#run.isDurable) this.#run.checkpointing.whenPersisted(boundary, enter);
    else enter();
  }

  /** Sends what may be sent now: a child may have begun, or ended. */
  look(): void {
    if (this.#stored.length === 0 || this.#isPausing) return;
    this.#hasNews = true;
    if (!this.#isSending) void this.#send();
  }

  async #send(): Promise<void> {
    this.#isSending = true;
    while (this.#hasNews && !this.#isPausing && !this.#run.life.isOver) {
      this.#hasNews = false;
      await this.#sendInOrder();
    }
    this.#isSending = false;
  }

  async #sendInOrder(): Promise<void> {
    const blocked = new Set<string>();
    for (const message of this.#stored) {
      if (blocked.has(message.to.runId)) continue;
      const isGone = await this.#isGone(message);
      if (this.#run.life.isOver) return;
      if (isGone) this.#forget(message);
      else blocked.add(message.to.runId);
    }
  }

  #forget(message: WorkflowMessage): void {
    this.#stored = this.#stored.filter((each) => each !== message);
    this.#run.send({ type: 'workflow.sent', id: message.id });
  }

  /** Sends an event. @returns whether it has arrived, or never will. Never rejects. */
  async #isGone(message: WorkflowMessage): Promise<boolean> {
    const { id, to, event } = message;
    try {
      await this.#run.services.sendEvent(to.runId, { id, event });
      this.#failures = 0;
      return true;
    } catch (thrown) {
      const error = toErrorData(thrown);
      if (isUnknown(error) && this.#isUnbegun(message)) return false;
      if (mayArriveLater(error)) {
        this.#tryLater(error.message);
        return false;
      }
      const step = this.#run.progress?.iteration ?? 0;
      const named = to.callId === undefined ? 'parent' : to.runId;
      this.#run.publish({ type: 'workflow.undelivered', step, to: named, event: String(event.type), error });
      return true;
    }
  }

  /** A child begins after the transition that sends to it. */
  #isUnbegun({ to: { callId } }: WorkflowMessage): boolean {
    const { progress } = this.#run;
    const call = callId !== undefined && progress?.openStep ? callOf(progress.openStep, callId) : undefined;
    return call !== undefined && call.state !== 'done';
  }

  #tryLater(why: string): void {
    const { runId, services, life } = this.#run;
    const { clock } = services.config;
    if (life.isOver) return;
    // A timer would keep a process alive whose run is over.
    if (this.#timer === undefined) this.#run.onEnd(() => clock.clearTimeout(this.#timer));
    if (this.#failures === 0) services.config.warn('outbox.delivery.failed', { runId, why });
    this.#failures += 1;
    this.#isPausing = true;
    this.#timer = clock.setTimeout(
      () => {
        this.#isPausing = false;
        this.look();
      },
      backoffMs(this.#failures, pauses),
    );
  }
}

/** Without a store only the runs of this process are known. */
function isUnknown({ code }: ErrorData): boolean {
  return code === 'RUN_NOT_FOUND' || code === 'NOT_DURABLE';
}

/** An inbox that is full has room again once its run has read it. */
function mayArriveLater(error: ErrorData): boolean {
  const { code } = error;
  return !isUnknown(error) && (policyOf(code)?.retry !== 'never' || code === 'UNDELIVERED');
}

/**
 * Sends what a workflow that ends has recorded for other runs: a cancel may come between the save of a transition and its events.
 * @throws an error that may pass: then the record stays with the outcome, and its next start sends them again
 */
export async function sendRecorded(services: ExecutorServices, messages: readonly WorkflowMessage[]): Promise<void> {
  for (const { id, to, event } of messages)
    await services.sendEvent(to.runId, { id, event }).catch((thrown) => {
      if (mayArriveLater(toErrorData(thrown))) throw thrown;
    });
}
