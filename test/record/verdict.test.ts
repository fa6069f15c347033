import type { InterruptedRun, RunCheckpoint, RunStatus, Wait, Waiting } from 'pawl';
import { describe, expect, test } from 'vitest';
import { listedStatus } from '../../src/record/listed-status.ts';
import type { TreePlace } from '../../src/record/run-tree.ts';
import { LIVE_HERE, type NextStart, type VerdictFacts, verdictOfRun } from '../../src/record/verdict.ts';
import { recordOf } from '../fixtures/records.ts';

const record: RunCheckpoint = { ...recordOf('first'), iteration: 2, attempts: 0 };
const { meta } = record;
const { runId } = meta;
const listed = { runId, meta, iteration: 2, completedPhases: [], updatedAt: 1 } as const;
const entry: InterruptedRun = { ...listed, status: 'interrupted' };
const corrupt = { code: 'CHECKPOINT_CORRUPT', message: 'the head is torn' };
const childOf = (parent: string, root = parent): TreePlace => ({ kind: 'child', parent, root, depth: 1 });
const parks = { code: 'TOO_MANY_ATTEMPTS', reason: 'it was started 3 times in a row' };
const NOW = 1_000;

const starts = (change: Partial<RunCheckpoint> = {}, reason?: typeof parks) => {
  const next: NextStart = { record: { ...record, ...change }, parks: reason, now: NOW };
  return () => next;
};

const timer: Wait = { id: 'w', createdAt: 1, step: 1, kind: 'timer' };
const approval: Wait = {
  ...timer,
  kind: 'approval',
  digest: 'd',
  quorum: 1,
  votes: [],
  editable: false,
  onExpiry: 'deny',
};
const question: Wait = { ...timer, kind: 'question', question: 'Which?' };
const retry = (needsPerson: boolean): Wait => ({
  ...timer,
  kind: 'retry',
  error: { name: 'Error', ...corrupt },
  failures: 3,
  since: 1,
  needsPerson,
});
const waiting = (waits: readonly Wait[], wakeAt?: number): { waiting: Waiting } => ({
  waiting: { waits, settled: [], ...(wakeAt === undefined ? {} : { wakeAt }) },
});

/** The rows of the table, first one first: the fact that each is about, and what it says when only this fact is given. */
const rows: readonly (readonly [name: string, fact: Partial<VerdictFacts>, verdict: object])[] = [
  [
    'a record that a list cannot read is unreadable',
    { entry: { runId, status: 'quarantined', reason: 'CHECKPOINT_TOO_NEW: upgrade' } },
    {
      verdict: 'unreadable',
      reason: 'it cannot be read: upgrade',
      code: 'CHECKPOINT_TOO_NEW',
      needsPerson: true,
    },
  ],
  [
    'a record that could not be read as a whole is unreadable',
    { damage: { name: 'Error', ...corrupt } },
    { verdict: 'unreadable', reason: 'it cannot be read: the head is torn', code: corrupt.code, needsPerson: true },
  ],
  [
    'a run that this process works on is live',
    { isLiveHere: true },
    { verdict: 'live', reason: LIVE_HERE, needsPerson: false },
  ],
  [
    'a run with an owner is live',
    { entry: { ...entry, owner: 'elsewhere|1' } },
    { verdict: 'live', reason: 'a process works on it', code: 'RUN_OWNED_ELSEWHERE', needsPerson: false },
  ],
  [
    'a run that was parked stays so until a person frees it',
    { entry: { ...entry, status: 'parked', code: 'PARKED', reason: 'a person looks' } },
    { verdict: 'parked', reason: 'it is parked: a person looks', code: 'PARKED', needsPerson: true },
  ],
  [
    'a run whose record `migrate` refuses fails, with the host’s own words',
    {
      next: () => ({
        failed: {
          name: 'E',
          code: 'MIGRATION',
          message: 'migrate failed',
          cause: { name: 'E', code: 'X', message: 'no tier' },
        },
      }),
    },
    { verdict: 'fails', reason: 'migrate failed: no tier', code: 'MIGRATION', needsPerson: true },
  ],
  [
    'a run that its parent continues is a child',
    { place: childOf('p', 'r') },
    { verdict: 'child', reason: 'its parent run p continues it', needsPerson: false },
  ],
  [
    'a run whose agent does not exist is skipped',
    { agent: 'missing' },
    {
      verdict: 'skipped',
      reason: `there is no agent ${meta.agentId} to continue it; its record is kept`,
      code: 'AGENT_NOT_FOUND',
      needsPerson: true,
    },
  ],
  [
    'a run with open waits waits',
    { next: starts(waiting([timer])) },
    { verdict: 'waits', reason: 'it waits for a time', needsPerson: false },
  ],
  [
    'a run that its next start parks is parked',
    { next: starts({}, parks) },
    {
      verdict: 'parked',
      reason: 'the next start parks it: it was started 3 times in a row',
      code: 'TOO_MANY_ATTEMPTS',
      needsPerson: true,
    },
  ],
  [
    'a run of whose tree the top has ended is ended',
    { place: { kind: 'orphan' }, next: starts() },
    {
      verdict: 'resumes',
      reason: 'the run that began it no longer exists: it is ended as cancelled, without another model call',
      needsPerson: false,
    },
  ],
  [
    'a run that a process gave back for want of a key resumes, and needs a person (edges 2)',
    { next: starts({ setup: { code: 'MODEL', since: 0 } }) },
    {
      verdict: 'resumes',
      reason: `it continues after 2 steps; a process gave it back, because a model, its key or a tool was missing (MODEL, since 1970-01-01T00:00:00.000Z)`,
      code: 'SETUP',
      needsPerson: true,
    },
  ],
  [
    'any other run resumes',
    { next: starts() },
    { verdict: 'resumes', reason: 'it continues after 2 steps', needsPerson: false },
  ],
];

/** Facts about one run together; of the entry, the fields of both. */
function together(...all: readonly Partial<VerdictFacts>[]): VerdictFacts {
  const facts: Partial<VerdictFacts> = Object.assign({}, ...all.toReversed());
  const entries = all.flatMap((each) => each.entry ?? []).toReversed();
  return { ...facts, entry: Object.assign({}, entry, ...entries) };
}

/** No run waits for the answer of an orphan, so that it waits for nothing either: a test of its own says so. */
function isOrphanThatWaits(fact: Partial<VerdictFacts>, { place }: Partial<VerdictFacts>): boolean {
  const found = fact.next?.();
  const isWaiting = found !== undefined && 'record' in found && found.record.waiting !== undefined;
  return isWaiting && place?.kind === 'orphan';
}

describe('the verdict on a stored run', () => {
  test.each(rows)('%s', (_, fact, verdict) => {
    expect(verdictOfRun({ entry, agent: 'found', ...fact })).toEqual(verdict);
  });

  test.each(
    rows.map(
      ([name, fact, verdict], i) =>
        [
          name,
          { fact, verdict, below: rows.slice(i + 1).filter(([, other]) => !isOrphanThatWaits(fact, other)) },
        ] as const,
    ),
  )('%s, for any of the rows below it', (_, { fact, verdict, below }) => {
    for (const [, other] of below) expect(verdictOfRun(together(fact, other))).toEqual(verdict);
    // The facts of a start are one fact: of two, the first counts.
    expect(verdictOfRun(together(fact, ...below.map(([, other]) => other)))).toEqual(verdict);
  });

  test('depends on the place in its tree only for a run that may be a child', () => {
    expect(verdictOfRun({ entry, agent: 'missing' })).toMatchObject({ verdict: 'skipped' });
    const parent = { runId: 'p', callId: 'c', rootRunId: 'p' };
    const child = { ...entry, parent } as InterruptedRun;
    expect(verdictOfRun({ entry: child, agent: 'missing' })).toEqual({ need: 'place', run: child });
    expect(verdictOfRun({ entry: child, agent: 'missing', place: { kind: 'orphan' } })).toMatchObject({
      verdict: 'skipped',
    });
    const unnamed = { ...entry, runId: '~abc' } as InterruptedRun;
    expect(verdictOfRun({ entry: unnamed })).toEqual({ need: 'place', run: unnamed });
  });

  test('depends on a start where a list and the tree decide nothing', () => {
    expect(verdictOfRun({ entry, agent: 'found' })).toEqual({ need: 'start', run: entry });
    expect(verdictOfRun({ entry, agent: 'found', place: { kind: 'orphan' } })).toEqual({ need: 'start', run: entry });
  });

  test('asks for what a start finds only when no earlier row applies: `migrate` is the host’s', () => {
    const next = () => {
      throw new Error('not needed');
    };
    for (const [, fact] of rows.slice(0, 5)) expect(verdictOfRun({ entry, next, ...fact })).toHaveProperty('verdict');
  });

  test('leaves a run whose phases changed to its start, if there is an agent to compare with', () => {
    const changed: InterruptedRun = { ...entry, status: 'parked', code: 'DEFINITION_CHANGED', reason: 'other phases' };
    expect(verdictOfRun({ entry: changed, agent: 'found' })).toHaveProperty('need', 'start');
    expect(verdictOfRun({ entry: changed, agent: 'missing' })).toMatchObject({ verdict: 'skipped' });
    expect(verdictOfRun({ entry: changed })).toMatchObject({ verdict: 'parked', code: 'DEFINITION_CHANGED' });
  });

  test('names the run that cannot be read above a child, and its error', () => {
    const trouble = { name: 'Error', ...corrupt };
    const on = (parent: string, root: string) =>
      verdictOfRun({ entry, place: { kind: 'child', parent, root, trouble } as TreePlace });
    const child = { verdict: 'child', code: corrupt.code, needsPerson: false };
    expect(on('p', 'p')).toEqual({ ...child, reason: 'its parent run p cannot be read: the head is torn' });
    expect(on('p', 'r')).toEqual({
      ...child,
      reason: 'run r, at the top of its tree, cannot be read: the head is torn',
    });
  });

  test.each([
    ['a time, an event', [timer, { ...timer, kind: 'event', name: 'n', key: 'k' } as Wait], false],
    ['an approval', [approval], true],
    ['an answer, a time', [question, timer], true],
    ['its model', [retry(false)], false],
    ['its model', [retry(true)], true],
    ['a child run', [{ ...timer, kind: 'child', childRunId: '~c' } as Wait], false],
  ] as const)('a run waits for %s, and may need a person for that', (words, waits, needsPerson) => {
    const found = verdictOfRun({ entry, next: starts(waiting(waits)) });
    expect(found).toEqual({ verdict: 'waits', reason: `it waits for ${words}`, needsPerson });
  });

  test('waits, for any result of its next start: none is tried', () => {
    expect(verdictOfRun({ entry, next: starts(waiting([timer]), parks) })).toMatchObject({ verdict: 'waits' });
    expect(verdictOfRun({ entry, next: starts(waiting([timer], NOW), parks) })).toMatchObject({ verdict: 'parked' });
  });

  test('waits until its time has come, and continues then; an orphan waits no more', () => {
    const at = (wakeAt: number) => verdictOfRun({ entry, next: starts(waiting([timer], wakeAt)) });
    expect(at(NOW + 1)).toMatchObject({
      verdict: 'waits',
      reason: 'it waits for a time, until 1970-01-01T00:00:01.001Z at the latest',
    });
    expect(at(NOW)).toMatchObject({ verdict: 'resumes' });
    expect(at(8.7e15)).toMatchObject({ verdict: 'waits', reason: expect.stringContaining('8700000000000000') });
    expect(verdictOfRun({ entry, next: starts(waiting([])) })).toMatchObject({ verdict: 'resumes' });
    const orphan = { entry, place: { kind: 'orphan' } as const, next: starts(waiting([approval])) };
    expect(verdictOfRun(orphan)).toMatchObject({ verdict: 'resumes', needsPerson: false });
  });

  test('says of a run that resumes whether it only has to be delivered, and how often it was started in vain', () => {
    const reason = (change: Partial<RunCheckpoint>) => verdictOfRun({ entry, next: starts(change) });
    expect(reason({ iteration: 1 })).toMatchObject({ reason: 'it continues after 1 step' });
    expect(reason({ attempts: 1 })).toMatchObject({
      reason: 'it continues after 2 steps; it was started once without recording anything new',
    });
    expect(reason({ attempts: 2 })).toMatchObject({ reason: expect.stringContaining('started 2 times') });
    const outcome = { ...recordOf('outcome').outcome, status: 'cancelled' as RunStatus } as RunCheckpoint['outcome'];
    expect(reason(outcome ? { outcome } : {})).toMatchObject({
      reason: 'it ended (cancelled), and only its outcome has to be delivered',
    });
  });

  test('a claim of the owner that asks does not make a run live', () => {
    const owned = { ...entry, owner: 'me|1' } as InterruptedRun;
    expect(verdictOfRun({ entry: owned, asker: 'me|1', next: starts() })).toMatchObject({ verdict: 'resumes' });
    expect(verdictOfRun({ entry: owned, asker: 'you|1', next: starts() })).toMatchObject({ verdict: 'live' });
  });
});

describe('the status of a run in a list has the order of the verdict', () => {
  test.each([
    [{ status: 'quarantined', owner: 'o' }, 'quarantined'],
    [{ status: 'parked', owner: 'o' }, 'live'],
    [{ owner: 'o' }, 'live'],
    [{ status: 'parked', owner: 'me' }, 'parked'],
    [{ status: 'parked' }, 'parked'],
    [{}, 'interrupted'],
  ] as const)('%o is %s', (of, status) => {
    expect(listedStatus(of, 'me')).toBe(status);
  });
});
