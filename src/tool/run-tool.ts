import type { ToolEffect, WaitEnd } from '../run/open-step.ts';
import type { ImageInput, ImagePart } from '../run/request.ts';
import { imagePartOf } from '../run/request.ts';
import type { Clock } from '../values/clock.ts';
import { readProperty, toErrorData } from '../values/error-data.ts';
import { frozenJson, type JsonValue, prototypeKeyIn } from '../values/json.ts';
import type { Message, ToolOutput } from '../values/message.ts';
import type { ToolWait } from './call-waits.ts';
import type { Tool, ToolContext } from './define-tool.ts';
import {
  checkUrl,
  errorText,
  isBrokenConnection,
  isToolOutput,
  type OutputRule,
  ReadyOutput,
  thrownOutput,
  toToolOutput,
  withImages,
} from './output.ts';
import { RequestedWaits } from './requested-waits.ts';
import type { Validation } from './schema.ts';
import { goneTool, unfitInput } from './unfit.ts';

/** One call as the model made it; `attempt` counts its starts, this one included. */
export interface ToolCall {
  readonly callId: string;
  readonly name: string;
  readonly input: JsonValue;
  readonly attempt: number;
  /** Its effect when the model made it; absent = that of the tool. */
  readonly effect?: ToolEffect;
  /** The recorded ends of its waits, in order. */
  readonly answers?: readonly WaitEnd[];
}

/** What the run provides for a call. */
export interface ToolEnvironment {
  /** `runState` is read when the tool reads it, and few tools read the key. */
  readonly context: Pick<ToolContext, 'runId' | 'invocation'> & {
    readonly [Name in 'idempotencyKey' | 'runState']: () => ToolContext[Name];
  };
  /** The run's signal. An abort ends the call at once. */
  readonly signal: AbortSignal;
  readonly clock: Clock;
  /** For tools without a time limit of their own, ms. */
  readonly timeoutMs: number;
  /** The messages before the call, for tools of the AI SDK, which get them. */
  readonly transcript?: () => readonly Message[];
  /** Gets a result that came after the call had ended. */
  readonly onLate?: (output: ToolOutput) => void;
  /** A `once` call that had begun is aborted: it may take effect. */
  readonly onCut?: () => void;
  /** Gets the progress that the tool reports. */
  readonly onProgress?: (progress: JsonValue) => void;
  /** Calls the tool through the host's middleware. `next` returns the whole output, with the images that the tool attached. */
  readonly around?: ((signal: AbortSignal, next: () => Promise<ToolOutput>) => Promise<unknown>) | undefined;
}

/** The hidden key under which a tool call's context ends its execution: the call waits for what a part of Pawl needs. */
export const holdKey: unique symbol = Symbol('hold');

/** The hidden key under which a tool call's context carries the messages of the run: not part of the promise to tools. */
export const transcriptKey: unique symbol = Symbol('transcript');

/**
 * Runs one tool call and returns the output for the model, or the wait that the call needs. Never rejects: an unknown tool, an
 * input that does not fit or holds a key that could reach a prototype, a thrown error, a time limit and an abort all become
 * `error-text`. A `once` call that began and got no answer, by a time limit or a broken connection, has an unknown outcome.
 */
export async function runTool(
  tool: Tool | undefined,
  call: ToolCall,
  environment: ToolEnvironment,
): Promise<ToolOutput | ToolWait> {
  if (environment.signal.aborted) return errorText('aborted');
  if (tool === undefined) return errorText(goneTool(call.name));
  const key = prototypeKeyIn(call.input);
  if (key !== undefined) {
    return errorText(unfitInput(tool.name, `it holds the key ${key}, which no tool takes; leave it out`));
  }
  const running = new RunningCall(tool, call, environment);
  try {
    const result = running.start();
    return isPromise(result) ? await running.wait(result) : running.outputNow(result);
  } catch (error) {
    return running.close() ?? running.failed(error);
  }
}

class RunningCall {
  readonly #tool: Tool;
  readonly #call: ToolCall;
  readonly #environment: ToolEnvironment;
  /** Made when the tool first reads its signal: most never do. */
  #controller: AbortController | undefined;
  readonly #images: ImagePart[] = [];
  #resolve: (end: ToolOutput | ToolWait) => void = () => {};
  #timer: unknown;
  #isOver = false;
  #ended: ToolOutput | ToolWait | undefined;
  /** The call waits: what the tool still does has no effect. */
  #isHeld = false;
  /** Its input fits: the tool, or a middleware, may have sent a request. */
  #hasBegun = false;
  /** The tool runs, and has not awaited anything yet. */
  #isBeginning = false;
  /** Made when the tool first asks for something: most never do. */
  #waits: RequestedWaits | undefined;
  /** Why the call was ended from outside. */
  #stopped: { readonly reason: unknown } | undefined;

  constructor(tool: Tool, call: ToolCall, environment: ToolEnvironment) {
    this.#tool = tool;
    this.#call = call;
    this.#environment = environment;
  }

  /** Validates and executes; synchronously if schema and tool are synchronous. */
  start(): unknown {
    const { input } = this.#tool;
    if (typeof this.#call.input === 'string' && input.jsonSchema.type !== 'string') {
      throw new TypeError(unfitInput(this.#tool.name, 'the arguments are not valid JSON'));
    }
    const validation = input.validate(this.#call.input);
    return isPromise(validation) ? validation.then((result) => this.#execute(result)) : this.#execute(validation);
  }

  #execute(validation: Validation): unknown {
    if (this.#isOver) return undefined;
    const { around } = this.#environment;
    this.#hasBegun = validation.ok;
    if (validation.ok && around) return this.#executeThrough(around, validation.value);
    if (validation.ok) return this.#begin(validation.value);
    throw new TypeError(unfitInput(this.#tool.name, validation.message));
  }

  #begin(input: unknown): unknown {
    const context = this.#context();
    this.#isBeginning = true;
    try {
      return this.#tool.execute(input, context);
    } finally {
      this.#isBeginning = false;
    }
  }

  /** The return value of a middleware is checked like the output of a tool that made it itself. */
  async #executeThrough(around: NonNullable<ToolEnvironment['around']>, input: unknown): Promise<ReadyOutput> {
    let hasRun = false;
    const next = async () => {
      if (this.#isOver)
        throw new TypeError(`the call of tool "${this.#tool.name}" is over; it cannot be made any more`);
      const result: unknown = await this.#begin(input);
      hasRun = true;
      return withImages(toToolOutput(result, this.#rule), this.#images.splice(0));
    };
    try {
      const output = await around(this.#signal(), next);
      if (isToolOutput(output)) return new ReadyOutput(output);
      throw new TypeError(`a middleware of tool "${this.#tool.name}" must return the value of next(): { type, value }`);
    } catch (error) {
      if (!hasRun) throw error;
      // The model must not take this for a call that had no effect.
      throw new Error(`${toErrorData(error).message} (the tool had run; a middleware failed after it)`, {
        cause: error,
      });
    }
  }

  #context(): ToolContext {
    const { context, transcript } = this.#environment;
    const { callId, attempt } = this.#call;
    const signal = (): AbortSignal => this.#signal();
    const told: ToolContext & { [holdKey]?: unknown; [transcriptKey]?: unknown } = {
      runId: context.runId,
      callId,
      get idempotencyKey() {
        return context.idempotencyKey();
      },
      attempt,
      get signal() {
        return signal();
      },
      invocation: context.invocation,
      get runState() {
        return context.runState();
      },
      attachImages: (images) => {
        this.#images.push(...images.map((image, i) => this.#imagePart(image, `images[${i}]`)));
      },
      progress: (value) => this.#report(value),
      ask: (question) => this.#requested.ask(question),
      waitFor: (name, event) => this.#requested.waitFor(name, event),
      sleep: (duration) => this.#requested.sleep(duration),
      sleepUntil: (time) => this.#requested.sleepUntil(time),
    };
    if (this.#tool.isRun === true) told[holdKey] = (request: ToolWait['request']) => this.#hold(request);
    if (transcript !== undefined) told[transcriptKey] = transcript;
    return told;
  }

  get #isOnce(): boolean {
    return this.#tool.effect === 'once' || this.#call.effect === 'once';
  }

  /** The end of a tool that threw. A request that was sent may have taken effect, though its connection broke. */
  failed(error: unknown): ToolOutput | ToolWait {
    return isBrokenConnection(error) && this.#mayHaveActed
      ? unknownOutcome(toErrorData(error).message)
      : thrownOutput(error);
  }

  get #mayHaveActed(): boolean {
    return this.#isOnce && this.#hasBegun;
  }

  get #requested(): RequestedWaits['functions'] {
    this.#waits ??= new RequestedWaits({
      tool: this.#tool.name,
      answers: this.#call.answers ?? [],
      isOnce: this.#isOnce,
      hasAnswerers: this.#tool.answerers !== undefined,
      isBeginning: () => this.#isBeginning,
      isOver: () => this.#isOver,
      hold: (request) => this.#hold(request),
      fail: (error) => this.#stop(error, thrownOutput(error)),
    });
    return this.#waits.functions;
  }

  #signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      const { signal } = this.#environment;
      if (this.#stopped !== undefined) this.#controller.abort(this.#stopped.reason);
      else if (signal.aborted && !this.#isOver) this.#controller.abort(signal.reason);
    }
    return this.#controller.signal;
  }

  /** The output of a tool that has returned without a promise. */
  outputNow(result: unknown): ToolOutput | ToolWait {
    return this.close() ?? this.#outputOf(result);
  }

  /** The call has ended: it can begin no wait any more. @returns its end, if it had one before */
  close(): ToolOutput | ToolWait | undefined {
    this.#isOver = true;
    return this.#ended;
  }

  #outputOf(result: unknown): ToolOutput {
    return withImages(toToolOutput(result, this.#rule), this.#images);
  }

  get #rule(): OutputRule {
    return { allowUrls: this.#tool.allowUrls === true };
  }

  #imagePart(image: ImageInput, where: string): ImagePart {
    const part = imagePartOf(image, where);
    if (part.data.type === 'url') checkUrl(part.data.url, `${where}.data`, this.#rule);
    return part;
  }

  #report(value: unknown): void {
    if (this.#isHeld) return;
    try {
      this.#environment.onProgress?.(frozenJson(value, 'progress'));
    } catch {
      // Progress that JSON cannot hold must not fail the call.
    }
  }

  wait(result: PromiseLike<unknown>): Promise<ToolOutput | ToolWait> {
    const { signal, clock } = this.#environment;
    const timeoutMs = this.#tool.timeoutMs ?? this.#environment.timeoutMs;
    const settled = Promise.resolve(result);
    return new Promise((resolve) => {
      this.#resolve = resolve;
      settled.then(
        (value) => this.#answer(value),
        (error) => (this.#isOver ? this.#finish(thrownOutput(error)) : this.#end(this.failed(error))),
      );
      // It may have ended before it returned its promise.
      if (this.#ended) return resolve(this.#ended);
      if (signal.aborted) return this.#onAbort();
      signal.addEventListener('abort', this.#onAbort);
      if (timeoutMs !== Number.POSITIVE_INFINITY)
        this.#timer = clock.setTimeout(() => this.#onTimeout(timeoutMs), timeoutMs);
    });
  }

  #answer(value: unknown): void {
    try {
      this.#finish(this.#outputOf(value));
    } catch (error) {
      this.#finish(thrownOutput(error));
    }
  }

  /** The first end counts; a later result is reported as late, and dropped. Of a call that waits it is only dropped. */
  #finish(output: ToolOutput): void {
    if (!this.#isOver) {
      this.#end(output);
      return;
    }
    if (this.#isHeld) return;
    try {
      this.#environment.onLate?.(output);
    } catch {
      // An observer of late results must not change the call.
    }
  }

  #end(end: ToolOutput | ToolWait): void {
    this.#isOver = true;
    this.#ended = end;
    this.#environment.signal.removeEventListener('abort', this.#onAbort);
    if (this.#timer !== undefined) this.#environment.clock.clearTimeout(this.#timer);
    this.#resolve(end);
  }

  readonly #onAbort = (): void => {
    if (this.#mayHaveActed && !this.#isOver) this.#environment.onCut?.();
    this.#stop(this.#environment.signal.reason, errorText('aborted'));
  };

  #onTimeout(timeoutMs: number): void {
    const late = `tool "${this.#tool.name}" did not answer within ${timeoutMs} ms`;
    const message = this.#hasBegun
      ? `${late}; it is unknown whether it took effect`
      : `${late}: its input was still being checked`;
    const end = this.#mayHaveActed ? unknownOutcome(late) : errorText(message);
    this.#stop(new DOMException(message, 'TimeoutError'), end);
  }

  #stop(reason: unknown, end: ToolOutput | ToolWait): void {
    if (this.#isOver) return;
    this.#stopped = { reason };
    this.#end(end);
    this.#controller?.abort(reason);
  }

  #hold(request: ToolWait['request']): void {
    if (this.#isOver) return;
    this.#isHeld = true;
    const message = `the call of tool "${this.#tool.name}" waits; it runs again when the wait is over`;
    this.#stop(new DOMException(message, 'AbortError'), { type: 'wait', request });
  }
}

function unknownOutcome(why: string): ToolWait {
  return { type: 'wait', request: { kind: 'unknown-outcome', why } };
}

function isPromise<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof readProperty(value, 'then') === 'function';
}
