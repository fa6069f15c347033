import type { FoundRun, Labels, ListCursor, ListedRun } from '../../index.ts';
import { cursorText, limitIn, type Page, placeIn } from '../cursor.ts';
import { RequestError } from '../problem.ts';
import type { GrantedCall, Served } from '../route.ts';
import { childrenOf, isForPersonWait, type RunLine, type RunState, runLine, runStates } from './run-line.ts';

/** What a list of runs is narrowed to. */
interface Filter {
  readonly callerId: string | undefined;
  readonly states: ReadonlySet<RunState>;
  /** In lower case; '' = any. */
  readonly text: string;
  readonly labels: Labels;
  readonly limit: number;
}

const MAX_FILTER_CHARS = 200;
const MAX_LABEL_FILTERS = 8;
/** Runs that are read for one page; a page that finds fewer than it wants ends there, and names its place. */
const MAX_READ = 2_000;
const READ_AT_ONCE = 100;
/** Runs below others that are read for one page, to see whether a person is needed there. */
const MAX_BELOW = 64;

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
    labels: Object.fromEntries(label.map(labelOf)),
    limit: limitIn(limit),
  };
}

/** `name=text`. */
function labelOf(given: string): readonly [string, string] {
  const at = given.indexOf('=');
  if (at < 1 || given.length > MAX_FILTER_CHARS)
    throw new RequestError('BAD_REQUEST', 'the query needs labels of the form name=text');
  return [given.slice(0, at), given.slice(at + 1)];
}

/** Lists the runs that a caller started, without the runs below them: open ones first, by the time of their last record. */
export async function listRunLines(call: GrantedCall): Promise<Page<RunLine>> {
  const { served, grant, query } = call;
  const filter = filterOf(call);
  const below = new Below(served);
  const items: RunLine[] = [];
  let after = placeIn<ListCursor>(query.after?.[0], isListCursor);
  for (let read = 0; read < MAX_READ; ) {
    const page = await openRuns(served, filter, after);
    for (const run of page) {
      after = { runId: run.runId, ...(run.updatedAt === undefined ? {} : { updatedAt: run.updatedAt }) };
      const line = await lineOf(run, { served, filter, below, all: grant.all === true });
      if (line) items.push(grant.all ? line : withoutOwner(line));
      if (items.length === filter.limit) return { items, next: cursorText(after) };
    }
    if (page.length < READ_AT_ONCE) return { items };
    read += page.length;
  }
  return after ? { items, next: cursorText(after) } : { items };
}

function isListCursor({ runId, updatedAt }: Record<string, unknown>): boolean {
  return typeof runId === 'string' && (updatedAt === undefined || Number.isFinite(updatedAt));
}

function openRuns({ executor }: Served, { callerId, labels }: Filter, after: ListCursor | undefined) {
  return executor.list({
    limit: READ_AT_ONCE,
    labels,
    ...(after ? { after } : {}),
    ...(callerId === undefined ? {} : { callerId }),
  });
}

interface LineContext {
  readonly served: Served;
  readonly filter: Filter;
  readonly below: Below;
  readonly all: boolean;
}

/** The line of a run that fits the filter. Runs below others are part of the line of their root. */
async function lineOf(run: ListedRun, { served, filter, below, all }: LineContext): Promise<RunLine | undefined> {
  if (('parent' in run && run.parent) || !hasText(run, filter.text)) return undefined;
  const maxSteps = maxStepsOf(served, 'meta' in run ? run.meta.agentId : '');
  const line = runLine(run, { all, maxSteps, needsPerson: await below.needsPerson(run) });
  return filter.states.has(line.state) ? line : undefined;
}

/** Returns the step limit of an agent; undefined if requests may not start it, or it has none of its own. */
export function maxStepsOf({ agents }: Served, agentId: string): number | undefined {
  return [...agents.values()].find(({ id }) => id === agentId)?.maxIterations;
}

function hasText(run: ListedRun, text: string): boolean {
  if (text === '') return true;
  const texts = 'meta' in run ? [run.runId, run.meta.agentName, run.meta.prompt] : [run.runId];
  return texts.some((each) => each.toLowerCase().includes(text));
}

/** Returns a line without the process that works on the run: its name says where the server runs. */
export function withoutOwner({ owner: _, ...line }: RunLine): RunLine {
  return line;
}

/** Looks at the runs below others: a person may be needed there. */
export class Below {
  readonly #served: Served;
  #left = MAX_BELOW;

  constructor(served: Served) {
    this.#served = served;
  }

  /** Returns whether a run below this one waits for a person. Of very many, not all are looked at. */
  async needsPerson(run: FoundRun | ListedRun): Promise<boolean> {
    for (const runId of childrenOf(run)) {
      if (this.#left === 0) return false;
      this.#left -= 1;
      // A run that cannot be read waits for nothing that could be answered.
      const child = await this.#served.executor.find(runId).catch(() => null);
      if (!child) continue;
      const waits = 'waits' in child ? (child.waits ?? []) : [];
      if (waits.some(isForPersonWait) || (await this.needsPerson(child))) return true;
    }
    return false;
  }
}
