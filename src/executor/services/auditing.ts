import type { Audit, AuditRecorder } from '../../audit/port.ts';
import type { RunEvent } from '../../run/events.ts';
import type { ToolFacts } from '../../run/progress.ts';
import type { RunInfo } from '../../run/request.ts';
import type { RunOutput } from '../../run/result.ts';
import type { Clock } from '../../values/clock.ts';
import { withDeadline } from '../../values/deadline.ts';
import { toErrorData } from '../../values/error-data.ts';
import { isObject, type JsonObject } from '../../values/json.ts';
import { isThenable, letGo } from '../../values/thenable.ts';
import { guarded, type Warn } from '../host/guard.ts';

/** Events that go to `logEvent` as they are. */
const logged: readonly RunEvent['type'][] = [
  'run.started',
  'run.resumed',
  'model.retry',
  'checkpoint.saved',
  'checkpoint.failed',
  'steer.queued',
  'steer.applied',
];

/** So many calls that were answered are remembered, in case they come back late. */
const MAX_ANSWERED = 100;

interface Surroundings {
  facts(): ToolFacts;
  readonly clock: Clock;
  readonly warn: Warn;
  /** Longest time that closing may take, ms. */
  readonly ms: number;
}

interface StartedCall {
  readonly at: number;
  readonly step: number;
  readonly attempt: number;
  readonly input: Extract<RunEvent, { type: 'tool.started' }>['input'];
}

/** Hands what happens in a run to its audit recorder. Whatever the recorder does, the run does not notice. */
export class Auditing {
  readonly #recorder: AuditRecorder;
  readonly #around: Surroundings;
  readonly #calls = new Map<string, StartedCall>();
  /** A call that timed out is done once for the run, and perhaps once more when it comes back. */
  readonly #answered = new Map<string, StartedCall>();
  readonly #take: ((event: RunEvent) => void) | undefined;

  private constructor(recorder: AuditRecorder, around: Surroundings) {
    this.#recorder = recorder;
    this.#around = around;
    this.#take = guarded('an audit recorder', (event: RunEvent) => this.#record(event), around.warn);
  }

  /** @returns undefined when there is no audit, or it gives no recorder */
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

  take(event: RunEvent): void {
    this.#take?.(event);
  }

  /** Something that is no event of the run. */
  log(type: string, fields: JsonObject): void {
    guarded('an audit recorder', () => this.#recorder.logEvent?.(type, fields), this.#around.warn)?.();
  }

  /** Never rejects. */
  async close({ status, output, error, ...totals }: RunOutput, elapsedMs: number): Promise<void> {
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
    if (event.type === 'step.done') {
      return recorder.onStep?.({ step: event.step, usage: event.usage, tools: event.tools });
    }
    if (event.type === 'tool.started') return this.#begin(event);
    if (event.type === 'tool.done') return this.#end(event);
    if (event.type === 'phase.started' || event.type === 'phase.skipped') {
      const state = event.type === 'phase.started' ? 'started' : 'skipped';
      return recorder.onPhase?.({ index: event.index, name: event.name, state });
    }
    if (event.type === 'phase.done') {
      return recorder.onPhase?.({ index: event.index, name: event.name, state: 'done', output: event.output });
    }
    if (!logged.includes(event.type)) return undefined;
    const { type, runId: _, ...fields } = event;
    return recorder.logEvent?.(type, fields as unknown as JsonObject);
  }

  #begin({ callId, step, attempt, input }: Extract<RunEvent, { type: 'tool.started' }>): void {
    this.#calls.set(callId, { at: this.#around.clock.monotonic(), step, attempt, input });
  }

  #end({ callId, name, output, isLate }: Extract<RunEvent, { type: 'tool.done' }>): unknown {
    const call = isLate ? this.#answered.get(callId) : this.#calls.get(callId);
    if (!call) return undefined;
    if (isLate) this.#answered.delete(callId);
    else this.#hasAnswered(callId, call);
    const { clock } = this.#around;
    const facts = this.#around.facts();
    return this.#recorder.onTool?.({
      step: call.step,
      callId,
      name,
      effect: Object.hasOwn(facts, name) ? (facts[name]?.effect ?? 'read') : 'read',
      attempt: call.attempt,
      input: call.input,
      output,
      ms: clock.monotonic() - call.at,
      ...(isLate ? { isLate } : {}),
    });
  }

  #hasAnswered(callId: string, call: StartedCall): void {
    this.#calls.delete(callId);
    this.#answered.set(callId, call);
    const [oldest] = this.#answered.keys();
    if (this.#answered.size > MAX_ANSWERED && oldest !== undefined) this.#answered.delete(oldest);
  }
}
