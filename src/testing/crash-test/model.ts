import { createHash } from 'node:crypto';
import type {
  LanguageModelV4CallOptions,
  LanguageModelV4GenerateResult,
  LanguageModelV4StreamPart,
} from '@ai-sdk/provider';
import type { Model } from '../../model/port.ts';
import type { Life } from './life.ts';

type Part = LanguageModelV4StreamPart;

/** One answer to a request, or its part so far. */
interface Answer {
  readonly parts: Part[];
  generated?: LanguageModelV4GenerateResult;
  /** The error with which the call rejected, or its stream broke. */
  failure?: { readonly error: unknown; readonly isStream: boolean };
}

interface Turn {
  readonly exact: string;
  /** The conversation, and the number of the model's turns in it. */
  readonly place: string;
  /** More than one if a failed call was retried. */
  readonly answers: Answer[];
}

/**
 * Records the model's replies in the run without a crash, and returns the same ones in every later process. So each
 * difference is due to the crash, even with a model that never gives the same reply twice.
 */
export class ModelMemory {
  readonly #turns: Turn[] = [];
  #identity: ReturnType<typeof identityOf> | undefined;

  /** The number of the turn of a request, from 0; undefined = the run without a crash has no such turn. */
  turnOf(options: LanguageModelV4CallOptions): number | undefined {
    const found = this.#find(options);
    return found && this.#turns.filter(({ place }) => place === found.place).length === 1
      ? this.#turns.indexOf(found)
      : undefined;
  }

  /** The model of the run without a crash. */
  remember(model: Model): Model {
    const answerTo = (options: LanguageModelV4CallOptions) => {
      const answer: Answer = { parts: [] };
      this.#turnFor(options).answers.push(answer);
      return answer;
    };
    this.#identity = identityOf(model);
    return {
      ...this.#identity,
      doGenerate: async (options) => {
        const answer = answerTo(options);
        return noting(answer, async () => {
          answer.generated = await model.doGenerate(options);
          return answer.generated;
        });
      },
      doStream: async (options) => {
        const answer = answerTo(options);
        const result = await noting(answer, async () => model.doStream(options));
        return { ...result, stream: ReadableStream.from(note(result.stream, answer)) };
      },
    };
  }

  /** The model of a later process. A request that was never made before goes to a new model. */
  recall(fresh: () => Model): Model {
    const asked = new Map<Turn, number>();
    let own: Model | undefined;
    const model = () => {
      own ??= fresh();
      return own;
    };
    const answerTo = (options: LanguageModelV4CallOptions) => {
      const turn = this.#find(options);
      const times = turn ? (asked.get(turn) ?? 0) : 0;
      if (turn) asked.set(turn, times + 1);
      return turn?.answers[Math.min(times, turn.answers.length - 1)];
    };
    return {
      ...(this.#identity ?? identityOf(model())),
      doGenerate: async (options) => {
        const answer = answerTo(options);
        if (answer?.failure) throw answer.failure.error;
        return answer?.generated ?? model().doGenerate(options);
      },
      doStream: async (options) => {
        const answer = answerTo(options);
        if (!answer) return model().doStream(options);
        if (answer.failure && !answer.failure.isStream) throw answer.failure.error;
        return { stream: ReadableStream.from(again(answer)) };
      },
    };
  }

  #turnFor(options: LanguageModelV4CallOptions): Turn {
    const { exact, place } = keysOf(options);
    const known = this.#turns.find((turn) => turn.exact === exact);
    if (known) return known;
    const turn = { exact, place, answers: [] };
    this.#turns.push(turn);
    return turn;
  }

  #find(options: LanguageModelV4CallOptions): Turn | undefined {
    const { exact, place } = keysOf(options);
    const same = this.#turns.find((turn) => turn.exact === exact);
    if (same) return same;
    // After a crash the model may get an unknown outcome: another request for the same turn.
    return this.#turns.find((turn) => turn.place === place);
  }
}

/** Wraps the model of a simulated process, which may die during the reply. */
export function mortalModel(model: Model, life: Life, onAsked: (options: LanguageModelV4CallOptions) => void): Model {
  return {
    ...identityOf(model),
    doGenerate: async (options) => {
      if (!life.isOver) onAsked(options);
      const result = await life.reach(() => model.doGenerate(options));
      await life.pass('during', 'model call');
      return result;
    },
    doStream: async (options) => {
      if (!life.isOver) onAsked(options);
      const result = await life.reach(() => model.doStream(options));
      return { ...result, stream: ReadableStream.from(cut(result.stream, life)) };
    },
  };
}

async function* cut(stream: ReadableStream<Part>, life: Life): AsyncGenerator<Part> {
  let isBegun = false;
  for await (const part of stream) {
    if (!isBegun || life.isOver) await life.pass('during', 'model call');
    isBegun = true;
    yield part;
  }
}

async function* note(stream: ReadableStream<Part>, answer: Answer): AsyncGenerator<Part> {
  try {
    for await (const part of stream) {
      answer.parts.push(part);
      yield part;
    }
  } catch (error) {
    answer.failure = { error, isStream: true };
    throw error;
  }
}

async function* again({ parts, failure }: Answer): AsyncGenerator<Part> {
  for (const part of parts) yield { ...part };
  if (failure) throw failure.error;
}

async function noting<T>(answer: Answer, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    answer.failure = { error, isStream: false };
    throw error;
  }
}

function identityOf({ provider, modelId, supportedUrls }: Model) {
  return { specificationVersion: 'v4' as const, provider, modelId, supportedUrls };
}

/** The keys that identify a request. Computed once, since a long prompt takes time. */
function keysOf({ prompt }: LanguageModelV4CallOptions): Pick<Turn, 'exact' | 'place'> {
  const known = keys.get(prompt);
  if (known) return known;
  const spoken = prompt.filter(({ role }) => role === 'assistant').length;
  const opening = prompt.slice(0, prompt[0]?.role === 'system' ? 2 : 1);
  const found = { exact: digest(prompt), place: digest([opening, spoken]) };
  keys.set(prompt, found);
  return found;
}

const keys = new WeakMap<object, Pick<Turn, 'exact' | 'place'>>();

function digest(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('base64');
}
