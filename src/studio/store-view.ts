import { cursorText, limitIn, placeInCursor } from '../http/cursor.ts';
import { jsonAnswer } from '../http/problem.ts';
import type { GrantedCall, Route } from '../http/route.ts';
import { ownRoots } from '../http/run-access.ts';
import { Below } from '../http/runs/run-list.ts';
import { answerSchemaOf, anything, pageQuery, pageSchemaOf } from '../http/schemas.ts';
import type { ListCursor, ListedRun, RunExplanation } from '../index.ts';
import { RECORD_VERSION } from '../record/checkpoint.ts';
import { pageWords } from './page-words.ts';
import { verdictView } from './record/verdict-view.ts';
import type { Studio } from './studio.ts';
import { Audience } from './watch/audience.ts';
import type { Watcher } from './watch/watcher.ts';
import type { DoctorPage, DoctorRow, StoreParts, StoreView } from './wire.ts';

/** The routes of the store: what it can do and holds, and what the next recovery does with its runs. */
export function storeRoutes(studio: Studio, watcher: Watcher): readonly Route[] {
  return [
    {
      method: 'GET',
      path: '/store',
      summary: 'What the store can do and holds, and what may be done here.',
      action: 'inspect',
      answers: {
        200: {
          description: 'The store.',
          schema: answerSchemaOf({ parts: anything, may: anything, counts: anything }),
        },
      },
      handle: async (call: GrantedCall) => jsonAnswer(await storeView(studio, call, watcher)),
    },
    {
      method: 'GET',
      path: '/store/doctor',
      summary: 'What the next recovery does with each run that has not ended, by pages.',
      action: 'inspect',
      query: pageQuery,
      answers: { 200: { description: 'A page of runs.', schema: pageSchemaOf(anything) } },
      handle: async (call: GrantedCall) => jsonAnswer(await doctorPage(call)),
    },
  ];
}

/** What each part is for, and what is missing without it. */
const parts: readonly (readonly [part: keyof StoreParts, name: string, has: string, lacks: string])[] = [
  ['journal', 'Journal', 'keeps the events of each run', 'no timeline, and the chart shows the last save'],
  ['waits', 'Waits', 'runs wait here without a process', 'a run that waits keeps its process'],
  ['commands', 'Commands', 'other processes answer, steer and cancel', 'only the process of a run can do that'],
  ['history', 'History', 'keeps runs that have ended', 'a run that has ended is gone'],
  ['threads', 'Threads', 'keeps conversations', 'no conversations'],
];

async function storeView(
  { title, place, write, apply, served }: Studio,
  { grant }: GrantedCall,
  watcher: Watcher,
): Promise<StoreView> {
  const has = served.executor.capabilities;
  const may = { write, apply: apply !== undefined };
  return {
    title,
    place,
    parts: has,
    abilities: parts.map(([part, name, does, lacks]) => ({
      ...{ name, isThere: has[part] },
      text: has[part] ? does : lacks,
    })),
    may,
    words: pageWords(has, may),
    ...(grant.by ? { by: grant.by } : {}),
    ...(await watcher.audienceOf(grant).counts()),
    recordVersion: RECORD_VERSION,
  };
}

/** The runs that a caller may see: a record of a run below another one may name any caller. */
async function ownRuns(
  runs: readonly ListedRun[],
  of: Pick<GrantedCall, 'served' | 'grant'>,
): Promise<readonly ListedRun[]> {
  if (of.grant.all) return runs;
  const rootOf = (run: ListedRun) => ('parent' in run ? run.parent?.rootRunId : undefined);
  const own = await ownRoots(
    runs.flatMap((run) => rootOf(run) ?? []),
    of,
  );
  return runs.filter((run) => own.has(rootOf(run) ?? '') || rootOf(run) === undefined);
}

async function doctorPage({ served, grant, query }: GrantedCall): Promise<DoctorPage> {
  const { after: [given] = [], limit: [wanted] = [] } = query;
  const limit = limitIn(wanted);
  const after = placeInCursor<ListCursor>(given, isPlace);
  const callerId = grant.all ? undefined : grant.callerId;
  const own = callerId === undefined ? {} : { callerId };
  const runs = await served.executor.list({ limit, ...own, ...(after ? { after } : {}) });
  const audience = new Audience(served, callerId);
  const below = new Below(served);
  const items: DoctorRow[] = [];
  for (const run of await ownRuns(runs, { served, grant })) {
    const seen = await served.executor
      .explain(run.runId, { listed: run, messages: { from: 0, to: 0 } })
      .catch(() => null);
    // It has ended meanwhile.
    if (seen) items.push(rowOf(run, seen, { all: grant.all === true, line: await audience.line(run, below) }));
  }
  const last = runs.at(-1);
  return { items, ...(last && runs.length === limit ? { next: cursorText(placeOf(last)) } : {}) };
}

function isPlace({ runId, updatedAt }: Record<string, unknown>): boolean {
  return typeof runId === 'string' && (updatedAt === undefined || Number.isFinite(updatedAt));
}

function placeOf({ runId, updatedAt }: ListedRun): ListCursor {
  return { runId, ...(updatedAt === undefined ? {} : { updatedAt }) };
}

function rowOf(
  run: ListedRun,
  seen: RunExplanation,
  { all, line }: { readonly all: boolean; readonly line: DoctorRow['line'] },
): DoctorRow {
  const { record } = seen;
  const needs = needsOf(seen);
  const isOwned = run.status === 'live' || seen.owner !== undefined;
  const running = (record?.openStep?.calls ?? []).filter(
    ({ effect, state }) => effect === 'once' && state === 'started',
  );
  return {
    line,
    verdict: verdictView(seen, all),
    ...(needs === undefined ? {} : { needs }),
    ...(record ? { version: record.version } : {}),
    // A live process knows the state of its calls.
    unknownCalls: isOwned ? [] : running.slice(0, UNKNOWN_CALLS).map(({ name }) => name),
  };
}

/** Most unknown calls of a row. */
const UNKNOWN_CALLS = 20;

function needsOf({ verdict, code = '', needsPerson }: RunExplanation): string | undefined {
  if (!needsPerson) return undefined;
  if (Object.hasOwn(remedies, code)) return remedies[code];
  return byVerdict[verdict];
}

/** What a run needs, by the code of its verdict. */
const remedies: { readonly [code: string]: string } = {
  CHECKPOINT_TOO_NEW: 'a process with the newer version of Pawl that wrote it',
  DEFINITION_CHANGED: 'an agent with the phases that it began with, or a cancel',
  KEY_MISMATCH: 'the codec with the key that it was written with',
  OUTCOME_UNKNOWN: 'a look whether the call took effect, then unpark it',
};

const byVerdict: { readonly [verdict in RunExplanation['verdict']]?: string } = {
  resumes: 'a process with the model, key or tool that is missing',
  waits: 'an answer',
  parked: 'the cause removed, then unpark it',
  skipped: 'a process that has its agent',
  fails: 'a `migrate` that takes its record',
  unreadable: 'its bytes from a backup',
};
