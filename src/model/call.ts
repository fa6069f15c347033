import type {
  LanguageModelV4CallOptions,
  LanguageModelV4FunctionTool,
  LanguageModelV4StreamPart,
  LanguageModelV4StreamResult,
  LanguageModelV4ToolChoice,
} from '@ai-sdk/provider';
import type { ModelSettings } from '../run/model-settings.ts';
import type { ModelReply } from '../run/reply.ts';
import type { Clock } from '../values/clock.ts';
import { readProperty, toErrorData } from '../values/error-data.ts';
import { ModelError, ReplyTooLargeError } from '../values/errors.ts';
import type { JsonObject } from '../values/json.ts';
import type { Message } from '../values/message.ts';
import { letGo } from '../values/thenable.ts';
import { checkFileUrls } from './file-urls.ts';
import type { Model } from './port.ts';
import { promptOf } from './prompt.ts';
import { ReplyCollector } from './reply-collector.ts';
import { type ReplyLimits, replyLimits } from './reply-limits.ts';
import { noteSpent } from './spent.ts';
import { StallWatch } from './stall-watch.ts';

/** One model call. Times in milliseconds. */
export interface ModelRequest {
  /** The system prompt; '' = none. */
  readonly system: string;
  readonly messages: readonly Message[];
  /** Whether a message may have a file by URL; absent = look. */
  readonly hasUrls?: boolean;
  readonly tools: readonly LanguageModelV4FunctionTool[];
  readonly signal: AbortSignal;
  readonly clock: Clock;
  /** From the call to the first content of the answer. */
  readonly firstChunkMs: number;
  /** From one piece of content to the next. */
  readonly chunkGapMs: number;
  /** Told of each piece of text as it arrives. What it throws is swallowed. */
  readonly onDelta?: (delta: { type: 'text' | 'reasoning'; text: string }) => void;
  /** A tool choice is left out where there are no tools. */
  readonly settings?: ModelSettings;
  /** Default: `replyLimits`. */
  readonly limits?: ReplyLimits;
  /** The JSON Schema that the answer has to fit. */
  readonly outputSchema?: JsonObject;
}

type Reader = ReadableStreamDefaultReader<LanguageModelV4StreamPart>;

/** A stream whose parts are all there already would keep timers and other runs waiting: it yields this often. */
const PARTS_PER_TURN = 256;
/** What may follow the finish part and is still read, so that wrappers of the stream see it close. */
const PARTS_AFTER_FINISH = 16;

/**
 * Calls a model and waits for the whole reply, reading it as a stream.
 *
 * @throws the signal's reason, at once, when the signal is aborted, whether or not the model obeys it
 * @throws {ModelStalledError} when no content came for too long
 * @throws {ReplyTooLargeError} when the reply passes a limit; nothing more of it is read
 * @throws {ModelError} for all else: the model threw (see `cause`), its stream broke off or reported an error, or there is
 *   a file by a URL that it does not take; `spentBy` says what such a call cost, where the model reported it
 */
export function callModel(model: Model, request: ModelRequest): Promise<ModelReply> {
  return new ModelCall(request).run(model);
}

class ModelCall {
  readonly #request: ModelRequest;
  readonly #controller = new AbortController();
  readonly #collector: ReplyCollector;
  #watch: StallWatch | undefined;
  #reader: Reader | undefined;
  #reject: (error: unknown) => void = () => {};
  #isOver = false;

  constructor(request: ModelRequest) {
    this.#request = request;
    this.#collector = new ReplyCollector(request.limits ?? replyLimits);
  }

  run(model: Model): Promise<ModelReply> {
    const { signal, clock } = this.#request;
    if (signal.aborted) return Promise.reject(signal.reason);
    return new Promise((resolve, reject) => {
      this.#reject = reject;
      signal.addEventListener('abort', this.#onAbort);
      this.#watch = new StallWatch(clock, this.#request, (error) => this.#fail(error));
      this.#read(model).then(
        (reply) => {
          if (this.#end()) resolve(reply);
        },
        (error) => this.#fail(this.#costed(asModelError(error))),
      );
    });
  }

  /** A reply that cannot be used was paid for all the same. */
  #costed<Failure extends object>(error: Failure): Failure {
    const { usage } = this.#collector;
    if (usage !== undefined) noteSpent(error, usage);
    return error;
  }

  readonly #onAbort = (): void => this.#fail(this.#request.signal.reason);

  /** Whoever ends the call first decides how; everything later is nobody's business. */
  #end(): boolean {
    if (this.#isOver) return false;
    this.#isOver = true;
    this.#watch?.stop();
    this.#request.signal.removeEventListener('abort', this.#onAbort);
    return true;
  }

  #fail(error: unknown): void {
    if (!this.#end()) return;
    this.#reject(error);
    this.#controller.abort(error);
    if (this.#reader !== undefined) cancel(this.#reader, error);
  }

  async #read(model: Model): Promise<ModelReply> {
    const { messages, hasUrls = true } = this.#request;
    const check = hasUrls ? checkFileUrls(model, messages) : undefined;
    if (check !== undefined) {
      await check;
      if (this.#isOver) throw this.#controller.signal.reason;
    }
    const reader = readerOf(await model.doStream(this.#options()));
    this.#reader = reader;
    if (this.#isOver) cancel(reader, this.#controller.signal.reason);
    for (let count = 1; !this.#isOver; count++) {
      const { done, value } = await reader.read();
      if (done) break;
      this.#take(value);
      if (this.#collector.isFinished) {
        drain(reader);
        break;
      }
      if (count % PARTS_PER_TURN === 0) await new Promise<void>((resolve) => setImmediate(resolve));
    }
    return this.#collector.reply();
  }

  #take(part: LanguageModelV4StreamPart): void {
    if (this.#isOver) return;
    if (this.#collector.add(part)) this.#watch?.content();
    if (part.type !== 'text-delta' && part.type !== 'reasoning-delta') return;
    const { onDelta } = this.#request;
    if (onDelta === undefined || part.delta === '' || this.#isOver) return;
    try {
      onDelta({ type: part.type === 'text-delta' ? 'text' : 'reasoning', text: part.delta });
    } catch {
      // An observer has no say in the call.
    }
  }

  #options(): LanguageModelV4CallOptions {
    const { system, messages, hasUrls, tools, settings = {}, outputSchema } = this.#request;
    const { stopSequences, toolChoice, providerOptions, ...plain } = settings;
    return {
      prompt: promptOf(system, messages, hasUrls),
      abortSignal: this.#controller.signal,
      ...plain,
      ...(stopSequences === undefined ? {} : { stopSequences: [...stopSequences] }),
      ...(providerOptions === undefined ? {} : { providerOptions: structuredClone(providerOptions) as never }),
      ...(tools.length > 0 ? { tools: [...tools] } : {}),
      ...(tools.length > 0 && toolChoice !== undefined ? { toolChoice: choiceOf(toolChoice) } : {}),
      ...(outputSchema === undefined
        ? {}
        : { responseFormat: { type: 'json' as const, schema: outputSchema as never } }),
    };
  }
}

function choiceOf(choice: NonNullable<ModelSettings['toolChoice']>): LanguageModelV4ToolChoice {
  return typeof choice === 'string' ? { type: choice } : choice;
}

function readerOf(result: LanguageModelV4StreamResult): Reader {
  const stream = readProperty(result, 'stream') as LanguageModelV4StreamResult['stream'] | undefined;
  if (typeof readProperty(stream, 'getReader') === 'function') {
    const reader = (stream as ReadableStream).getReader();
    letGo(reader);
    return reader;
  }
  throw new ModelError("the model's doStream gave no stream");
}

/** Cancels in the background: a stream that fails to end, or never does, holds nothing up. */
function cancel(reader: Reader, reason: unknown): void {
  try {
    Promise.resolve(reader.cancel(reason)).catch(() => {});
  } catch {
    // It could not even be asked to stop; it is not read any more.
  }
}

/** Reads a finished stream to its end in the background: a cancelled one would not run the `flush` of its transforms. */
function drain(reader: Reader): void {
  const rest = async (): Promise<void> => {
    for (let count = 0; count < PARTS_AFTER_FINISH; count++) if ((await reader.read()).done) return;
    cancel(reader, undefined);
  };
  rest().catch(() => {});
}

function asModelError(error: unknown): ModelError | ReplyTooLargeError {
  if (isOwnError(error)) return error;
  return new ModelError(`the model call failed: ${toErrorData(error).message}`, { cause: error });
}

/** A proxy may throw even when asked what it is an instance of. */
function isOwnError(error: unknown): error is ModelError | ReplyTooLargeError {
  try {
    return error instanceof ModelError || error instanceof ReplyTooLargeError;
  } catch {
    return false;
  }
}
