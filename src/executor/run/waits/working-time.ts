import type { ActiveRun } from '../active-run.ts';

/**
 * The working time of a live run. It stands still, with the deadline and the critic, while the run waits, and while each of its
 * running calls is a child run that waits in this process.
 */
export class WorkingTime {
  readonly #run: ActiveRun;
  /** Whether the run itself waits. */
  #isWaiting = false;

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

  /** Stops or starts the time, if its run or one of its children has changed. The run above may have to do the same. */
  look(): void {
    const { life, services, parent } = this.#run;
    const isStill = this.#isWaiting || hasOnlyWaitingChildren(this.#run);
    if (isStill === (life.idleSince !== undefined)) return;
    if (isStill) this.#pause();
    else this.#resume();
    if (parent) services.registry.live(parent.runId)?.waits.look();
  }

  #pause(): void {
    const { life, services, resources } = this.#run;
    life.idleSince = services.config.clock.monotonic();
    life.deadline?.pause();
    resources.monitor?.pause();
  }

  #resume(): void {
    const { life, services, resources, actor } = this.#run;
    life.startedAt += services.config.clock.monotonic() - (life.idleSince as number);
    life.idleSince = undefined;
    // A run that leaves, or is stopped, does not work again.
    if (life.isFinished || actor.getSnapshot().context.cause) return;
    life.deadline?.resume();
    resources.monitor?.resume();
  }
}

function hasOnlyWaitingChildren({ resources, progress }: ActiveRun): boolean {
  const { children } = resources;
  if (children.size === 0) return false;
  const running = progress?.openStep?.calls.filter(({ state }) => state === 'started') ?? [];
  const waiting = new Set<string | undefined>();
  for (const { life, parent } of children) if (life.idleSince !== undefined) waiting.add(parent?.callId);
  return running.length > 0 && running.every(({ callId }) => waiting.has(callId));
}
