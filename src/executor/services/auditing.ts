import type { Audit, AuditedPhase, AuditRecorder } from '../../audit/port.ts';
import type { RunEvent } from '../../run/events/body.ts';
import { type AuditedAs, isAuditedAs } from '../../run/events/table.ts';
import type { RunInfo } from '../../run/request.ts';
import type { RunOutput } from '../../run/result.ts';
import type { Clock } from '../../values/clock.ts';
import { withDeadline } from '../../values/deadline.ts';
import { toErrorData } from '../../values/error-data.ts';
import { isObject, type JsonObject } from '../../values/json.ts';
import { isThenable, letGo } from '../../values/thenable.ts';
import { guarded, type Warn } from '../host/guard.ts';
import type { Observer } from '../host/observers.ts';

/** How many answered calls are remembered, in case a late result arrives. */
const MAX_ANSWERED = 100;

interface Surroundings {
  readonly clock: Clock;
  readonly warn: Warn;
  /** Longest time that closing may take, ms. */
  readonly ms: number;
}

/** The fields of a call that its end does not repeat. */
type StartedCall = Pick<Extract<RunEvent, { type: 'tool.started' }>, 'attempt' | 'input'>;

/** Passes the events of a run to its audit recorder. A failing recorder never affects the run. */
export class Auditing implements Observer {
  readonly #recorder: AuditRecorder;
  readonly #around: Surroundings;
  readonly #calls = new Map<string, StartedCall>();
  /** A call that timed out is done once for the run, and perhaps again when its late result arrives. */
  readonly #answered = new Map<string, StartedCall>();
  readonly #take: ((event: RunEvent) => void) | undefined;
  #isClosed = false;

  private constructor(recorder: AuditRecorder, around: Surroundings) {
    this.#recorder = recorder;
    this.#around = around;
    this.#take = guarded('an audit recorder', (event: RunEvent) => this.#record(event), around.warn);
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
      around.warn('run: the audit threw; the run is not recorded in it', { error: toErrorData(error) });
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
      warn('run: an audit recorder could not be closed', { error: toErrorData(thrown) });
    }
  }

  #record(event: RunEvent): unknown {
    const recorder = this.#recorder;
    if (isAuditedAs(event, 'skip')) return undefined;
    if (isAuditedAs(event, 'step')) {
      return recorder.onStep?.({ step: event.step, usage: event.usage, tools: event.tools });
    }
    if (isAuditedAs(event, 'tool')) return event.type === 'tool.started' ? this.#begin(event) : this.#end(event);
    if (isAuditedAs(event, 'phase')) return recorder.onPhase?.(phaseOf(event));
    const { type, runId: _, ...fields } = event;
    return recorder.logEvent?.(type, fields as unknown as JsonObject);
  }

  #begin({ callId, attempt, input }: Extract<RunEvent, { type: 'tool.started' }>): void {
    this.#calls.set(callId, { attempt, input });
  }

  #end({ step, callId, name, effect, output, ms, isLate }: Extract<RunEvent, { type: 'tool.done' }>): unknown {
    const call = isLate ? this.#answered.get(callId) : this.#calls.get(callId);
    if (!call) return undefined;
    if (isLate) this.#answered.delete(callId);
    else this.#hasAnswered(callId, call);
    const { attempt, input } = call;
    const late = isLate ? { isLate } : {};
    return this.#recorder.onTool?.({ step, callId, name, effect, attempt, input, output, ms, ...late });
  }

  #hasAnswered(callId: string, call: StartedCall): void {
    this.#calls.delete(callId);
    this.#answered.set(callId, call);
    const [oldest] = this.#answered.keys();
    if (this.#answered.size > MAX_ANSWERED && oldest !== undefined) this.#answered.delete(oldest);
  }
}

function phaseOf(event: AuditedAs<'phase'>): AuditedPhase {
  const { index, name } = event;
  if (event.type === 'phase.done') return { index, name, state: 'done', output: event.output };
  return { index, name, state: event.type === 'phase.started' ? 'started' : 'skipped' };
}
