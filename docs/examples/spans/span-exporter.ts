// Spans of runs, model turns and tool calls, in one observer. `send` hands a span to the queue of your tracing service:
//   createExecutor({ models, observers: [spanExporter(send)] })
import type { ObservedRun, RunEvent, RunObserver } from 'pawl';

/** A piece of work with a beginning and an end: wall clock, ms. */
export interface Span {
  /** The run at the top, for all spans of its tree. */
  readonly traceId: string;
  readonly spanId: string;
  /** Absent at the top of a trace. */
  readonly parentId?: string;
  readonly name: string;
  readonly startedAt: number;
  readonly endedAt: number;
  /** `interrupted`: another process continues the run, with spans of its own. */
  readonly status: 'ok' | 'error' | 'interrupted';
  readonly attributes: Attributes;
}

type Attributes = Readonly<Record<string, string | number>>;
type Tokens = { readonly inputTokens: number; readonly outputTokens: number };
type Begun = Omit<Span, 'endedAt' | 'status'>;

/** An observer that sends each span once, at its end. */
export function spanExporter(send: (span: Span) => void): RunObserver {
  // By the object, not by the run's id: a start that is refused under the id of a live run is another object.
  const traces = new WeakMap<ObservedRun, Trace>();
  const live = new Map<string, Trace>();
  return {
    onEvent(event, run) {
      const { runId, type } = event;
      if (type === 'run.started' || type === 'run.resumed') {
        const span = runSpan(event, run, live.get(run.info.parentRunId));
        const trace = new Trace(send, span, type === 'run.started' ? { inputTokens: 0, outputTokens: 0 } : undefined);
        traces.set(run, trace);
        live.set(runId, trace);
      }
      traces.get(run)?.take(event);
      const isOver = type === 'run.ended' || type === 'run.parked';
      if (isOver && live.get(runId) === traces.get(run)) live.delete(runId);
    },
  };
}

function runSpan({ runId, seq, at }: RunEvent, run: ObservedRun, parent: Trace | undefined): Begun {
  const { info, origin, starts, rootRunId } = run;
  return {
    traceId: rootRunId,
    // A run that continues in another process has a span there too.
    spanId: `${runId}#${seq}`,
    ...(parent ? { parentId: parent.run.spanId } : {}),
    name: info.name,
    startedAt: at,
    attributes: { agent: info.subjectId, origin, starts },
  };
}

/** The spans of one run in this process. */
class Trace {
  readonly run: Begun;
  readonly #send: (span: Span) => void;
  /** By their ids. */
  readonly #open = new Map<string, Begun>();
  /** The run's tokens up to now; undefined in a process that continues a run, until its first step is over. */
  #used: Tokens | undefined;

  constructor(send: (span: Span) => void, run: Begun, used: Tokens | undefined) {
    this.#send = send;
    this.run = run;
    this.#used = used;
    this.#open.set(run.spanId, run);
  }

  take(event: RunEvent): void {
    const { at } = event;
    if (event.type === 'step.started') this.#begin(`step ${event.step}`, { at, in: this.run });
    else if (event.type === 'step.done') {
      this.#end(`step ${event.step}`, { at, status: 'ok', add: this.#tokensOf(event.usage) });
    } else if (event.type === 'tool.started') {
      const { step, callId, name, effect, attempt } = event;
      const around = this.#open.get(this.#idOf(`step ${step}`)) ?? this.run;
      this.#begin(callId, { at, in: around, name, attributes: { effect, attempt } });
    } else if (event.type === 'tool.done') {
      const status = event.output.type.startsWith('error') ? 'error' : 'ok';
      this.#end(event.callId, { at, status, add: { ms: event.ms } });
    } else if (event.type === 'run.ended') this.#endAll(event);
    // The next process has spans of its own.
    else if (event.type === 'run.parked')
      this.#endAll({ at: event.at, status: 'interrupted', error: { code: event.code } });
  }

  /** The event has the run's total: a step's own tokens are what it adds to the last one. */
  #tokensOf(total: Tokens): Attributes {
    const before = this.#used;
    this.#used = total;
    if (!before) return {};
    const inputTokens = total.inputTokens - before.inputTokens;
    return { inputTokens, outputTokens: total.outputTokens - before.outputTokens };
  }

  #idOf(part: string): string {
    return `${this.run.spanId}/${part}`;
  }

  #begin(part: string, begun: { at: number; in: Begun; name?: string; attributes?: Attributes }): void {
    const { at, name = part, attributes = {} } = begun;
    const spanId = this.#idOf(part);
    const { traceId } = this.run;
    this.#open.set(spanId, { traceId, spanId, parentId: begun.in.spanId, name, startedAt: at, attributes });
  }

  /** A late result has no span any more. */
  #end(part: string, { at, status, add }: { at: number; status: Span['status']; add: Attributes }): void {
    const begun = this.#open.get(this.#idOf(part));
    if (!begun) return;
    this.#open.delete(begun.spanId);
    this.#send({ ...begun, endedAt: at, status, attributes: { ...begun.attributes, ...add } });
  }

  #endAll({ at, status, error }: { at: number; status: string; error?: { code: string } }): void {
    const known = status === 'ok' || status === 'interrupted' ? status : 'error';
    const add = error ? { error: error.code } : {};
    for (const begun of [...this.#open.values()].reverse())
      this.#send({ ...begun, endedAt: at, status: known, attributes: { ...begun.attributes, ...add } });
    this.#open.clear();
  }
}
