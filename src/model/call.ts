import type {
  LanguageModelV4CallOptions,
  LanguageModelV4FunctionTool,
  LanguageModelV4Prompt,
  LanguageModelV4StreamPart,
  LanguageModelV4StreamResult,
  LanguageModelV4ToolChoice,
} from '@ai-sdk/provider';
import type { ModelSettings } from '../run/model-settings.ts';
import type { ModelReply } from '../run/reply.ts';
import type { Clock } from '../values/clock.ts';
import { readProperty, toErrorData } from '../values/error-data.ts';
import { ModelError, ModelStalledError, ReplyTooLargeError } from '../values/errors.ts';
import { isObject, type JsonObject } from '../values/json.ts';
import { hasFileUrl, isFileUrl, type Message } from '../values/message.ts';
import { letGo } from '../values/thenable.ts';
import { checkFileUrls } from './file-urls.ts';
import type { Model } from './port.ts';
import { ReplyCollector } from './reply-collector.ts';
import { type ReplyLimits, replyLimits } from './reply-limits.ts';
import { noteSpent } from './spent.ts';

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

/**
 * What a model is sent: the system prompt first (none when it is empty), then the transcript.
 * @param hasUrls whether a message may have a file by URL; to look for one in each message costs more than all the rest
 */
function promptOf(system: string, messages: readonly Message[], hasUrls = true): LanguageModelV4Prompt {
  const transcript = hasUrls ? messages.map(withUrls) : messages;
  // Not by spreading: of a long transcript that takes three times the room.
  const beginning: Message[] = system === '' ? [] : [{ role: 'system', content: system }];
  return beginning.concat(transcript);
}

/** In a transcript URLs are strings, because it is JSON; providers are promised URL objects. */
function withUrls(message: Message): Message {
  if (typeof message.content === 'string' || !hasFileUrl(message)) return message;
  return { ...message, content: message.content.map(reviveUrl) } as Message;
}

function reviveUrl(part: unknown): unknown {
  if (!isObject(part) || !isFileUrl(part)) return part;
  if (isObject(part.data)) return { ...part, data: { ...part.data, url: toUrl(part.data.url) } };
  const output = part.output as { readonly value: readonly unknown[] };
  return { ...part, output: { ...output, value: output.value.map(reviveUrl) } };
}

/** A string that is no URL goes out as it is: the provider's complaint says more than ours could. */
function toUrl(url: unknown): unknown {
  return typeof url === 'string' && URL.canParse(url) ? new URL(url) : url;
}

/** How long a model may be silent, in milliseconds. */
interface StallLimits {
  readonly firstChunkMs: number;
  readonly chunkGapMs: number;
}

/**
 * Notices that a model has gone silent. A chunk of content only notes the time; one timer for the whole call looks at the
 * notes when it fires and sleeps for what is left. It is set for the shorter of the two limits, so that it never wakes late.
 */
class StallWatch {
  readonly #clock: Clock;
  readonly #limits: StallLimits;
  readonly #onStall: (error: ModelStalledError) => void;
  #timer: unknown;
  #deadline: number;
  #hasContent = false;
  #isStopped = false;

  constructor(clock: Clock, limits: StallLimits, onStall: (error: ModelStalledError) => void) {
    this.#clock = clock;
    this.#limits = limits;
    this.#onStall = onStall;
    this.#deadline = clock.monotonic() + limits.firstChunkMs;
    this.#timer = clock.setTimeout(this.#check, Math.min(limits.firstChunkMs, limits.chunkGapMs));
  }

  /** Content arrived. What arrives after its deadline is late, even where the timer has not come to fire. */
  content(): void {
    const now = this.#clock.monotonic();
    if (now >= this.#deadline) {
      this.#stall();
      return;
    }
    this.#hasContent = true;
    this.#deadline = now + this.#limits.chunkGapMs;
  }

  stop(): void {
    this.#isStopped = true;
    this.#clock.clearTimeout(this.#timer);
  }

  readonly #check = (): void => {
    if (this.#isStopped) return;
    const left = this.#deadline - this.#clock.monotonic();
    if (left <= 0) this.#stall();
    else this.#timer = this.#clock.setTimeout(this.#check, left);
  };

  #stall(): void {
    const limit = this.#hasContent ? 'chunkGapMs' : 'firstChunkMs';
    this.#onStall(new ModelStalledError(`the model sent nothing for ${this.#limits[limit]} ms (${limit})`));
  }
}
