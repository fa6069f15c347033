import type { Model, RunCheckpoint, Tool, ToolContext } from 'pawl';
import type { AppendingStore, Claim, OwningStore, RunDelta, StoreGroups, WriteOptions } from 'pawl/stores/kit';
import type { Job } from './job.ts';

/** Where a worker may die: a named moment, and at which of its occurrences in that process (1 = the first). */
export interface Failpoint {
  readonly name: FailpointName;
  readonly nth: number;
  /** Default: SIGKILL. */
  readonly signal?: 'SIGKILL' | 'SIGSTOP';
}

type Side = 'before' | 'after';
/** What a save of the record carries: see `kindOf`. */
type SaveKind = 'first record' | 'intent' | 'result' | 'step' | 'phase' | 'outcome' | 'head';
type Effect = Tool['effect'];

export type FailpointName =
  | `${Side} ${'claim' | 'load' | 'keeping the outcome' | 'delete' | 'release'}`
  | `${Side} saving the ${SaveKind}`
  | `${Side} a model reply`
  | `${Side | 'within'} a call with effect ${Effect}`;

/** Kills this process when the chosen moment comes: nothing of it runs any more, no handler, no flush. */
export class Failpoints {
  readonly #chosen: Failpoint | undefined;
  readonly #say: (line: string) => void;
  #seen = 0;
  #isWorking = false;

  constructor(chosen: Failpoint | undefined, say: (line: string) => void = (line) => void process.stdout.write(line)) {
    this.#chosen = chosen;
    this.#say = say;
  }

  reach(name: FailpointName): void {
    if (name !== this.#chosen?.name) return;
    this.#seen += 1;
    if (this.#seen === this.#chosen.nth) process.kill(process.pid, this.#chosen.signal ?? 'SIGKILL');
  }

  /** Tells the parent, once, that a call has begun: from then on a kill lands in the middle of the run. */
  callBegun(): void {
    if (!this.#isWorking) this.#say('working\n');
    this.#isWorking = true;
  }

  async around<T>(name: Parameters<typeof pair>[0], work: () => Promise<T>): Promise<T> {
    const [before, after] = pair(name);
    this.reach(before);
    const result = await work();
    this.reach(after);
    return result;
  }
}

function pair(name: 'claim' | 'load' | 'keeping the outcome' | 'delete' | 'release' | `saving the ${SaveKind}`) {
  return [`before ${name}`, `after ${name}`] as const;
}

/** A store that refuses some writes, from the end of a phase on. */
export function refusingStore<S extends AppendingStore>(store: S, late: Job['late']): S {
  if (!late) return store;
  let left: number | undefined;
  const refuse = (kind: SaveKind, phases: number) => {
    if (kind === 'phase' && phases === late.phase) left ??= late.writes;
    if (!left) return;
    left -= 1;
    throw Object.assign(new Error('the store is away'), { code: 'STORE_UNAVAILABLE' });
  };
  return {
    ...store,
    save: async (record: RunCheckpoint, options?: WriteOptions) => {
      refuse(kindOfWhole(record), record.completedPhases.length);
      return store.save(record, options);
    },
    append: async (delta: RunDelta, options?: WriteOptions) => {
      refuse(kindOf(delta), delta.head.completedPhases.length);
      return store.append(delta, options);
    },
  };
}

/** The store, with a failpoint on both sides of each call. */
export function failingStore<S extends AppendingStore & OwningStore & Pick<StoreGroups, 'outcomes'>>(
  store: S,
  points: Failpoints,
): S {
  const failing: AppendingStore & OwningStore & Pick<StoreGroups, 'outcomes'> = {
    ...store,
    claim: (...call) => points.around('claim', () => store.claim(...call)),
    load: (...call) => points.around('load', () => store.load(...call)),
    save: (record: RunCheckpoint, options?: WriteOptions) =>
      points.around(`saving the ${kindOfWhole(record)}`, () => store.save(record, options)),
    append: (delta, options) => points.around(`saving the ${kindOf(delta)}`, () => store.append(delta, options)),
    outcomes: {
      ...store.outcomes,
      keep: async (...call) => points.around('keeping the outcome', () => store.outcomes.keep(...call)),
    },
    delete: (...call) => points.around('delete', () => store.delete(...call)),
    release: (claim: Claim) => points.around('release', () => store.release(claim)),
  };
  return failing as S;
}

function kindOfWhole(record: RunCheckpoint): SaveKind {
  if (record.revision <= 1) return 'first record';
  if (record.outcome) return 'outcome';
  return isBetweenPhases(record) ? 'phase' : 'head';
}

/** The boundary of a phase, which may bring the last messages of that phase. */
function isBetweenPhases({
  completedPhases,
  openPhase,
}: Pick<RunCheckpoint, 'completedPhases' | 'openPhase'>): boolean {
  return completedPhases.length > 0 && openPhase === undefined;
}

function kindOf({ messages, head }: RunDelta): SaveKind {
  if (head.outcome !== undefined) return 'outcome';
  if (isBetweenPhases(head)) return 'phase';
  if (messages.length > 0) return 'step';
  if (head.openStep === undefined) return 'head';
  return head.openStep.calls.some((call) => call.state === 'done') ? 'result' : 'intent';
}

/** The model, with a failpoint before it is asked and one when its stream is there. */
export function failingModel(model: Model, points: Failpoints): Model {
  return {
    ...model,
    doStream: async (options) => {
      points.reach('before a model reply');
      const answer = await model.doStream(options);
      points.reach('after a model reply');
      return answer;
    },
  };
}

/** Around one tool call, as the tool sees it: `before` nothing happened yet, `after` everything did. */
export async function failingCall<T>(
  call: { readonly effect: Effect; readonly context: ToolContext; readonly points: Failpoints },
  phases: { readonly begin: () => void; readonly work: () => Promise<T>; readonly end: () => void },
): Promise<T> {
  const { effect, points } = call;
  points.reach(`before a call with effect ${effect}`);
  phases.begin();
  points.callBegun();
  points.reach(`within a call with effect ${effect}`);
  const result = await phases.work();
  phases.end();
  points.reach(`after a call with effect ${effect}`);
  return result;
}
