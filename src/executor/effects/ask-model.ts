import { isCutAnswer, noAnswer, requestsOf } from '../../model/answer.ts';
import type { callModel, ModelRequest } from '../../model/call.ts';
import { noteSpent, spentBy } from '../../model/failed-call-usage.ts';
import { failureOf, isTooLong } from '../../model/failure.ts';
import type { Model } from '../../model/port.ts';
import { ReplySize, replyLimits } from '../../model/reply-limits.ts';
import type { ReplyPiece } from '../../model/reply-pieces.ts';
import { type RetryOptions, withRetries } from '../../model/retry.ts';
import type { CutAnswer, ModelReply } from '../../run/reply.ts';
import { AnswerCutError, ContextTooLongError } from '../../values/errors.ts';
import { type AssistantMessage, enterMessage, type Message } from '../../values/message.ts';

/** One reply, and what it may take to get it. */
interface Asked {
  readonly model: Model;
  readonly request: ModelRequest;
  /** Makes one request. */
  readonly call: typeof callModel;
  /** Returns how failed requests are repeated: it is asked when the first one has failed, or its reply is no whole one. */
  readonly retries: () => RetryOptions;
  readonly onCutAnswer: CutAnswer;
  /** How often a reply that its provider paused is continued. */
  readonly maxPauses: number;
  /** Called before each request, with the part of the reply that stands. */
  readonly begin: (standing: AssistantMessage | undefined) => void;
  /** Returns a shorter history for a provider that finds this one too long; undefined = there is none. Never rejects. */
  readonly shorten: () => Promise<readonly Message[] | undefined>;
}

/** How often the rest of a cut answer is asked for. */
const MAX_RESTS = 2;

const REST = 'Your answer was cut at its length limit. Continue exactly where it stops; do not repeat any of it.';
const ANSWER = 'Your last reply was empty. Give your answer now, or call a tool.';

/**
 * Asks a model for one whole reply: repeats requests that fail, asks again for a reply that is no answer, continues one that
 * its provider paused, and shortens a history that is too long for the model. What it adds to the conversation for that is not
 * recorded.
 *
 * @throws what the last request threw; {CONTEXT_TOO_LONG} if no history is short enough; {ANSWER_CUT} if a cut answer
 *   must fail
 */
export function askModel(asked: Asked): Promise<ModelReply> {
  const { model, request, call, onCutAnswer, begin } = asked;
  begin(undefined);
  // Thousands of runs wait in a first request: what only a further one needs is made when it is needed.
  return call(model, request).then(
    (reply) =>
      reply.isPaused || (onCutAnswer !== 'accept' && isCutAnswer(reply)) ? new Asking(asked).whole(reply) : reply,
    (error: unknown) => new Asking(asked).whole(undefined, error),
  );
}

class Asking {
  readonly #asked: Asked;
  readonly #retries: RetryOptions;
  #history: readonly Message[];
  #isShortened = false;
  /** What this turn adds to the history. */
  #added: readonly Message[] = [];
  /** The part of the reply that stands. */
  #standing: ModelReply | undefined;
  readonly #size: ReplySize;

  constructor(asked: Asked) {
    this.#asked = asked;
    this.#retries = asked.retries();
    this.#history = asked.request.messages;
    this.#size = new ReplySize(asked.request.limits ?? replyLimits);
  }

  /** Returns the whole reply. @param reply the first reply, or @param failure the error in its place */
  async whole(reply?: ModelReply, failure?: unknown): Promise<ModelReply> {
    let next = reply ? this.#checked(reply) : await this.#request(failure);
    for (let pauses = 0, rests = 0; ; ) {
      const whole = this.#join(next);
      if (next.isPaused) {
        if (pauses++ >= this.#asked.maxPauses) throw noAnswer('the provider paused its reply too often', 1);
        this.#added = [whole.message];
      } else if (isCutAnswer(whole) && this.#asked.onCutAnswer === 'continue' && rests++ < MAX_RESTS) {
        this.#added = [whole.message, userText(REST)];
      } else return whole;
      const rest = await this.#rest(whole);
      if (rest === undefined) return whole;
      next = rest;
    }
  }

  /** The rest of a reply; undefined: a cut answer has no rest that can be had. */
  async #rest(whole: ModelReply): Promise<ModelReply | undefined> {
    try {
      return await this.#request();
    } catch (error) {
      const { signal, clock } = this.#retries;
      if (whole.isPaused || signal.aborted || failureOf(error, clock).kind !== 'final') throw error;
      this.#asked.begin(whole.message);
      return undefined;
    }
  }

  /** One request with its retries. @param failure the error of an attempt that was made already */
  #request(failure?: unknown): Promise<ModelReply> {
    let failed = failure;
    return withRetries(async () => {
      const error = failed;
      failed = undefined;
      return error === undefined ? this.#attempt() : this.#afterFailure(error);
    }, this.#retries);
  }

  async #attempt(): Promise<ModelReply> {
    try {
      return await this.#call();
    } catch (error) {
      return await this.#afterFailure(error);
    }
  }

  /** Another request at once for a history that is too long. @throws the failure */
  async #afterFailure(failure: unknown): Promise<ModelReply> {
    // The same request often gets the same nothing.
    if (requestsOf(failure) !== undefined && this.#added.length === 0 && this.#history.at(-1)?.role === 'tool') {
      this.#added = [userText(ANSWER)];
    }
    if (!isTooLong(failure, this.#retries.clock)) throw failure;
    const shorter = this.#isShortened ? undefined : await this.#asked.shorten();
    this.#isShortened = true;
    if (shorter === undefined) throw tooLong(failure);
    this.#history = shorter;
    return await this.#attempt();
  }

  async #call(): Promise<ModelReply> {
    const { model, request, call, begin } = this.#asked;
    const standing = this.#standing?.message;
    begin(standing);
    const { onPiece } = request;
    const base = standing?.content.length ?? 0;
    return this.#checked(
      await call(model, {
        ...request,
        messages: [...this.#history, ...this.#added],
        ...(onPiece && base > 0 ? { onPiece: (piece: ReplyPiece) => onPiece(moved(piece, base)) } : {}),
      }),
    );
  }

  /** Returns the reply. @throws {ANSWER_CUT} if it is cut, and a cut answer must fail */
  #checked(reply: ModelReply): ModelReply {
    if (this.#asked.onCutAnswer !== 'fail' || !isCutAnswer(reply)) return reply;
    this.#retries.onSpent?.(reply.usage);
    const error = new AnswerCutError("the model's answer reached its length limit (onCutAnswer is 'fail')");
    throw Object.assign(error, { finishReason: 'length' });
  }

  /** The reply with what stands before it. Each request has its own cost; those before the last count as lost attempts do. */
  #join(reply: ModelReply): ModelReply {
    const before = this.#standing;
    for (const part of reply.message.content) this.#size.chars(this.#size.sizeOf(part));
    if (before) this.#retries.onSpent?.(before.usage);
    const content = before ? [...before.message.content, ...reply.message.content] : reply.message.content;
    const message = before ? (enterMessage({ role: 'assistant', content }) as AssistantMessage) : reply.message;
    const whole = { ...reply, message };
    this.#standing = whole;
    return whole;
  }
}

function moved(piece: ReplyPiece, by: number): ReplyPiece {
  return 'block' in piece ? { ...piece, block: piece.block + by } : piece;
}

function userText(text: string): Message {
  return enterMessage({ role: 'user', content: [{ type: 'text', text }] });
}

function tooLong(cause: unknown): ContextTooLongError {
  const error = new ContextTooLongError('the conversation is longer than the model takes', { cause });
  const spent = spentBy(cause);
  if (spent) noteSpent(error, spent);
  return error;
}
