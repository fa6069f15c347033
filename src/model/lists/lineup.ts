import type { ModelFailure } from '../../run/waits/outage.ts';
import type { Clock } from '../../values/clock.ts';
import { toErrorData } from '../../values/error-data.ts';
import { ModelError } from '../../values/errors.ts';
import { letGo } from '../../values/thenable.ts';
import { failureOf, judged, statusOfError } from '../failure.ts';
import type { FallbackFailure } from '../port.ts';
import type { ServedModel } from '../tier.ts';

/*
 * Lists of models: which one a step asks, which one after a failure, and what it means when all of them have failed.
 */

/** A model of a list. */
export interface ListedModel extends ServedModel {
  /** `provider/modelId`, as records name it. */
  readonly name: string;
}

interface Failed {
  readonly model: ListedModel;
  readonly error: unknown;
  readonly failure: ModelFailure;
}

interface LineupOptions<Listed> {
  /** The model that answered last in this run: it is asked first. */
  readonly last?: Listed | undefined;
  /** Whether a model rests after a failure: it is asked after the others. */
  readonly isResting: (model: Listed) => boolean;
  readonly clock: Pick<Clock, 'now'>;
  /** Called with what a host's `when` throws. */
  readonly onThrow: (error: unknown) => void;
}

/** Characters of one model's error in the error of all. */
const MAX_SAID_CHARS = 200;

/** The models of one step: who is asked now, and who after a failure. Each is asked once. */
export class Lineup<Listed extends ListedModel> {
  readonly #options: LineupOptions<Listed>;
  /** Those that were not asked yet. */
  readonly #open: Listed[];
  readonly #failed: Failed[] = [];
  /** The first one rests: the failure of another one does not end the step in its place. */
  readonly #isFirstResting: boolean;
  #asked: Listed;

  /** @param models at least one */
  constructor(models: readonly Listed[], options: LineupOptions<Listed>) {
    const { last, isResting } = options;
    const order = last === undefined ? models : [last, ...models.filter((model) => model !== last)];
    const resting = order.filter(isResting);
    const [first, ...others] = [...order.filter((model) => !resting.includes(model)), ...resting];
    this.#options = options;
    this.#asked = first as Listed;
    this.#open = others;
    this.#isFirstResting = first !== order[0];
  }

  /** The model that is asked now. */
  get asked(): Listed {
    return this.#asked;
  }

  /** The number of the model that is asked now; the first is 1. */
  get attempt(): number {
    return this.#failed.length + 1;
  }

  /** Returns whether another model would be asked if this one failed so. */
  hasNext(error: unknown): boolean {
    const failed = this.#failure(error);
    return this.#open.some((model) => this.#takesOver(model, failed));
  }

  /** Returns the model that is asked after this failure of the one that was; undefined: the step ends with `failure`. */
  next(error: unknown): Listed | undefined {
    const failed = this.#failure(error);
    const next = this.#open.findIndex((model) => this.#takesOver(model, failed));
    this.#failed.push(failed);
    // One that did not want to take over is not asked in this step.
    const [asked] = next < 0 ? [] : this.#open.splice(0, next + 1).slice(-1);
    if (asked) this.#asked = asked;
    return asked;
  }

  /** What the step ends with when no model is left: the failure of the only one that was asked, or one error of all. */
  get failure(): unknown {
    return this.#failed.length === 1 ? this.#failed[0]?.error : failureOfAll(this.#failed);
  }

  #failure(error: unknown): Failed {
    return { model: this.#asked, error, failure: failureOf(error, this.#options.clock) };
  }

  #takesOver({ when }: Listed, failed: Failed): boolean {
    const { kind, requests } = failed.failure;
    // The first model would have ended the run: so does its list. A later one only fails.
    const isTaken = kind !== 'final' || requests !== undefined || this.#failed.length > 0 || this.#isFirstResting;
    if (!when) return isTaken;
    try {
      const said: unknown = when(toldOf(failed));
      // A promise is no answer, and its rejection must not end the process.
      letGo(said);
      return said === true;
    } catch (thrown) {
      this.#options.onThrow(thrown);
      return isTaken;
    }
  }
}

function toldOf({ model, error, failure: { kind, retryAfterMs } }: Failed): FallbackFailure {
  const status = statusOfError(error);
  return {
    kind,
    code: toErrorData(error, 'MODEL').code,
    from: model.name,
    ...(status === undefined ? {} : { status }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  };
}

/** A list is worth what its most hopeful model is worth, and is asked again when the first of those may be. */
function failureOfAll(all: readonly Failed[]): ModelError {
  const kind =
    (['passing', 'blocked'] as const).find((each) => all.some(({ failure }) => failure.kind === each)) ?? 'final';
  const hopeful = all.filter(({ failure }) => failure.kind === kind);
  const retryAfterMs = Math.min(...hopeful.map(({ failure }) => failure.retryAfterMs ?? 0));
  const said = all.map(({ model, error }) => `${model.name}: ${shortMessage(error)}`);
  const error = new ModelError(`no model of the list answered: ${said.join('; ')}`, { cause: hopeful[0]?.error });
  // Where each of them lacks its key, the setup of this process is at fault: it is looked for in the members.
  Object.defineProperty(error, 'errors', { value: all.map((each) => each.error) });
  return judged(error, {
    kind,
    ...(retryAfterMs > 0 ? { retryAfterMs } : {}),
    ...(hopeful.every(({ failure }) => failure.isBug === true) ? { isBug: true } : {}),
  });
}

function shortMessage(error: unknown): string {
  return toErrorData(error, 'MODEL').message.slice(0, MAX_SAID_CHARS).toWellFormed();
}
