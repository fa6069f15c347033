import type { KeptRun, Labels, ListCursor, ListedRun, OpenWait } from '../../index.ts';
import { labelsOf } from '../../run/request.ts';
import { answersIn, isAnswered } from '../../run/waits/sent-answer.ts';
import { hasCode } from '../../values/error-data.ts';
import { Turns } from '../../values/event-loop.ts';
import { cursorText, limitIn, type PageQuery, placeInCursor } from '../cursor.ts';
import { RequestError } from '../problem.ts';
import type { GrantedCall, Served } from '../route.ts';
import {
  type AnyRun,
  childrenOf,
  endedLine,
  isForPersonWait,
  type LineFacts,
  type RunLine,
  type RunState,
  runLine,
  runStates,
} from './run-line.ts';

/** What a list of runs is narrowed to. */
interface Filter {
  readonly callerId: string | undefined;
  readonly states: ReadonlySet<RunState>;
  /** In lower case; '' = any. */
  readonly text: string;
  readonly labels: Labels;
  /** When they ended, wall clock, ms; absent = any time, and open runs too. */
  readonly ended: { readonly since?: number; readonly until?: number } | undefined;
  readonly limit: number;
}

const MAX_FILTER_CHARS = 200;
const MAX_LABEL_FILTERS = 8;
/** Runs that are read for one page; a page that finds fewer than it wants ends there, and names its place. */
const MAX_READ = 2_000;
const READ_AT_ONCE = 100;
/** Of all lists of the process: a hundred searches at once hold up no other request for longer than one reading. */
const turns = new Turns();
/** Runs below others that are read for one page, to see whether a person is needed there. */
const MAX_BELOW = 64;
/** Most runs of a page whose stored answers are looked for. */
const MAX_DUE = 64;

/** Reads the parameters of `GET /runs`. @throws {RequestError} BAD_REQUEST */
function filterOf({ grant, query }: GrantedCall): Filter {
  const { state: states = runStates, q: [q = ''] = [], label = [], limit: [limit] = [] } = query;
  const unknown = states.find((state) => !runStates.includes(state as RunState));
  if (unknown !== undefined)
    throw new RequestError('BAD_REQUEST', `the query has an unknown state; known: ${runStates.join(', ')}`);
  if (q.length > MAX_FILTER_CHARS || label.length > MAX_LABEL_FILTERS)
    throw new RequestError(
      'BAD_REQUEST',
      `the query may have a q of ${MAX_FILTER_CHARS} characters and ${MAX_LABEL_FILTERS} labels`,
    );
  return {
    callerId: grant.all ? undefined : grant.callerId,
    states: new Set(states as readonly RunState[]),
    text: q.toLowerCase(),
    labels: labelsIn(label),
    ended: endedIn(query),
    limit: limitIn(limit),
  };
}

function labelsIn(given: readonly string[]): Labels {
  const labels = Object.fromEntries(given.map(labelOf));
  try {
    return labelsOf(labels, 'label');
  } catch {
    throw new RequestError('BAD_REQUEST', 'the query has labels that no run can have');
  }
}

/** When the runs ended that a query asks for. */
function endedIn(query: GrantedCall['query']): Filter['ended'] {
  const [since, until] = [query.since?.[0], query.until?.[0]];
  if (since === undefined && until === undefined) return undefined;
  return {
    ...(since === undefined ? {} : { since: timeIn('since', since) }),
    ...(until === undefined ? {} : { until: timeIn('until', until) }),
  };
}

function timeIn(name: string, text: string): number {
  const time = /^\d{1,15}$/.test(text) ? Number(text) : Date.parse(text);
  if (Number.isFinite(time)) return time;
  throw new RequestError('BAD_REQUEST', `the query needs ${name} as an ISO date with a time, or in ms`);
}

/** `name=text`. */
function labelOf(given: string): readonly [string, string] {
  const at = given.indexOf('=');
  if (at < 1 || given.length > MAX_FILTER_CHARS)
    throw new RequestError('BAD_REQUEST', 'the query needs labels of the form name=text');
  return [given.slice(0, at), given.slice(at + 1)];
}

/** Where a page ended: at an open run, or at one that has ended. */
type Place = ListCursor | KeptCursor;
type KeptCursor = Pick<KeptRun, 'runId' | 'endedAt'>;

/**
 * Lists the runs that a caller started, without the runs below them: open ones first, by the time of their last record, then
 * those that ended while their records are kept, the newest end first.
 */
export async function listRunLines(call: GrantedCall): Promise<PageQuery<RunLine>> {
  const { served, grant, query } = call;
  const filter = filterOf(call);
  const context = { served, filter, below: new Below(served), all: grant.all === true };
  const items: RunLine[] = [];
  let place = placeInCursor<Place>(query.after?.[0], isPlace);
  let read = 0;
  for await (const [run, at] of runsAfter(served, filter, place)) {
    place = at;
    read += 1;
    const line = await lineOf(run, context);
    if (line) items.push(grant.all ? line : withoutOwner(line));
    if (items.length === filter.limit || read === MAX_READ) return { items, next: cursorText(place) };
    if (read % READ_AT_ONCE === 0) await turns.own();
  }
  return { items };
}

function isPlace({ runId, updatedAt, endedAt }: Record<string, unknown>): boolean {
  const isTime = (time: unknown) => time === undefined || Number.isFinite(time);
  return typeof runId === 'string' && isTime(updatedAt) && isTime(endedAt);
}

type Placed = readonly [run: AnyRun, place: Place];

async function* runsAfter(served: Served, filter: Filter, place: Place | undefined): AsyncGenerator<Placed> {
  const isEnded = place !== undefined && 'endedAt' in place;
  if (!isEnded && !filter.ended && hasState(filter, openStates)) yield* openRuns(served, filter, place);
  if (hasState(filter, endStates)) yield* listEnded(served, filter, isEnded ? place : undefined);
}

const endStates: readonly RunState[] = ['ok', 'fail', 'cut'];
const openStates = runStates.filter((state) => !endStates.includes(state));

function hasState({ states }: Filter, some: readonly RunState[]): boolean {
  return some.some((state) => states.has(state));
}

async function* openRuns({ executor }: Served, filter: Filter, from: ListCursor | undefined): AsyncGenerator<Placed> {
  const { labels } = filter;
  let after = from;
  for (;;) {
    const options = { limit: READ_AT_ONCE, labels, ...callerOf(filter), ...(after ? { after } : {}) };
    const page: readonly ListedRun[] = await executor.list(options);
    for (const run of page) {
      after = { runId: run.runId, ...(run.updatedAt === undefined ? {} : { updatedAt: run.updatedAt }) };
      yield [run, after];
    }
    if (page.length < READ_AT_ONCE) return;
  }
}

/** None in a store that keeps no records of ended runs. */
async function* listEnded({ executor }: Served, filter: Filter, from: KeptCursor | undefined): AsyncGenerator<Placed> {
  let after = from;
  for (;;) {
    const options = { limit: READ_AT_ONCE, ...callerOf(filter), ...filter.ended, ...(after ? { after } : {}) };
    const page = await executor.history(options).catch((error: unknown): readonly KeptRun[] => {
      if (hasCode(error, 'UNSUPPORTED')) return [];
      throw error;
    });
    for (const run of page) {
      after = { runId: run.runId, endedAt: run.endedAt };
      yield [run.status === 'quarantined' ? run : endedLine(run), after];
    }
    if (page.length < READ_AT_ONCE) return;
  }
}

function callerOf({ callerId }: Filter): { callerId?: string } {
  return callerId === undefined ? {} : { callerId };
}

/** The list of open runs has done this already. */
function hasLabels(run: AnyRun, { labels }: Filter): boolean {
  const own = ('labels' in run ? run.labels : undefined) ?? {};
  return Object.entries(labels).every(([name, label]) => Object.hasOwn(own, name) && own[name] === label);
}

interface LineContext {
  readonly served: Served;
  readonly filter: Filter;
  readonly below: Below;
  readonly all: boolean;
}

/** The line of a run that fits the filter. Runs below others are part of the line of their root. */
async function lineOf(run: AnyRun, { served, filter, below, all }: LineContext): Promise<RunLine | undefined> {
  if (('parent' in run && run.parent) || !hasText(run, filter.text) || !hasLabels(run, filter)) return undefined;
  const maxSteps = maxStepsOf(served, ('meta' in run ? run.meta?.agentId : undefined) ?? '');
  const line = runLine(run, { all, maxSteps, ...(await below.look(run)) });
  return filter.states.has(line.state) ? line : undefined;
}

/** Returns the step limit of an agent; undefined if requests may not start it, or it has none of its own. */
export function maxStepsOf({ agents }: Served, agentId: string): number | undefined {
  return [...agents.values()].find(({ id }) => id === agentId)?.maxSteps;
}

function hasText(run: AnyRun, text: string): boolean {
  if (text === '') return true;
  const meta = 'meta' in run ? run.meta : undefined;
  const texts = meta ? [run.runId, meta.agentName, meta.prompt] : [run.runId];
  return texts.some((each) => each.toLowerCase().includes(text));
}

/** Returns a line without the process that works on the run: its name says where the server runs. */
export function withoutOwner({ owner: _, ...line }: RunLine): RunLine {
  return line;
}

interface StoredWaits {
  readonly waits?: readonly OpenWait[];
  readonly dueAt?: number;
}

/** Looks at the runs below others: a person may be needed there. */
export class Below {
  readonly #served: Served;
  #left = MAX_BELOW;
  #due = MAX_DUE;

  constructor(served: Served) {
    this.#served = served;
  }

  /** Returns who has to do something for a run: persons, or the process that reads what they have answered. */
  async look(run: AnyRun): Promise<Pick<LineFacts, 'needsPerson' | 'isAnswered'>> {
    return { needsPerson: await this.needsPerson(run), isAnswered: await this.#isAnswered(run) };
  }

  /** An answer ends the time of a resting run: one with a time is not looked at, and of another one its conversation is not read. */
  async #isAnswered(run: AnyRun): Promise<boolean> {
    const { waits = [], dueAt = 0 } = 'waits' in run ? (run as StoredWaits) : {};
    // A run that is live in this process has read its answers.
    if (dueAt > 0 || 'state' in run || !waits.some(isForPersonWait) || this.#due === 0) return false;
    this.#due -= 1;
    // Its inbox may be long: requests must not wait until all of a page are read.
    await turns.own();
    const seen = await this.#served.executor.explain(run.runId, { messages: { from: 0, to: 0 } }).catch(() => null);
    const answers = answersIn(seen?.commands ?? []);
    const asking = (seen?.record?.waiting?.waits ?? []).filter(isForPersonWait);
    return asking.length > 0 && asking.every((wait) => isAnswered(wait, answers.get(wait.id) ?? []));
  }

  /** Returns whether a run below this one waits for a person. Of very many, not all are looked at. */
  async needsPerson(run: AnyRun): Promise<boolean> {
    for (const runId of childrenOf(run)) {
      if (this.#left === 0) return false;
      this.#left -= 1;
      // A run that cannot be read waits for nothing that could be answered.
      const child = await this.#served.executor.find(runId).catch(() => null);
      if (!child) continue;
      const waits = 'waits' in child ? (child.waits ?? []) : [];
      const asks = waits.some(isForPersonWait) && !(await this.#isAnswered(child));
      if (asks || (await this.needsPerson(child))) return true;
    }
    return false;
  }
}
