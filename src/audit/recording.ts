import type { RunEvent } from '../run/events/body.ts';
import { type AuditedAs, isAuditedAs } from '../run/events/table.ts';
import type { JsonObject, JsonValue } from '../values/json.ts';
import type { AuditedPhase, AuditRecorder } from './port.ts';

/** How many answered calls are remembered, in case a late result arrives. */
const MAX_ANSWERED = 100;

/** The fields of a call that its end does not repeat. */
type StartedCall = Pick<Extract<RunEvent, { type: 'tool.started' }>, 'attempt' | 'input'>;

/** Passes the events of one run to the methods of its recorder: as they happen, or as a journal has them. */
export class AuditRecording {
  readonly #recorder: Omit<AuditRecorder, 'close'>;
  readonly #calls = new Map<string, StartedCall>();
  /** A call that timed out is done once for the run, and perhaps again when its late result arrives. */
  readonly #answered = new Map<string, StartedCall>();

  constructor(recorder: Omit<AuditRecorder, 'close'>) {
    this.#recorder = recorder;
  }

  /** Passes an event on. @returns what the recorder returned */
  take(event: RunEvent): unknown {
    const recorder = this.#recorder;
    if (event.type === 'step.snapshot') return this.#expect(event);
    if (isAuditedAs(event, 'skip')) return undefined;
    if (isAuditedAs(event, 'step')) {
      return recorder.onStep?.({
        ...{ step: event.step, usage: event.usage, tools: event.tools },
        ...(event.answer ? { model: event.answer.model } : {}),
      });
    }
    if (isAuditedAs(event, 'tool')) return event.type === 'tool.started' ? this.#begin(event) : this.#end(event);
    if (isAuditedAs(event, 'phase')) return recorder.onPhase?.(phaseOf(event));
    const { type, runId: _, ...fields } = event;
    return recorder.logEvent?.(type, fields as unknown as JsonObject);
  }

  /** A journal keeps no start of a call that only reads: the message of its step has the input. */
  #expect({ content }: Extract<RunEvent, { type: 'step.snapshot' }>): void {
    for (const part of content) {
      if (part.type !== 'tool-call' || this.#calls.has(part.toolCallId)) continue;
      this.#calls.set(part.toolCallId, { attempt: 1, input: (part.input ?? null) as JsonValue });
    }
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
