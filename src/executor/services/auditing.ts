import type { Audit, AuditRecorder } from '../../audit/port.ts';
import { AuditRecording } from '../../audit/recording.ts';
import type { Warn } from '../../log/log.ts';
import type { RunEvent } from '../../run/events/body.ts';
import type { RunInfo } from '../../run/request.ts';
import type { RunOutput } from '../../run/result.ts';
import type { Clock } from '../../values/clock.ts';
import { withDeadline } from '../../values/deadline.ts';
import { isObject } from '../../values/json.ts';
import { isThenable, letGo } from '../../values/thenable.ts';
import { guarded } from '../host/guard.ts';
import type { Observer } from '../host/observers.ts';

interface Surroundings {
  readonly clock: Clock;
  readonly warn: Warn;
  /** Longest time that closing may take, ms. */
  readonly ms: number;
}

/** Passes the events of a run to its audit recorder. A failing recorder never affects the run. */
export class Auditing implements Observer {
  readonly #recorder: AuditRecorder;
  readonly #around: Surroundings;
  readonly #take: ((event: RunEvent) => void) | undefined;
  #isClosed = false;

  private constructor(recorder: AuditRecorder, around: Surroundings) {
    this.#recorder = recorder;
    this.#around = around;
    const recording = new AuditRecording(recorder);
    this.#take = guarded('an audit recorder', (event: RunEvent) => recording.take(event), around.warn);
  }

  /** Starts the audit of a run. @returns undefined if there is no audit, or it returns no recorder */
  static start(audit: Audit | undefined, info: RunInfo, around: Surroundings): Auditing | undefined {
    if (!audit) return undefined;
    try {
      const recorder: unknown = audit.startRun(info);
      letGo(recorder);
      const isRecorder = isObject(recorder) && !isThenable(recorder);
      return isRecorder ? new Auditing(recorder as unknown as AuditRecorder, around) : undefined;
    } catch (error) {
      around.warn('audit.failed', {
        runId: info.runId,
        outcome: 'the run is not recorded in it',
        error,
      });
      return undefined;
    }
  }

  onEvent(event: RunEvent): void {
    if (!this.#isClosed) this.#take?.(event);
  }

  /** The last call. Never rejects. */
  async close({ status, output, error, ...totals }: RunOutput, elapsedMs: number): Promise<void> {
    this.#isClosed = true;
    const { clock, warn, ms } = this.#around;
    const { usage, iterations, saveErrors, spend } = totals;
    try {
      const sums = { usage, iterations, saveErrors, elapsedMs, ...(spend ? { spend } : {}) };
      const closed = Promise.resolve(this.#recorder.close(status, output, error, sums));
      await withDeadline(closed, { ms, clock, what: 'audit close' });
    } catch (thrown) {
      warn('audit.failed', { outcome: 'its recorder could not be closed', error: thrown });
    }
  }
}
