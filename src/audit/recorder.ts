import type { RunStatus } from '../run/finalize.ts';
import type { RunInfo } from '../run/request.ts';
import type { Clock } from '../values/clock.ts';
import type { ErrorData } from '../values/error-data.ts';
import { isObject, type JsonObject, type JsonValue } from '../values/json.ts';
import { isThenable, letGo } from '../values/thenable.ts';
import type { Usage } from '../values/usage.ts';
import type { Entry, RunHandle, RunRow } from './entries.ts';
import type { AuditedPhase, AuditedStep, AuditedTool, AuditRecorder, AuditTotals } from './port.ts';
import type { EntryQueue } from './queue.ts';

/** The kind of a value that may have to be redacted. */
export type AuditField =
  | 'prompt'
  | 'inputs'
  | 'output'
  | 'error'
  | 'tool.input'
  | 'tool.output'
  | 'phase.output'
  | 'event';

/** Returns what is written instead of a value. */
export type Redact = (field: AuditField, value: JsonValue) => unknown;

/** What all recorders of an audit share. */
export interface Recording {
  readonly queue: EntryQueue;
  readonly clock: Clock;
  readonly redact: Redact | undefined;
  /** The most characters of a tool's input or output, or of an event. */
  readonly maxChars: number;
}

/** Prompt, inputs and outputs of a run may be this many times as long as a tool's output. */
const RUN_TEXTS = 16;

/** Written instead of a value that could not be redacted. */
const unredacted = '[not written: redact failed]';

/** Records one run in one process: turns its events, saves and end into audit entries. Its methods never throw. */
export class Recorder implements AuditRecorder {
  readonly #recording: Recording;
  readonly #run: RunHandle = { place: undefined, dropped: 0 };
  readonly #row: RunRow;
  #isClosed = false;

  constructor(recording: Recording, info: RunInfo) {
    this.#recording = recording;
    this.#row = this.#rowOf(info);
    this.#add({ type: 'begin', at: this.#now(), row: this.#row });
  }

  onStep(step: AuditedStep): void {
    this.#attempt(() => {
      const { step: count, usage, tools } = step;
      const text = clipJson({ step: count, usage, tools }, this.#recording.maxChars);
      this.#add({ type: 'step', at: this.#now(), text, progress: { step: finite(count), usage: finiteUsage(usage) } });
    });
  }

  onTool(call: AuditedTool): void {
    this.#attempt(() => {
      const { input, output, ...rest } = call;
      const head = JSON.stringify(rest);
      // Each is clipped on its own, so that a long input does not shorten the output.
      const values = `"input":${this.#json('tool.input', input)},"output":${this.#json('tool.output', output as unknown as JsonValue)}`;
      this.#add({ type: 'tool', at: this.#now(), text: `${head.slice(0, -1)},${values}}` });
    });
  }

  onPhase({ output, ...phase }: AuditedPhase): void {
    this.#attempt(() => {
      const done = output === undefined ? {} : { output: this.#text('phase.output', output) };
      this.#add({ type: 'phase', at: this.#now(), text: JSON.stringify({ ...phase, ...done }) });
    });
  }

  logEvent(type: string, fields: JsonObject): void {
    this.#attempt(() => {
      const text = `{"type":${JSON.stringify(String(type))},"fields":${this.#json('event', fields)}}`;
      this.#add({ type: 'event', at: this.#now(), text, isNewRun: type === 'run.started' });
    });
  }

  async close(status: RunStatus, output: string, error: ErrorData | undefined, totals: AuditTotals): Promise<void> {
    this.#attempt(() => {
      const { usage, iterations, elapsedMs, saveErrors, spend } = totals;
      const end = {
        status,
        output: this.#text('output', output),
        usage: finiteUsage(usage),
        iterations: finite(iterations),
        elapsedMs: finite(elapsedMs),
        saveErrors: finite(saveErrors),
        spend: spend && { tokens: finite(spend.tokens), usd: finite(spend.usd), seconds: finite(spend.seconds) },
      };
      const told = error === undefined ? null : this.#json('error', error as unknown as JsonValue);
      this.#add({ type: 'close', at: this.#now(), ...end, error: told });
    });
    this.#isClosed = true;
    await this.#recording.queue.flush();
  }

  #rowOf(info: RunInfo): RunRow {
    const { runId, parentRunId, callerId, channelId, guildId, modelTier, startedAt } = info;
    return {
      runId,
      parentRunId,
      agentId: info.subjectId,
      agentName: info.name,
      callerId,
      channelId,
      guildId,
      modelTier,
      prompt: this.#text('prompt', info.prompt),
      inputs: clipJson(this.#redacted('inputs', info.inputs), RUN_TEXTS * this.#recording.maxChars),
      startedAt: finite(startedAt),
    };
  }

  #add(entry: Entry): void {
    if (!this.#isClosed) this.#recording.queue.add({ run: this.#run, row: this.#row, entry });
  }

  #now(): number {
    return finite(this.#recording.clock.now());
  }

  /** A text of the run itself, or of one of its phases. */
  #text(field: AuditField, text: string): string {
    const redacted = this.#redacted(field, text);
    const most = RUN_TEXTS * this.#recording.maxChars;
    return typeof redacted === 'string' ? clipText(redacted, most) : clipJson(redacted, most);
  }

  #json(field: AuditField, value: JsonValue): string {
    return clipJson(this.#redacted(field, value), this.#recording.maxChars);
  }

  #redacted(field: AuditField, value: JsonValue): unknown {
    const { redact } = this.#recording;
    if (!redact) return value;
    try {
      const redacted = redact(field, value);
      if (!isThenable(redacted)) return redacted;
      letGo(redacted);
      return unredacted;
    } catch {
      return unredacted;
    }
  }

  #attempt(work: () => void): void {
    try {
      work();
    } catch {
      this.#recording.queue.drop(this.#run, 'what was recorded cannot be read');
    }
  }
}

/** Columns cannot store NaN. */
function finite(value: number): number {
  return Number.isFinite(value) ? value : 0;
}

function finiteUsage(usage: Usage): Usage {
  return {
    inputTokens: finite(usage.inputTokens),
    outputTokens: finite(usage.outputTokens),
    reasoningTokens: finite(usage.reasoningTokens),
    cacheReadTokens: finite(usage.cacheReadTokens),
    cacheWriteTokens: finite(usage.cacheWriteTokens),
  };
}

/** Clips a long text, and says how many characters are missing. */
function clipText(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most)}… (${text.length - most} more characters)`;
}

/**
 * A value as JSON of bounded length. Long texts in it are clipped. If it is still too long, the result is
 * `{ clipped }` with the beginning of its JSON. A value that cannot be written as JSON becomes `null`.
 */
function clipJson(value: unknown, most: number): string {
  try {
    const text = JSON.stringify(withoutLongTexts(value, most)) ?? 'null';
    if (text.length <= 2 * most) return text;
    const clip = (_: string, each: unknown) => (typeof each === 'string' ? clipText(each, most) : each);
    const clipped = JSON.stringify(value, clip);
    return clipped.length <= 2 * most ? clipped : JSON.stringify({ clipped: clipText(clipped, most) });
  } catch {
    return 'null';
  }
}

/** Most long texts are in a tool's output: clipping them before they are encoded saves their encoding. */
function withoutLongTexts(value: unknown, most: number): unknown {
  if (typeof value === 'string') return clipText(value, most);
  if (!isObject(value) || typeof value.value !== 'string' || value.value.length <= most) return value;
  return { ...value, value: clipText(value.value, most) };
}
