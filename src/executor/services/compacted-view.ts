import { type Compactor, recordedBy } from '../../compaction/port.ts';
import type { Warn } from '../../log/log.ts';
import { type CallModel, giveCalls } from '../../model/given-calls.ts';
import type { Model } from '../../model/port.ts';
import type { Clock } from '../../values/clock.ts';
import { withDeadline } from '../../values/deadline.ts';
import { TranscriptInvalidError } from '../../values/errors.ts';
import { isObject } from '../../values/json.ts';
import { enterMessage, type Message, toolCallsOf, toolResultsOf } from '../../values/message.ts';
import { markOf, type RecordedCompaction } from '../../values/message-mark.ts';
import { modelName } from '../../values/model-use.ts';
import { estimateTokens } from '../../values/texts/token-estimate.ts';
import { letGo } from '../../values/thenable.ts';

export interface CompactedViewOptions {
  readonly compactor: Compactor;
  /**
   * Context windows by tier, or by the name of a model without a tier, in tokens. A value that is not a number above 0, or a throw, means unknown: then no history is
   * compacted.
   */
  readonly contextTokens: { readonly [tier: string]: number } | ((tier: string) => number | undefined) | undefined;
  /** The share of the window that a history may fill; default 0.7. */
  readonly threshold?: number;
  readonly portMs: number;
  readonly clock: Clock;
  readonly warn: Warn;
}

/** The model call that a view is for. */
export interface ViewedCall {
  readonly tier: string;
  readonly model: Model;
  readonly signal: AbortSignal;
  /** How the compactor asks its model. */
  readonly ask: CallModel;
  /** The provider's token count for the previous request of this view; absent, or 0 = not reported. */
  readonly lastInputTokens?: number | undefined;
  /** How many of the messages are of earlier turns of a thread: their compactions are not those of this run. */
  readonly ownFrom?: number | undefined;
}

/** A compactor that failed, or did not help enough, is asked again when the history is longer by this factor. */
const GROWTH = 1.1;
/** The largest error factor of an estimate. */
const MOST_ERROR = 3;

/**
 * The part of a run's transcript that the model gets: all of it, until it fills too much of the model's context window;
 * then the compactor's version, and the messages after it. The transcript itself stays whole: the first answer after a compaction is
 * marked with it, and a view of another process begins there. One view belongs to one run (or phase) in one process. A turn far
 * below the threshold only costs a look at its new messages.
 */
export class CompactedView {
  readonly #options: CompactedViewOptions;
  /** Replaces the first `#replaced` messages of the transcript. */
  #prefix: readonly Message[] = [];
  #replaced = 0;
  /** How much of the transcript was read, the last message of it, and the estimate for its view. */
  #counted = 0;
  #last: Message | undefined;
  #estimate = 0;
  /** The estimate for the last view that was sent: the provider's count belongs to it. */
  #sent: number | undefined;
  /** Below this size the compactor is not asked again. */
  #askFrom = 0;
  #hasWarned = false;
  /** No answer is marked with it yet. */
  #unmarked: RecordedCompaction | undefined;

  constructor(options: CompactedViewOptions) {
    this.#options = options;
  }

  /** The messages that replace the first `replaced` messages of the transcript; undefined: it was not compacted. */
  get shorter(): { readonly replaced: number; readonly messages: readonly Message[] } | undefined {
    return this.#replaced === 0 ? undefined : { replaced: this.#replaced, messages: this.#prefix };
  }

  /** Takes the compaction that the next answer is marked with; undefined: the view has only grown. */
  takeUnmarked(): RecordedCompaction | undefined {
    const made = this.#unmarked;
    this.#unmarked = undefined;
    return made;
  }

  /**
   * The messages of a model call, compacted when they fill too much of the model's window.
   * @param messages the whole transcript; the view follows its growth, and restarts for another transcript
   * @returns the messages to send; never rejects
   */
  async messagesFor(messages: readonly Message[], call: ViewedCall): Promise<readonly Message[]> {
    this.#follow(messages, call);
    const { threshold = 0.7, compactor } = this.#options;
    const recorded = recordedBy(compactor);
    if (recorded) {
      const made = await recorded();
      if (made && this.#restore(made, messages)) this.#unmarked = made;
      return this.#view(messages);
    }
    const tokens = this.#tokens(call.lastInputTokens);
    const limit = this.#windowOf(call);
    if (limit !== undefined && tokens > limit * threshold && tokens >= this.#askFrom) {
      await this.#compact(messages, { ...call, tokens, limit });
    }
    this.#sent = this.#estimate;
    return this.#view(messages);
  }

  /**
   * The messages of a call that the provider refused as too long: its window is smaller than was thought.
   * @returns undefined if the compactor made them no shorter; never rejects
   */
  async shorterFor(messages: readonly Message[], call: ViewedCall): Promise<readonly Message[] | undefined> {
    this.#follow(messages, call);
    if (recordedBy(this.#options.compactor)) return undefined;
    const before = this.#estimate;
    const tokens = this.#tokens(call.lastInputTokens);
    await this.#compact(messages, { ...call, tokens, limit: Math.min(tokens, this.#windowOf(call) ?? tokens) });
    this.#sent = this.#estimate;
    return this.#estimate < before ? this.#view(messages) : undefined;
  }

  #view(messages: readonly Message[]): readonly Message[] {
    return this.#replaced === 0 ? messages : [...this.#prefix, ...messages.slice(this.#replaced)];
  }

  #follow(messages: readonly Message[], { ownFrom = 0 }: Pick<ViewedCall, 'ownFrom'>): void {
    const isSame =
      messages.length >= this.#counted && (this.#counted === 0 || messages[this.#counted - 1] === this.#last);
    if (!isSame) {
      this.#prefix = [];
      this.#replaced = this.#counted = this.#estimate = this.#askFrom = 0;
      this.#sent = undefined;
    }
    if (this.#counted === 0 && !recordedBy(this.#options.compactor)) {
      const made = lastCompaction(messages, ownFrom);
      if (made && this.#restore(made, messages)) this.#counted = made.upTo;
    }
    this.#estimate += estimateTokens(messages.slice(this.#counted));
    this.#counted = messages.length;
    this.#last = messages.at(-1);
  }

  /** Begins with a compaction that was made before. @returns false where it is none of this transcript */
  #restore({ upTo, parts }: RecordedCompaction, messages: readonly Message[]): boolean {
    if (upTo > messages.length || messages[upTo]?.role === 'tool') return false;
    const given = parts.flatMap((part) => ('role' in part ? [part] : messages.slice(part[0], part[1])));
    try {
      this.#prefix = compactedHistory(given, upTo);
    } catch {
      return false;
    }
    this.#replaced = upTo;
    this.#estimate = estimateTokens(this.#prefix);
    return true;
  }

  /**
   * The provider's last count, plus an estimate of the newer messages. The estimate alone if the provider's count is absent or
   * impossible (some providers leave out cached tokens).
   */
  #tokens(lastInputTokens: unknown): number {
    if (this.#sent === undefined || typeof lastInputTokens !== 'number') return this.#estimate;
    const isLikely = lastInputTokens * MOST_ERROR > this.#sent && Number.isFinite(lastInputTokens);
    return isLikely ? lastInputTokens + this.#estimate - this.#sent : this.#estimate;
  }

  #windowOf({ tier, model }: ViewedCall): number | undefined {
    const { contextTokens } = this.#options;
    try {
      if (!contextTokens) return undefined;
      const name = tier || modelName(model);
      const isFunction = typeof contextTokens === 'function';
      const tokens = isFunction ? contextTokens(name) : Object.hasOwn(contextTokens, name) && contextTokens[name];
      letGo(tokens);
      return typeof tokens === 'number' && tokens > 0 && Number.isFinite(tokens) ? tokens : undefined;
    } catch {
      return undefined;
    }
  }

  async #compact(messages: readonly Message[], call: ViewedCall & { tokens: number; limit: number }): Promise<void> {
    const { tokens } = call;
    this.#askFrom = tokens * GROWTH;
    const view = this.#view(messages);
    try {
      const shorter = await this.#ask(view, call);
      if (shorter === view) return;
      const prefix = compactedHistory(shorter, view.length);
      const estimate = estimateTokens(prefix);
      if (estimate >= this.#estimate) throw new TranscriptInvalidError('the compacted history is not shorter');
      // In the provider's measure, which may differ from the estimate.
      this.#askFrom = (tokens * estimate * GROWTH) / this.#estimate;
      this.#unmarked = Object.freeze({ upTo: messages.length, parts: partsOf(prefix, messages) });
      this.#prefix = prefix;
      this.#replaced = messages.length;
      this.#estimate = estimate;
    } catch (error) {
      this.#warnOnce(error);
    }
  }

  /**
   * Asks the host's compactor for a shorter history.
   * @returns `view` unchanged if the run is stopped meanwhile: no code needs an answer then
   */
  async #ask(view: readonly Message[], call: ViewedCall & { tokens: number; limit: number }): Promise<unknown> {
    const { compactor, portMs: ms, clock } = this.#options;
    const { tier, model, signal, tokens, limit, ask } = call;
    if (signal.aborted) return view;
    const controller = new AbortController();
    giveCalls(controller.signal, ask);
    const stopped = Promise.withResolvers<unknown>();
    const stop = (): void => stopped.resolve(view);
    signal.addEventListener('abort', stop);
    try {
      const asked = Promise.resolve().then(() =>
        compactor(view, { tier, tokens, limit, model, signal: controller.signal }),
      );
      return await withDeadline(Promise.race([asked, stopped.promise]), { ms, clock, what: 'the compactor' });
    } finally {
      signal.removeEventListener('abort', stop);
      controller.abort(signal.aborted ? signal.reason : new Error('the run stopped waiting for the compactor'));
    }
  }

  #warnOnce(error: unknown): void {
    if (!this.#hasWarned) {
      this.#options.warn('compaction.failed', { error });
    }
    this.#hasWarned = true;
  }
}

/** The last compaction with which an answer of the run is marked. */
function lastCompaction(messages: readonly Message[], from: number): RecordedCompaction | undefined {
  for (let i = messages.length - 1; i >= from; i--) {
    const message = messages[i] as Message;
    const made = message.role === 'assistant' ? markOf(message)?.compacted : undefined;
    if (made) return made;
  }
  return undefined;
}

/** A compacted history as a record keeps it: its mark grows by what the compactor wrote, not by what the transcript has. */
function partsOf(prefix: readonly Message[], messages: readonly Message[]): RecordedCompaction['parts'] {
  const places = new Map(messages.map((message, i) => [message, i]));
  const parts: (readonly [number, number] | Message)[] = [];
  for (const message of prefix) {
    const [at, last] = [places.get(message), parts.at(-1)];
    if (at === undefined) parts.push(message);
    else if (last && 'length' in last && last[1] === at) parts[parts.length - 1] = Object.freeze([last[0], at + 1]);
    else parts.push(Object.freeze([at, at + 1]));
  }
  return Object.freeze(parts);
}

/**
 * Checks a compactor's answer and returns it as messages that can be sent. They begin with a user message, end with a user
 * message or with results, and each call has its results right after it, in order.
 *
 * @param most how many messages there were before
 * @throws {TranscriptInvalidError | NotJsonError} if it is not such a history
 */
function compactedHistory(answer: unknown, most: number): readonly Message[] {
  if (!Array.isArray(answer))
    throw invalid(`is not a list of messages but ${answer === null ? 'null' : typeof answer}`);
  const { length } = answer;
  if (length > most) throw invalid(`has ${length} messages, and there were ${most}`);
  const messages: Message[] = [];
  for (let i = 0; i < length; i++) messages.push(checkedMessage(answer[i], i));
  checkOrder(messages);
  return messages;
}

function checkedMessage(value: unknown, index: number): Message {
  const message = enterMessage(value, `compacted[${index}]`);
  const { role, content } = (isObject(message) ? message : {}) as Partial<Message>;
  const isText = role === 'system' && typeof content === 'string';
  const isParts = Array.isArray(content) && ['user', 'assistant', 'tool'].includes(String(role));
  if (isText || (isParts && content.every(isPart))) return message;
  throw invalid(`has a ${String(role)} message at ${index} that cannot be sent to a model`);
}

/** Checks only what would break a provider: parts of unknown types are passed on. */
function isPart(part: unknown): boolean {
  if (!isObject(part) || typeof part.type !== 'string') return false;
  if (part.type === 'text' || part.type === 'reasoning') return typeof part.text === 'string';
  if (part.type !== 'tool-call' && part.type !== 'tool-result') return true;
  const isNamed = typeof part.toolCallId === 'string' && typeof part.toolName === 'string';
  return isNamed && (part.type === 'tool-call' || (isObject(part.output) && typeof part.output.type === 'string'));
}

function checkOrder(messages: readonly Message[]): void {
  if (messages[0]?.role !== 'user') throw invalid('does not begin with a user message');
  let open: string[] = [];
  for (const [i, message] of messages.entries()) {
    if (message.role !== 'tool' && open.length > 0) throw invalid(`has a call before ${i} without its result`);
    for (const { toolCallId } of toolResultsOf(message)) {
      if (open.shift() !== toolCallId) throw invalid(`has a result at ${i} that answers no call, or not in order`);
    }
    open = [...open, ...toolCallsOf(message).map(({ toolCallId }) => toolCallId)];
  }
  if (open.length > 0 || messages.at(-1)?.role === 'assistant') throw invalid('ends in the middle of a turn');
}

function invalid(problem: string): TranscriptInvalidError {
  return new TranscriptInvalidError(`the compacted history ${problem}`);
}
