import type { ActiveRun } from '../active-run.ts';

/**
 * The working time of a live run. It stands still, with the deadline and the critic, while the run waits, and while each of its
 * running calls is a child run that waits in this process.
 */
export class WorkingTime {
  readonly #run: ActiveRun;
  /** Whether the run itself waits. */
  #isWaiting = false;
  /** Whether a model call of it waits for its turn in this process. */
  #isHeld = false;

  constructor(run: ActiveRun) {
    this.#run = run;
  }

  /** The run itself begins to wait. */
  stop(): void {
    this.#isWaiting = true;
    this.look();
  }

  /** The run works again, or ends. */
  start(): void {
    this.#isWaiting = false;
    this.look();
  }

  /** A model call of the run waits for its turn, or waits no more. */
  hold(isHeld: boolean): void {
    this.#isHeld = isHeld;
    this.look();
  }

  /** Stops or starts the time, if its run or one of its children has changed. The run above may have to do the same. */
  look(): void {
    const { time, services, parent } = this.#run;
    const isStill = this.#isWaiting || this.#isHeld || hasOnlyWaitingChildren(this.#run);
    if (isStill === time.isStill) return;
    if (isStill) this.#pause();
    else this.#resume();
    if (parent) services.registry.live(parent.runId)?.waits.look();
  }

  #pause(): void {
    const { time, resources } = this.#run;
    time.pause();
    resources.monitor?.pause();
  }

  #resume(): void {
    const { life, time, resources, actor } = this.#run;
    // A run that leaves, or is stopped, does not work again.
    const isAtWork = !life.isOver && !actor.getSnapshot().context.cause;
    time.resume(isAtWork);
    if (isAtWork) resources.monitor?.resume();
  }
}

function hasOnlyWaitingChildren({ resources, progress }: ActiveRun): boolean {
  const { children } = resources;
  if (children.size === 0) return false;
  const running = progress?.openStep?.calls.filter(({ state }) => state === 'started') ?? [];
  const waiting = new Set<string | undefined>();
  for (const { time, parent } of children) if (time.isStill) waiting.add(parent?.callId);
  return running.length > 0 && running.every(({ callId }) => waiting.has(callId));
}
