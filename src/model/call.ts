import type {
  LanguageModelV4CallOptions,
  LanguageModelV4FunctionTool,
  LanguageModelV4Prompt,
  LanguageModelV4StreamPart,
  LanguageModelV4StreamResult,
  LanguageModelV4ToolChoice,
  SharedV4ProviderOptions,
} from '@ai-sdk/provider';
import type { ModelSettings } from '../run/model-settings.ts';
import type { ModelReply } from '../run/reply.ts';
import type { Clock } from '../values/clock.ts';
import type { PawlError } from '../values/error-codes.ts';
import { readProperty, toErrorData } from '../values/error-data.ts';
import { ContentRefusedError, ModelError, ModelStalledError, ReplyTooLargeError } from '../values/errors.ts';
import { nextTurn } from '../values/event-loop.ts';
import { isObject, type JsonObject } from '../values/json.ts';
import { hasFileUrl, isFileUrl, type Message } from '../values/message.ts';
import { modelName } from '../values/model-use.ts';
import { letGo } from '../values/thenable.ts';
import type { Needed } from './answer.ts';
import { answerFormat } from './answer-format.ts';
import { checkFileUrls } from './check-file-urls.ts';
import { noteSpent } from './failed-call-usage.ts';
import type { Model } from './port.ts';
import { ReplyCollector } from './reply-collector.ts';
import { type ReplyLimits, replyLimits } from './reply-limits.ts';
import type { ReplyPiece } from './reply-pieces.ts';
import { vendorOf } from './vendor.ts';

/** One model call. Times in milliseconds. */
export interface ModelRequest {
  /** The system prompt; '' = none. */
  readonly system: string;
  readonly messages: readonly Message[];
  /** Whether a message may have a file by URL; absent = the call checks. */
  readonly hasUrls?: boolean;
  readonly tools: readonly LanguageModelV4FunctionTool[];
  readonly signal: AbortSignal;
  readonly clock: Clock;
  /** From the call to the first content of the answer. */
  readonly firstChunkMs: number;
  /** From one piece of content to the next. */
  readonly chunkGapMs: number;
  /** Gets each piece of the reply as it arrives. Its errors are ignored. */
  readonly onPiece?: (piece: ReplyPiece) => void;
  /** Without tools the tool choice is left out. */
  readonly settings?: ModelSettings;
  /** Default: `replyLimits`. */
  readonly limits?: ReplyLimits;
  /** What the reply must have to be an answer; absent: a reply without content is one. */
  readonly needs?: Needed;
  /** The JSON Schema that the answer has to fit. */
  readonly outputSchema?: JsonObject;
}

type Reader = ReadableStreamDefaultReader<LanguageModelV4StreamPart>;

/** A stream whose parts are all there already would block timers and other runs: reading yields after this many parts. */
const PARTS_PER_TURN = 256;
/** How many parts after the finish part are still read, so that wrappers of the stream see it close. */
const PARTS_AFTER_FINISH = 16;

/**
 * Calls a model once, reads its stream and returns the whole reply.
 *
 * @throws the signal's reason, at once, when the signal is aborted, even if the model ignores it
 * @throws {MODEL_STALLED} when no content came for too long
 * @throws {REPLY_TOO_LARGE} when the reply passes a limit; reading stops there
 * @throws {MODEL} in all other cases: the model threw (see `cause`), its stream broke off or reported an error, or the
 *   model does not take a file by URL. `spentBy` returns what such a call cost, if the model reported it
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
    this.#collector = new ReplyCollector(request.limits ?? replyLimits, request.needs);
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

  /** A reply that cannot be used still costs tokens. */
  #costed<Failure extends object>(error: Failure): Failure {
    const { usage } = this.#collector;
    if (usage !== undefined) noteSpent(error, usage);
    return error;
  }

  readonly #onAbort = (): void => this.#fail(this.#request.signal.reason);

  /** The first end of the call decides its result; later ones are ignored. */
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
    const reader = readerOf(await model.doStream(this.#options(model)));
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
      if (count % PARTS_PER_TURN === 0) await nextTurn();
    }
    const reply = this.#collector.reply();
    if (!this.#isOver) this.#pass(this.#collector.takePiece());
    return reply;
  }

  #take(part: LanguageModelV4StreamPart): void {
    if (this.#isOver) return;
    if (this.#collector.add(part)) this.#watch?.content();
    if (!this.#isOver) this.#pass(this.#collector.takePiece());
  }

  #pass(piece: ReplyPiece | undefined): void {
    const { onPiece } = this.#request;
    if (onPiece === undefined || piece === undefined) return;
    try {
      onPiece(piece);
    } catch {
      // An observer must not change the call.
    }
  }

  #options(model: Model): LanguageModelV4CallOptions {
    const { system, messages, hasUrls, tools, settings = {}, outputSchema } = this.#request;
    const { stopSequences, toolChoice, providerOptions, ...plain } = settings;
    const given = providerOptions && (structuredClone(providerOptions) as SharedV4ProviderOptions);
    return {
      prompt: promptOf(system, messages, hasUrls),
      abortSignal: this.#controller.signal,
      ...plain,
      ...(stopSequences === undefined ? {} : { stopSequences: [...stopSequences] }),
      ...(given === undefined ? {} : { providerOptions: given }),
      ...(tools.length > 0 ? { tools: [...tools] } : {}),
      ...(tools.length > 0 && toolChoice !== undefined ? { toolChoice: choiceOf(toolChoice) } : {}),
      ...(outputSchema === undefined ? {} : answerFormat(outputSchema, vendorOf(modelName(model)), given)),
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

/** Cancels in the background: a stream that fails to end, or never ends, delays nothing. */
function cancel(reader: Reader, reason: unknown): void {
  try {
    Promise.resolve(reader.cancel(reason)).catch(() => {});
  } catch {
    // The cancel call itself failed; the stream is not read any more.
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

function asModelError(error: unknown): PawlError {
  if (isOwnError(error)) return error;
  return new ModelError(`the model call failed: ${toErrorData(error).message}`, { cause: error });
}

const ownErrors = [ModelError, ReplyTooLargeError, ContentRefusedError];

/** A proxy may throw from `instanceof`. */
function isOwnError(error: unknown): error is PawlError {
  try {
    return ownErrors.some((each) => error instanceof each);
  } catch {
    return false;
  }
}

/**
 * What the model gets: the system prompt first (none if it is empty), then the transcript.
 * @param hasUrls whether a message may have a file by URL; searching each message for one costs more than everything else here
 */
function promptOf(system: string, messages: readonly Message[], hasUrls = true): LanguageModelV4Prompt {
  const transcript = hasUrls ? messages.map(withUrls) : messages;
  // Not a spread: for a long transcript it takes three times the memory.
  const beginning: Message[] = system.trim() === '' ? [] : [{ role: 'system', content: system }];
  return beginning.concat(transcript);
}

/** A transcript is JSON and holds URLs as strings; providers expect URL objects. */
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

/** A string that is not a URL is sent unchanged: the provider's error says more than Pawl could. */
function toUrl(url: unknown): unknown {
  return typeof url === 'string' && URL.canParse(url) ? new URL(url) : url;
}

/** How long a model may be silent, in milliseconds. */
interface StallLimits {
  readonly firstChunkMs: number;
  readonly chunkGapMs: number;
}

/**
 * Detects a model that stopped sending. A chunk of content only records the time. One timer for the whole call checks that
 * time when it fires, and sleeps for the rest, but for no longer than a gap: content that comes meanwhile shortens the rest.
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

  /** Content arrived. Content after its deadline is late, even if the timer has not fired yet. */
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
    else this.#timer = this.#clock.setTimeout(this.#check, Math.min(left, this.#limits.chunkGapMs));
  };

  #stall(): void {
    const limit = this.#hasContent ? 'chunkGapMs' : 'firstChunkMs';
    this.#onStall(new ModelStalledError(`the model sent nothing for ${this.#limits[limit]} ms (${limit})`));
  }
}
