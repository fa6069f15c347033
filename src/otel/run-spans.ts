import { type Attributes, context, ROOT_CONTEXT, type Span, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import type { RunEvent, TracedCall } from '../index.ts';
import { contentOf, genAi, nameOfSpan, operations, own } from './names.ts';
import { codeOf, replyAttributes } from './replies.ts';
import type { RunTrace } from './run-trace.ts';

/** Most events of one span; later ones are counted. */
const MAX_SPAN_EVENTS = 128;

/** An attempt that begins in this process. */
interface BegunAttempt {
  readonly attempt: number;
  /** Wall clock, ms. */
  readonly at: number;
  /** Its span, if it began with the trace. */
  readonly early: Span | undefined;
}

/** The spans of one attempt in this process: its own, and those of its calls. */
export class RunSpans {
  readonly #trace: RunTrace;
  readonly #attempt: number;
  readonly #span: Span;
  /** Made with the first call: thousands of runs wait for a model. */
  #tools: Map<string, Span> | undefined;
  /** Calls that are over. They end once the store has their results: until then a successor would tell them as lost. */
  #done: { readonly span: Span; readonly at: number }[] | undefined;
  /** Whether the record has this attempt, so that a successor would tell it. */
  #isSaved = false;
  #events = 0;
  #isLost = false;
  /** What the model has said in its newest request, as readers of events get it. Empty without contents. */
  #answer = '';

  constructor(runTrace: RunTrace, { attempt, at, early }: BegunAttempt) {
    this.#trace = runTrace;
    this.#attempt = attempt;
    this.#span = runTrace.startAttempt(attempt, at, early).setAttribute(own.origin, runTrace.run.origin);
    if (attempt === 1) this.#say(this.#span, genAi.inputMessages, messageOf('user', runTrace.run.info.prompt));
  }

  /** Takes an event. @returns whether the attempt is over */
  take(event: RunEvent): boolean {
    const { at } = event;
    switch (event.type) {
      case 'tool.started':
        this.#toolStarted(event);
        return false;
      case 'tool.done':
        if (!event.isLate) this.#toolDone(event);
        return false;
      case 'wait.opened':
        this.#toolWaits(event.wait.callId, at);
        this.#note(event.type, { kind: event.wait.kind, wait: event.wait.id, ...ruleIn(event.wait) }, at);
        return false;
      case 'wait.answered':
        this.#note(event.type, { kind: event.kind, wait: event.waitId, how: event.how }, at);
        return false;
      case 'wait.refused':
        this.#note(event.type, { wait: event.waitId, [own.code]: event.code }, at);
        return false;
      case 'wait.expired':
      case 'wait.withdrawn':
        this.#note(event.type, { kind: event.kind, wait: event.waitId }, at);
        return false;
      case 'model.delta':
        if (event.kind === 'text') this.#keepAnswer(event.text);
        return false;
      case 'step.done':
        if (event.spend) this.#span.setAttribute(own.spendUsd, event.spend.usd);
        return false;
      case 'checkpoint.saved':
        this.#isSaved = true;
        // What ended while the save was under way is not in it.
        this.#endDone(Math.ceil(at - event.ms));
        return false;
      case 'lease.lost':
        // The process that has the run now tells this attempt, and its open calls.
        this.#isLost = true;
        this.#done = undefined;
        return false;
      case 'run.parked':
        return this.#end(at, { [own.status]: 'parked', [own.code]: event.code });
      case 'run.ended':
        return this.#ended(event);
      default:
        return false;
    }
  }

  /** Makes a call in the context of its span. */
  enter(call: TracedCall, next: () => Promise<unknown>): void {
    if (call.kind === 'model') this.#askModel(call, next);
    else {
      const span = this.#tools?.get(call.callId) ?? this.#span;
      void context.with(trace.setSpan(ROOT_CONTEXT, span), next);
    }
  }

  #askModel(call: Extract<TracedCall, { kind: 'model' }>, next: () => Promise<unknown>): void {
    const { step, provider, modelId, purpose } = call;
    if (!purpose) this.#answer = '';
    const span = this.#trace.start({
      ...{ name: `${operations.model} ${modelId}`, kind: SpanKind.CLIENT, parent: this.#span.spanContext() },
      attributes: {
        ...{ [genAi.operation]: operations.model, [genAi.provider]: nameOfSpan(provider), [own.step]: step },
        // Models are asked for streams alone.
        ...{
          [genAi.requestModel]: nameOfSpan(modelId),
          [genAi.requestStream]: true,
          [own.runId]: this.#trace.run.info.runId,
        },
        ...(purpose ? { [own.purpose]: purpose } : {}),
      },
    });
    const made = context.with(trace.setSpan(ROOT_CONTEXT, span), next);
    void made.then(
      (reply) => this.#endRequest(span, { reply, answer: purpose ? '' : this.#answer }),
      (error) => this.#endRequest(span, { error }),
    );
  }

  #endRequest(span: Span, end: { reply: unknown; answer: string } | { error: unknown }): void {
    try {
      if ('error' in end) fail(span, codeOf(end.error));
      else {
        span.setAttributes(replyAttributes(end.reply));
        if (end.answer !== '') this.#say(span, genAi.outputMessages, messageOf('assistant', end.answer));
      }
      span.end();
    } catch (error) {
      // A processor of the host may throw: no code waits for the end of a span.
      this.#trace.options.warn('callback.threw', { what: 'tracing', error });
    }
  }

  /** Keeps the beginning of what the model says. */
  #keepAnswer(text: string): void {
    const { contentChars } = this.#trace.options;
    if (contentChars !== undefined && this.#answer.length <= contentChars)
      this.#answer += text.slice(0, contentChars + 1);
  }

  /** Adds a content to a span, where the host asked for contents. */
  #say(span: Span | undefined, name: string, value: unknown): void {
    const { contentChars } = this.#trace.options;
    if (contentChars !== undefined) span?.setAttributes(contentOf(name, value, contentChars));
  }

  #toolStarted({ at, ...call }: Extract<RunEvent, { type: 'tool.started' }>): void {
    const span = this.#trace.startCall(call, at, { attempt: this.#attempt, parent: this.#span });
    this.#tools ??= new Map();
    this.#tools.set(call.callId, span);
    this.#say(span, genAi.toolArguments, call.input);
  }

  #toolDone({ callId, output, at }: Extract<RunEvent, { type: 'tool.done' }>): void {
    const span = this.#tools?.get(callId);
    this.#tools?.delete(callId);
    this.#say(span, genAi.toolResult, textIn(output));
    if (span && output.type.startsWith('error'))
      span.setAttribute(genAi.errorType, 'tool_error').setStatus({ code: SpanStatusCode.ERROR });
    if (!span || this.#isLost) return;
    // A process that is killed before its save returns exports no held span: those of a child run would miss their parent.
    if (!this.#isSaved || this.#trace.isAbove(span)) span.end(at);
    else {
      this.#done ??= [];
      this.#done.push({ span, at });
    }
  }

  #endDone(until: number): void {
    for (const { span, at } of this.#done ?? []) if (at <= until) span.end(at);
    this.#done = this.#done?.filter(({ at }) => at > until);
  }

  /** The call continues in another span, once its wait is over. */
  #toolWaits(callId = '', at = 0): void {
    const span = this.#tools?.get(callId);
    this.#tools?.delete(callId);
    span?.setAttribute(own.toolState, 'waiting').end(at);
  }

  #ended({ status, error, output, at }: Extract<RunEvent, { type: 'run.ended' }>): true {
    const isLeft = status === 'interrupted' || status === 'waiting';
    if (!isLeft) this.#say(this.#span, genAi.outputMessages, messageOf('assistant', output));
    if (status !== 'ok' && !isLeft)
      this.#span.setStatus({ code: SpanStatusCode.ERROR, message: error?.code ?? status });
    return this.#end(at, { [own.status]: status, ...(error ? { [genAi.errorType]: error.code } : {}) });
  }

  #end(at: number, attributes: Attributes): true {
    if (this.#isLost) return true;
    this.#endDone(at);
    for (const span of this.#tools?.values() ?? []) span.setAttribute(own.toolState, 'left').end(at);
    this.#tools = undefined;
    if (this.#events > MAX_SPAN_EVENTS) this.#span.setAttribute(own.eventsDropped, this.#events - MAX_SPAN_EVENTS);
    this.#span.setAttributes(attributes).end(at);
    return true;
  }

  #note(type: string, attributes: Attributes, at: number): void {
    this.#events += 1;
    if (this.#events <= MAX_SPAN_EVENTS) this.#span.addEvent(`pawl.${type}`, attributes, at);
  }
}

function fail(span: Span, code: string): void {
  span.setAttribute(genAi.errorType, code).setStatus({ code: SpanStatusCode.ERROR, message: code });
}

/** The rule that holds back a run which waits for its turn. */
function ruleIn(wait: Extract<RunEvent, { type: 'wait.opened' }>['wait']): Attributes {
  return wait.kind === 'limit' && wait.rule !== undefined ? { rule: wait.rule } : {};
}

/** A message of one text, as the conventions write it. */
function messageOf(role: string, content: string): object {
  return [{ role, parts: [{ type: 'text', content }] }];
}

/** The texts of a result: images and files are never shown. */
function textIn(output: Extract<RunEvent, { type: 'tool.done' }>['output']): unknown {
  if (output.type === 'execution-denied') return output.reason ?? '';
  if (output.type !== 'content') return output.value;
  return output.value.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n');
}
