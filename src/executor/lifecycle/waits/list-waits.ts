import type { RunCheckpoint } from '../../../record/checkpoint.ts';
import { type OpenWait, openWaitsIn, type ReadableRun } from '../../../record/interrupted.ts';
import type { Labels, ParentCall, RunCheckpointMeta } from '../../../run/request.ts';
import { answersIn, isAnswered, type SentAnswer } from '../../../run/waits/sent-answer.ts';
import type { Wait } from '../../../run/waits/wait.ts';
import { yieldToEventLoop } from '../../../values/event-loop.ts';
import { checkKeys, type KnownKeys, kindOf } from '../../../values/known-options.ts';
import type { ActiveRun, ExecutorServices } from '../../run/active-run.ts';
import { isOfCaller, openWaitsOf, redactedWaits } from '../stored/list-runs.ts';
import { allListed } from '../stored/stored-run-pages.ts';

/** A run on the way from a root to a wait. */
export interface WaitPathStep {
  readonly runId: string;
  /** Absent if the record of the run cannot be read. */
  readonly agentId?: string;
  /** The call of the run above that began it; absent for the root. */
  readonly callId?: string;
}

/** An entry of `executor.waiting()`: an open wait, and the run that has it. */
export type ListedWait = OpenWait & {
  readonly runId: string;
  /** The run that a host started: `control(rootRunId)` takes the answer too. The run itself, if no call began it. */
  readonly rootRunId: string;
  /** The runs from the root to this one, both included. It begins below a run whose record is gone. */
  readonly path: readonly WaitPathStep[];
  readonly agentId: string;
  readonly callerId: string;
  /** Those of the run; `{}` if it has none. */
  readonly labels: Labels;
  /** The last record of the run, wall clock, ms; absent if the run is live in this process. */
  readonly updatedAt?: number;
  /**
   * The answers that the store holds for it, the oldest first: they count when a process takes up the run. Absent = there is none,
   * or the list was not asked for them (`answers`).
   */
  readonly answers?: readonly SentAnswer[];
  /** With `answers`: persons have answered, and no other answer is needed, unless the run refuses one. */
  readonly isAnswered?: true;
};

/** The beginning of a page of `executor.waiting()`: any entry of it, or these fields of one. */
export type WaitCursor = Pick<ListedWait, 'runId' | 'id' | 'createdAt' | 'updatedAt'>;

/** The options of `executor.waiting()`. Each one narrows the list. */
export interface ListWaitsOptions {
  readonly runId?: string;
  /** Only waits of this run and of the runs below it. */
  readonly rootRunId?: string;
  readonly agentId?: string;
  readonly callerId?: string;
  /** Only waits of this kind, or of one of these. */
  readonly kind?: Wait['kind'] | readonly Wait['kind'][];
  /** Whether the entries have the answers that no process has read yet. It costs a read of the store for each run without a time. */
  readonly answers?: boolean;
  /** The last entry of the page before. */
  readonly after?: WaitCursor;
  /** Most entries of the answer, up to 1,000; default 100. A shorter answer is the last page. */
  readonly limit?: number;
}

const optionKeys: KnownKeys<ListWaitsOptions> = {
  runId: true,
  rootRunId: true,
  agentId: true,
  callerId: true,
  kind: true,
  answers: true,
  after: true,
  limit: true,
};

/** Every kind of wait. A missing kind does not compile. */
const kinds: { readonly [Kind in Wait['kind']]: true } = {
  approval: true,
  question: true,
  event: true,
  timer: true,
  child: true,
  retry: true,
  limit: true,
};

const WAITS_A_PAGE = 100;
const MAX_WAITS_LISTED = 1_000;

/** A run with open waits. */
interface WaitingRun {
  readonly meta: RunCheckpointMeta;
  readonly parent: ParentCall | undefined;
  readonly labels: Labels;
  readonly updatedAt?: number;
  readonly waits: readonly OpenWait[];
  /** Whether a command may wait for it in the store. */
  readonly mayHaveCommands?: boolean;
}

/**
 * Lists one page of open waits: first those of runs that are live in this process, by run id, then those of stored runs, by
 * the time of their last record. The waits of one run come in the order in which they began.
 * @throws {TypeError} for options that cannot be; the store's own error when its list cannot be read
 */
export async function listWaits(services: ExecutorServices, options: ListWaitsOptions): Promise<readonly ListedWait[]> {
  const { limit, after, isWanted } = checked(options);
  const page: ListedWait[] = [];
  const paths = new Paths(services);
  for await (const run of waitingRuns(services, options)) {
    paths.add(run);
    const { meta, parent, updatedAt } = run;
    const { runId, agentId, callerId } = meta;
    if (!isWanted.run(run)) continue;
    const waits = run.waits.filter((wait) => isWanted.wait(wait) && !isBefore(wait, run, after)).toSorted(inOrder);
    const answers = options.answers && waits.length > 0 ? await answersTo(services, run) : noAnswers;
    for (const wait of waits) {
      const of = { runId, rootRunId: parent?.rootRunId ?? runId, path: await paths.of(runId), agentId, callerId };
      const at = updatedAt === undefined ? {} : { updatedAt };
      page.push({ ...wait, ...of, labels: run.labels, ...at, ...answered(wait, answers.get(wait.id)) });
      if (page.length === limit) return page;
    }
  }
  return page;
}

type Answers = ReturnType<typeof answersIn>;
const noAnswers: Answers = new Map();

/** The answers that the store holds for a run. An answer makes a resting run due. An inbox that cannot be read hides no wait. */
async function answersTo(
  { config: { store } }: ExecutorServices,
  { meta, mayHaveCommands }: WaitingRun,
): Promise<Answers> {
  if (!mayHaveCommands || !store?.commands) return noAnswers;
  // An inbox may be long: others must not wait until all of a page are read.
  await yieldToEventLoop();
  return answersIn(await store.commands.inbox({ runId: meta.runId }).catch(() => []));
}

function answered(wait: OpenWait, answers: ListedWait['answers']): Pick<ListedWait, 'answers' | 'isAnswered'> {
  if (!answers) return {};
  return { answers, ...(isAnswered(wait, answers) ? { isAnswered: true } : {}) };
}

function inOrder(a: Pick<OpenWait, 'createdAt' | 'id'>, b: Pick<OpenWait, 'createdAt' | 'id'>): number {
  return a.createdAt - b.createdAt || (a.id < b.id ? -1 : Number(a.id > b.id));
}

/** Whether a page that ended in this run has shown the wait. */
function isBefore(wait: OpenWait, { meta }: WaitingRun, after: WaitCursor | undefined): boolean {
  return after !== undefined && meta.runId === after.runId && inOrder(wait, after) <= 0;
}

async function* waitingRuns(
  services: ExecutorServices,
  { after, runId, callerId, limit = WAITS_A_PAGE }: ListWaitsOptions,
): AsyncGenerator<WaitingRun, void, undefined> {
  const { registry, config } = services;
  const { store } = config;
  const only = runId === undefined ? undefined : registry.live(runId);
  if (only && isShown(only)) {
    yield liveRun(only);
    return;
  }
  if (runId !== undefined) {
    const record = await store?.load(runId);
    if (record) yield recordedRun(record);
    return;
  }
  if (after?.updatedAt === undefined) yield* liveRuns(services, { after: after?.runId, callerId });
  if (!store) return;
  // The run at which the last page ended may have more waits; the list begins after it.
  const last = after?.updatedAt === undefined ? undefined : await loadWaiting(services, after.runId);
  if (last && last.updatedAt === after?.updatedAt) yield last;
  const from = after?.updatedAt === undefined ? {} : { after: { updatedAt: after.updatedAt, runId: after.runId } };
  for await (const { entry } of allListed(store, { ...from, callerId, wanted: limit })) {
    const live = registry.live(entry.runId);
    if (entry.status === 'quarantined' || (live && isShown(live))) continue;
    const run = await entryRun(services, entry);
    if (run) yield run;
  }
}

/** A run that leaves, or whose start is not accepted, is shown as the store has it. */
function isShown({ life }: ActiveRun): boolean {
  return life.isAtWork;
}

function* liveRuns(
  { registry }: ExecutorServices,
  { after = '', callerId }: { readonly after: string | undefined; readonly callerId: string | undefined },
): Generator<WaitingRun, void, undefined> {
  const runs = registry.all().filter((run) => run.runId >= after && isShown(run) && isOfCaller(run, callerId));
  for (const run of runs.toSorted((a, b) => (a.runId < b.runId ? -1 : 1))) yield liveRun(run);
}

function liveRun(run: ActiveRun): WaitingRun {
  const { progress, redaction } = run;
  if (!progress) throw new Error('an accepted run has progress');
  const waits = openWaitsOf(run);
  const shown = redaction?.records;
  return {
    meta: progress.meta,
    parent: progress.parent,
    labels: progress.labels ?? {},
    waits: shown ? redactedWaits(waits, shown) : waits,
  };
}

/** A run as its list entry shows it; where that lacks the waits, or the input of one, its record is read. */
async function entryRun(services: ExecutorServices, entry: ReadableRun): Promise<WaitingRun | undefined> {
  const { meta, parent, labels, updatedAt, waits = [], status, kind } = entry;
  const isUnknown = status === undefined || (status === 'waiting' && waits.length === 0 && kind !== 'workflow');
  const isWhole = waits.every(({ callId, input }) => callId === undefined || input !== undefined);
  if (isUnknown || !isWhole) return loadWaiting(services, meta.runId);
  return waits.length === 0
    ? undefined
    : { meta, parent, labels: labels ?? {}, updatedAt, waits, mayHaveCommands: mayHaveCommands(entry) };
}

/** Whether a command may wait for the run: one ends the time of a resting run, since it makes the run due. */
function mayHaveCommands({ dueAt = 0 }: ReadableRun): boolean {
  return dueAt <= 0;
}

/** Undefined for a run that has ended, or cannot be read: `executor.list` shows why. */
async function loadWaiting({ config }: ExecutorServices, runId: string): Promise<WaitingRun | undefined> {
  const record = await config.store?.load(runId).catch(() => undefined);
  return record ? recordedRun(record) : undefined;
}

function recordedRun(record: RunCheckpoint): WaitingRun {
  const { meta, parent, labels = {}, updatedAt, parked } = record;
  return { meta, parent, labels, updatedAt, waits: parked ? [] : openWaitsIn(record), mayHaveCommands: true };
}

/** Most remembered runs above others, and most runs on one path. */
const MAX_KNOWN = 1_000;
const LONGEST_PATH = 32;

interface Node {
  readonly agentId?: string;
  readonly parent?: ParentCall | undefined;
}

/** Finds the runs above a run. Listed runs are not read again. */
class Paths {
  readonly #services: ExecutorServices;
  readonly #known = new Map<string, Node | null>();

  constructor(services: ExecutorServices) {
    this.#services = services;
  }

  add({ meta, parent }: WaitingRun): void {
    if (this.#known.size >= MAX_KNOWN) this.#known.clear();
    this.#known.set(meta.runId, { agentId: meta.agentId, parent });
  }

  async of(runId: string): Promise<readonly WaitPathStep[]> {
    const path: WaitPathStep[] = [];
    for (let at: string | undefined = runId; at !== undefined && path.length < LONGEST_PATH; ) {
      const node = await this.#node(at);
      if (!node) break;
      const { agentId, parent } = node;
      const found: string = at;
      path.unshift({ runId: found, ...(agentId ? { agentId } : {}), ...(parent ? { callId: parent.callId } : {}) });
      // A damaged record may name a run below it.
      at = path.some((step) => step.runId === parent?.runId) ? undefined : parent?.runId;
    }
    return path;
  }

  /** Null if there is no record of it. */
  async #node(runId: string): Promise<Node | null> {
    const live = this.#services.registry.live(runId)?.progress;
    if (live) return { agentId: live.meta.agentId, parent: live.parent };
    const known = this.#known.get(runId);
    if (known !== undefined) return known;
    const node = await this.#load(runId);
    this.#known.set(runId, node);
    return node;
  }

  async #load(runId: string): Promise<Node | null> {
    try {
      const record = await this.#services.config.store?.load(runId);
      return record ? { agentId: record.meta.agentId, parent: record.parent } : null;
    } catch {
      return {};
    }
  }
}

function checked(options: ListWaitsOptions) {
  checkKeys(options, optionKeys, { of: 'executor.waiting' });
  const { limit = WAITS_A_PAGE, after } = options;
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_WAITS_LISTED)
    throw new TypeError(`executor.waiting: limit must be a whole number from 1 to 1,000, not ${String(limit)}`);
  if (after !== undefined && !isCursor(after))
    throw new TypeError('executor.waiting: after must be the last entry of a page');
  for (const name of ['runId', 'rootRunId', 'agentId', 'callerId'] as const) {
    const value: unknown = options[name];
    if (value === undefined || typeof value === 'string') continue;
    throw new TypeError(`executor.waiting: ${name} must be a string, not ${kindOf(value)}`);
  }
  const wanted = options.kind === undefined ? undefined : kindsOf(options.kind);
  const { rootRunId, agentId, callerId } = options;
  return {
    limit,
    after,
    isWanted: {
      run: ({ meta, parent }: WaitingRun) =>
        (rootRunId === undefined || rootRunId === (parent?.rootRunId ?? meta.runId)) &&
        (agentId === undefined || agentId === meta.agentId) &&
        (callerId === undefined || callerId === meta.callerId),
      wait: ({ kind }: OpenWait) => !wanted || wanted.includes(kind),
    },
  };
}

function isCursor(after: Partial<WaitCursor> | null): boolean {
  const isNamed = typeof after?.runId === 'string' && typeof after.id === 'string';
  if (!isNamed || !Number.isFinite(after.createdAt)) return false;
  return after.updatedAt === undefined || Number.isFinite(after.updatedAt);
}

function kindsOf(kind: NonNullable<ListWaitsOptions['kind']>): readonly Wait['kind'][] {
  const wanted: unknown = typeof kind === 'string' ? [kind] : kind;
  const known = Object.keys(kinds).join(', ');
  if (!Array.isArray(wanted) || wanted.length === 0)
    throw new TypeError(`executor.waiting: kind must be one or more of ${known}, not ${kindOf(wanted)}`);
  for (const each of wanted) {
    if (typeof each === 'string' && Object.hasOwn(kinds, each)) continue;
    const got = typeof each === 'string' ? JSON.stringify(each.slice(0, 100)) : kindOf(each);
    throw new TypeError(`executor.waiting: there is no kind of wait ${got}; known: ${known}`);
  }
  return wanted;
}
