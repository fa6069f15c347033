import type { RunEmitted } from '../../../machines/context.ts';
import { UndeliveredError } from '../../values/errors.ts';
import type { JsonObject } from '../../values/json.ts';
import type { ActiveRun } from './active-run.ts';

type Entered = 'durable' | 'queued';

/** Machine events on their way into the workflow of a live run, each acknowledged once it is stored. */
export class MachineEvents {
  readonly #run: ActiveRun;
  /** Made with the first event: most runs get none. */
  #waiting: Map<string, PromiseWithResolvers<Entered>> | undefined;

  constructor(run: ActiveRun) {
    this.#run = run;
  }

  /**
   * Sends an event to the machine.
   * @returns when the record has it (`durable`), or, without a record, the machine @throws {UndeliveredError} if the run is over, or leaves
   */
  send(id: string, event: JsonObject): Promise<Entered> {
    const known = this.#waiting?.get(id);
    if (known) return known.promise;
    if (this.#run.life.isOver || !this.#run.isActive) return Promise.reject(this.#tooLate());
    if (!this.#waiting) this.#run.onEnd(() => this.#refuseAll());
    this.#waiting ??= new Map();
    const settle = Promise.withResolvers<Entered>();
    this.#waiting.set(id, settle);
    this.#run.send({ type: 'workflow.event', id, event });
    return settle.promise;
  }

  /** The machine has the event. */
  entered({ id, boundary }: Extract<RunEmitted, { type: 'event.entered' }>): void {
    const take = (how: Entered) => {
      this.#waiting?.get(id)?.resolve(how);
      this.#waiting?.delete(id);
    };
    if (this.#run.isDurable) this.#run.checkpointing.whenPersisted(boundary, () => take('durable'));
    else take('queued');
  }

  #refuseAll(): void {
    for (const settle of this.#waiting?.values() ?? []) settle.reject(this.#tooLate());
    this.#waiting?.clear();
  }

  #tooLate(): UndeliveredError {
    return new UndeliveredError(`run ${this.#run.runId} is over, or leaves this process: the event was not delivered`);
  }
}
