import fc from 'fast-check';
import {
  type CheckpointStore,
  defineAgent,
  diagnose,
  type Message,
  memoryStore,
  type RecoveryReport,
  type RunCheckpoint,
  type RunDiagnosis,
} from 'pawl';
import { hang, reply } from 'pawl/testing';
import { expect, test } from 'vitest';
import { RECORD_VERSION } from '../../src/record/checkpoint.ts';
import { newOwner } from '../../src/store/owner.ts';
import { CheckpointCorruptError, CheckpointTooNewError } from '../../src/values/errors.ts';
import { noUsage } from '../../src/values/usage.ts';
import { seed, torture } from '../crash/random.ts';
import { hostOf, toolOf } from '../fixtures/host.ts';

const STORES = torture > 1 ? 1_200 : 60;

/** One stored run, as it is drawn. `above`: the run that began it, by its place in the store; beyond the last one it is gone. */
interface Plan {
  readonly agentId: 'worker' | 'piped' | 'stranger';
  readonly above: number | undefined;
  readonly parked: 'PARKED' | 'DEFINITION_CHANGED' | undefined;
  readonly attempts: number;
  readonly isCallOpen: boolean;
  readonly arePhasesOthers: boolean;
  readonly owner: 'none' | 'living' | 'dead' | 'left' | 'here';
  /** `kept`: its open call waits, and a process left the run like that. `rests`: the store has it. `answered`: and a command too. */
  readonly waits: 'none' | 'kept' | 'rests' | 'answered' | 'over';
  readonly damage: 'none' | 'listed' | 'unlisted' | 'too new' | 'migrate';
}

const often = <T>(usual: T, ...others: readonly T[]) =>
  fc.oneof({ weight: 2 * others.length, arbitrary: fc.constant(usual) }, fc.constantFrom(...others));

const plans = fc.record<Plan>({
  agentId: often<Plan['agentId']>('worker', 'piped', 'stranger'),
  above: often<number | undefined>(undefined, 0, 1, 2, 3, 99),
  parked: often<Plan['parked']>(undefined, 'PARKED', 'DEFINITION_CHANGED'),
  attempts: fc.nat(4),
  isCallOpen: fc.boolean(),
  arePhasesOthers: often(false, true),
  owner: often<Plan['owner']>('none', 'living', 'dead', 'left', 'here'),
  waits: often<Plan['waits']>('none', 'kept', 'rests', 'answered', 'over'),
  damage: often<Plan['damage']>('none', 'listed', 'unlisted', 'too new', 'migrate'),
});

const stories = fc.record({
  runs: fc.array(plans, { minLength: 1, maxLength: 8 }),
  maxAttempts: fc.integer({ min: 1, max: 4 }),
  onUnknownOutcome: fc.constantFrom('park' as const, 'tell' as const),
});

const plain: Plan = {
  ...{ agentId: 'worker', above: undefined, parked: undefined, attempts: 0, isCallOpen: false, arePhasesOthers: false },
  ...{ owner: 'none', waits: 'none', damage: 'none' },
};

/** Two stores with a run for each row of the verdict: a random draw may miss one. */
const ofEachKind = [
  [
    ...[plain, { ...plain, above: 99 }, { ...plain, above: 0 }, { ...plain, agentId: 'stranger' }],
    ...[
      { ...plain, parked: 'PARKED' },
      { ...plain, owner: 'living' },
      { ...plain, waits: 'rests' },
    ],
  ],
  [
    { ...plain, damage: 'migrate' },
    { ...plain, damage: 'listed' },
    { ...plain, damage: 'unlisted' },
  ],
].map((runs) => [{ runs: runs as readonly Plan[], maxAttempts: 3, onUnknownOutcome: 'tell' as const }] as const);

const idOf = (i: number) => `r${i}`;
const usual = { version: RECORD_VERSION, iteration: 1, revision: 1, usage: noUsage, updatedAt: 1 } as const;
const noMeta = { callerId: '', channelId: '', guildId: '', modelTier: 'fast', prompt: 'Go.' };
const said = (text: string): Message => ({ role: 'user', content: [{ type: 'text', text }] });
const call = { type: 'tool-call', toolCallId: 'c', toolName: 'pay', input: {} } as const;
const openStep: NonNullable<RunCheckpoint['openStep']> = {
  message: { role: 'assistant', content: [call] },
  calls: [{ callId: 'c', name: 'pay', input: {}, effect: 'once', state: 'started', attempt: 1 }],
};

const waitingStep: typeof openStep = {
  ...openStep,
  calls: openStep.calls.map((each) => ({ ...each, state: 'waiting', attempt: 0 })),
};

/** The open wait of a run: for an answer, until a time that has come (`over`) or not. */
function waitingOf(waits: Plan['waits']): NonNullable<RunCheckpoint['waiting']> {
  const wakeAt = waits === 'over' ? 2 : 8e15;
  const wait = {
    id: 'w',
    kind: 'question',
    question: 'Which?',
    createdAt: 1,
    step: 2,
    callId: 'c',
    tool: 'pay',
  } as const;
  return { waits: [{ ...wait, dueAt: wakeAt }], wakeAt, settled: [] };
}

function recordOf(plan: Plan, i: number): RunCheckpoint {
  const { agentId, above, parked, attempts, isCallOpen, arePhasesOthers, waits } = plan;
  const parentRunId = above === undefined ? '' : idOf(above);
  const meta = { ...noMeta, runId: idOf(i), agentId, agentName: agentId, parentRunId };
  const parent = { runId: parentRunId, callId: `c${i}`, rootRunId: parentRunId };
  const gone = { name: 'gone', output: 'x', hash: 'y' };
  return {
    ...usual,
    meta,
    attempts,
    fingerprint: 'f',
    completedPhases: arePhasesOthers ? [gone] : [],
    messages: [said('Go.'), { role: 'assistant', content: [{ type: 'text', text: 'Hm.' }] }, said('On.')],
    ...(above === undefined ? {} : { parent }),
    ...(parked ? { parked: { code: parked, reason: 'set aside' } } : {}),
    ...(waits !== 'none' ? { openStep: waitingStep, waiting: waitingOf(waits) } : isCallOpen ? { openStep } : {}),
  };
}

const owners: { readonly [Owner in Plan['owner']]: (host: string) => string | undefined } = {
  none: () => undefined,
  living: () => 'elsewhere|1',
  dead: () => newOwner().split('|').with(3, '99999999').join('|'),
  left: () => 'elsewhere|2',
  here: (host) => host,
};

/** What a store of these runs lists, and what it throws for those that it cannot read. */
function damagedStore(store: ReturnType<typeof memoryStore>, damageOf: (runId: string) => Plan['damage']) {
  const load: CheckpointStore['load'] = async (runId, options) => {
    const damage = damageOf(runId);
    if (damage === 'too new') throw new CheckpointTooNewError('upgrade');
    if (damage === 'listed' || damage === 'unlisted') throw new CheckpointCorruptError('torn');
    return store.load(runId, options);
  };
  const listInterrupted: CheckpointStore['listInterrupted'] = async (options) =>
    (await store.listInterrupted(options)).map((entry) => {
      const isListed = ['listed', 'too new'].includes(damageOf(entry.runId));
      const reason = damageOf(entry.runId) === 'listed' ? 'CHECKPOINT_CORRUPT: torn' : 'CHECKPOINT_TOO_NEW: upgrade';
      return isListed ? { runId: entry.runId, status: 'quarantined', reason, updatedAt: 1 } : entry;
    });
  return { ...store, load, listInterrupted };
}

/** Gives a run that waits to the store, where it rests; with an answer, if the plan has one. */
async function letRest(store: ReturnType<typeof memoryStore>, { waits, parked }: Plan, runId: string): Promise<void> {
  if (parked || !['rests', 'answered', 'over'].includes(waits)) return;
  const claim = await store.claim(runId, 'elsewhere|0', 60_000);
  const attempts = (claim?.attempts ?? 1) - 1;
  if (claim) await store.due.leave(claim, { dueAt: waitingOf(waits).wakeAt, readUpTo: 0, attempts });
  if (waits === 'answered')
    await store.commands.send(runId, { id: 'a', kind: 'answer', waitId: 'w', answer: { how: 'answer', value: 1 } });
}

type List = Exclude<keyof RecoveryReport, 'waiting'>;

const allLists: readonly List[] = ['resumed', 'parked', 'skipped', 'failed'];

/** The lists of a report in which a run of a verdict may be. What only a whole record shows is no fact for a list. */
const lists: { readonly [Name in RunDiagnosis['verdict']]: readonly List[] } = {
  resumes: ['resumed'],
  waits: ['skipped'],
  child: ['skipped'],
  live: ['skipped'],
  parked: ['parked'],
  skipped: ['skipped'],
  fails: ['failed', 'skipped'],
  unreadable: ['failed', 'skipped', 'parked'],
};

/** What a report says of a run, in the words of the diagnosis: a start that refuses has a code of its own. */
function wordsOf({ code, reason }: RunDiagnosis): readonly string[] {
  const own = code === undefined ? reason : `${code}: ${reason}`;
  const parked = /^the next start parks it: (.*)$/.exec(reason)?.[1];
  return parked === undefined ? [own] : [`RUN_PARKED: ${parked}`];
}

const plainly = (reason = '') => reason.replace(/^RUN_PARKED: run \S+ is parked: /, 'RUN_PARKED: ');

test('what `diagnose` says of a run is what `recover` then does, in the same words, in any store (recovery 1, 2, supervision 7)', async () => {
  const seen = new Set<string>();
  await fc.assert(
    fc.asyncProperty(stories, async ({ runs, maxAttempts, onUnknownOutcome }) => {
      const inner = memoryStore();
      const worker = { id: 'worker', tools: [toolOf('pay', 'once')] };
      const piped = defineAgent({ id: 'piped', instructions: '', phases: [{ name: 'now', instructions: 'Go.' }] });
      const damageOf = (runId: string) => runs[Number(runId.slice(1))]?.damage ?? 'none';
      const store = damagedStore(inner, damageOf);
      const migrate = ({ meta }: RunCheckpoint) => {
        if (damageOf(meta.runId) === 'migrate') throw new Error('no such tier');
      };
      const host = hostOf({
        store,
        agent: worker,
        agents: [defineAgent({ instructions: '', ...worker }), piped],
        onUnknownOutcome,
        migrate: migrate as never,
        script: Array.from(
          { length: 40 },
          () =>
            ({ messages }: { messages: readonly unknown[] }) =>
              JSON.stringify(messages).includes('Hold.') ? hang() : reply('done'),
        ),
      });
      for (const [i, run] of runs.entries()) {
        if (run.owner === 'here') {
          await host.start({ runId: idOf(i), prompt: 'Hold.' });
          continue;
        }
        await inner.save(recordOf(run, i));
        await letRest(inner, run, idOf(i));
        const owner = owners[run.owner]('');
        const claim = owner && (await inner.claim(idOf(i), owner, 60_000));
        if (claim && run.owner === 'left') await inner.release(claim);
      }
      const agents = [host.agent, piped];
      const options = { agents, maxAttempts, onUnknownOutcome, migrate: migrate as never };
      const said: RunDiagnosis[] = [];
      for await (const each of diagnose(store, options)) said.push(each);
      const before = new Map(
        await Promise.all(said.map(async ({ runId }) => [runId, await inner.load(runId)] as const)),
      );
      const report = await host.executor.recover({ maxAttempts });
      const entries = allLists.flatMap((list) => report[list].map((each) => ({ list, ...each })));
      // Those that rest are in no list, whatever else is said of them.
      const resting = new Set((await inner.listInterrupted({ status: 'waiting' })).map(({ runId }) => runId));
      expect(report.waiting).toBe(resting.size);
      expect([...new Set([...entries.map(({ runId }) => runId), ...resting])].toSorted()).toEqual(
        said.map(({ runId }) => runId).toSorted(),
      );
      for (const each of said) {
        const { runId, verdict } = each;
        if (verdict === 'waits') expect(resting).toContain(runId);
        seen.add(verdict);
        if (resting.has(runId) && !entries.some((entry) => entry.runId === runId)) {
          expect(verdict).not.toBe('resumes');
          continue;
        }
        const done = entries.find((entry) => entry.runId === runId);
        expect({ runId, verdict, list: done?.list }).toEqual({
          runId,
          verdict,
          list: expect.toBeOneOf([...lists[verdict]]),
        });
        seen.add(`${verdict} ${done?.list}`);
        if (verdict === 'resumes') {
          const isOrphan = each.reason.includes('the run that began it no longer exists');
          const status = (await host.executor.get(runId)?.result)?.status;
          // One that was parked while it waited waits again.
          const end = runs[Number(runId.slice(1))]?.waits === 'none' ? ['ok'] : ['ok', 'waiting'];
          expect({ runId, status }).toEqual({ runId, status: expect.toBeOneOf(isOrphan ? ['cancelled'] : end) });
          seen.add(isOrphan ? 'orphan' : 'own');
          continue;
        }
        const isHere = runs[Number(runId.slice(1))]?.owner === 'here';
        if (!isHere && !['fails', 'unreadable'].includes(verdict))
          expect(wordsOf(each)).toContain(plainly(done?.reason));
        // A start that parks a run writes that; nothing else changes a run that is left.
        if (!isHere && !done?.reason?.startsWith('RUN_PARKED')) {
          const { attempts: _, ...now } = (await inner.load(runId)) ?? { attempts: 0 };
          const { attempts: __, ...was } = before.get(runId) ?? { attempts: 0 };
          expect(now).toEqual(was);
        }
      }
      await host.executor.shutdown();
    }),
    { numRuns: STORES, seed, endOnFailure: false, examples: ofEachKind as never },
  );
  const pairs = [
    'resumes resumed',
    'child skipped',
    'live skipped',
    'parked parked',
    'skipped skipped',
    'fails failed',
  ];
  expect([...seen]).toEqual(
    expect.arrayContaining(['waits', ...pairs, 'orphan', 'own', 'unreadable failed', 'unreadable skipped']),
  );
}, 120_000);
