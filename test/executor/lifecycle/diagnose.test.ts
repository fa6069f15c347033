import {
  type CheckpointStore,
  type DiagnoseOptions,
  defineAgent,
  diagnose,
  type Message,
  type Migrate,
  memoryStore,
  type RunCheckpoint,
  type RunDiagnosis,
} from 'pawl';
import type { OpenCall } from 'pawl/stores/kit';
import { reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { RECORD_VERSION } from '../../../src/record/checkpoint.ts';
import { wrapStore } from '../../../src/store/read-only.ts';
import { CheckpointCorruptError } from '../../../src/values/errors.ts';
import { noUsage } from '../../../src/values/usage.ts';
import { hostOf, toolOf } from '../../fixtures/host.ts';

const usual = {
  version: RECORD_VERSION,
  iteration: 2,
  completedPhases: [],
  revision: 1,
  usage: noUsage,
  attempts: 0,
} as const;
const noMeta = { callerId: '', channelId: '', guildId: '', parentRunId: '', modelTier: 'fast' };
const gone = { name: 'gone', output: 'x', hash: 'y' };
let clock = 1;

function record(
  runId: string,
  change: Partial<RunCheckpoint> & { agentId?: string; parentRunId?: string } = {},
): RunCheckpoint {
  const { agentId = 'worker', parentRunId = '', ...rest } = change;
  const meta = { ...noMeta, runId, agentId, agentName: agentId, parentRunId, prompt: 'Go.' };
  const asked: Message = { role: 'user', content: [{ type: 'text', text: 'Go.' }] };
  const answered: Message = { role: 'assistant', content: [{ type: 'text', text: 'Hm.' }] };
  return { ...usual, meta, messages: [asked, answered, asked], updatedAt: clock++, ...rest };
}

function underWay(effect: OpenCall['effect']): Partial<RunCheckpoint> {
  const call = { callId: 'c', name: effect, input: {}, effect, state: 'started', attempt: 1 } as const;
  const content = [{ type: 'tool-call', toolCallId: 'c', toolName: effect, input: {} }] as const;
  return { openStep: { message: { role: 'assistant', content: [...content] }, calls: [call] } };
}

/** Every kind of record that a store may hold, by what should be said of it. */
const left: Readonly<Record<string, RunCheckpoint>> = Object.fromEntries(
  [
    record('interrupted'),
    record('unlucky', { attempts: 2 }),
    record('poison', { attempts: 3 }),
    record('by-hand', { parked: { code: 'PARKED', reason: 'a person looks' } }),
    record('was-changed', { parked: { code: 'DEFINITION_CHANGED', reason: 'the phases are others' } }),
    record('stranger', { agentId: 'nobody' }),
    record('pipeline', { agentId: 'piped', completedPhases: [gone] }),
    record('mail', underWay('once')),
    record('order', underWay('idempotent')),
    record('parent'),
    record('parent~1', { parentRunId: 'parent' }),
    record('parent~1~1', { parentRunId: 'parent~1' }),
    record('parent~2', { parentRunId: 'parent', agentId: 'of-the-palette' }),
    record('gone~1', { parentRunId: 'gone' }),
    record('gone~1~1', { parentRunId: 'gone~1' }),
    record('gone~2', { parentRunId: 'gone', agentId: 'of-the-palette' }),
  ].map((each) => [each.meta.runId, each]),
);

const tools = [toolOf('once', 'once'), toolOf('idempotent', 'idempotent')];
const piped = defineAgent({ id: 'piped', instructions: '', phases: [{ name: 'now', instructions: 'Go.' }] });
const worker = defineAgent({ id: 'worker', instructions: 'Work.', tools });

async function storeOf(records: readonly RunCheckpoint[]): Promise<ReturnType<typeof memoryStore>> {
  const store = memoryStore();
  for (const each of records) await store.save(each);
  return store;
}

async function examined(store: CheckpointStore, options: DiagnoseOptions = {}): Promise<Map<string, RunDiagnosis>> {
  const found = new Map<string, RunDiagnosis>();
  for await (const diagnosis of diagnose(store, options)) found.set(diagnosis.runId, diagnosis);
  return found;
}

describe('diagnose (recovery 1, 2, 8)', () => {
  test.each(['tell', 'park'] as const)(
    'says of every run what recover() then does with it (onUnknownOutcome: %s)',
    async (onUnknownOutcome) => {
      const agents = [worker, piped];
      const store = await storeOf(Object.values(left));
      const found = await examined(store, { agents, onUnknownOutcome });
      const host = hostOf({
        store,
        agents,
        onUnknownOutcome,
        script: Array.from({ length: 50 }, () => reply('done')),
      });
      const report = await host.executor.recover();
      const done = (kind: Exclude<keyof typeof report, 'waiting'>) => report[kind].map(({ runId }) => runId).toSorted();
      const said = (...verdicts: readonly RunDiagnosis['verdict'][]) =>
        [...found.values()]
          .filter(({ verdict }) => verdicts.includes(verdict))
          .map(({ runId }) => runId)
          .toSorted();
      expect(found.size).toBe(Object.keys(left).length);
      expect(report.failed).toEqual([]);
      expect(said('resumes').filter((runId) => !runId.startsWith('gone'))).toEqual(
        done('resumed').filter((runId) => !runId.startsWith('gone')),
      );
      expect(said('parked')).toEqual(done('parked'));
      expect(said('child', 'skipped').filter((runId) => !runId.startsWith('gone'))).toEqual(
        done('skipped').filter((runId) => !runId.startsWith('gone')),
      );
      // Of a branch without a root the top is ended, and what is below it goes with it or in its own turn.
      expect(said('resumes').filter((runId) => runId.startsWith('gone'))).toEqual(['gone~1', 'gone~1~1']);
      expect(await store.load('gone~1')).toBeNull();
    },
  );

  test('names the runs that need a person, with a code and a reason', async () => {
    const found = await examined(await storeOf(Object.values(left)), {
      agents: [worker, piped],
      onUnknownOutcome: 'park',
    });
    const needing = [...found.values()].filter(({ needsPerson }) => needsPerson);
    expect(Object.fromEntries(needing.map(({ runId, code }) => [runId, code]))).toEqual({
      poison: 'TOO_MANY_ATTEMPTS',
      'by-hand': 'PARKED',
      stranger: 'AGENT_NOT_FOUND',
      'gone~2': 'AGENT_NOT_FOUND',
      pipeline: 'DEFINITION_CHANGED',
      mail: 'OUTCOME_UNKNOWN',
    });
    expect(needing.filter(({ reason }) => reason === '')).toEqual([]);
  });

  test('gives the reason for which the next start sets a run aside, word for word', async () => {
    const store = await storeOf([left.poison, left.pipeline, left.mail].map((each) => each as RunCheckpoint));
    const options = { agents: [worker, piped], onUnknownOutcome: 'park' } as const;
    const found = await examined(store, options);
    const { executor } = hostOf({ store, script: [reply('done')], ...options });
    const { parked } = await executor.recover();
    const said = parked.map(({ runId }) => [runId, found.get(runId)?.reason.replace(/^the next start parks it: /, '')]);
    const did = parked.map(({ runId, reason = '' }) => [runId, reason.replace(/^RUN_PARKED: run \S+ is parked: /, '')]);
    expect(said).toHaveLength(3);
    expect(said).toEqual(did);
  });

  test('without agents asks neither who is missing nor what has changed', async () => {
    const found = await examined(await storeOf(Object.values(left)));
    expect(found.get('stranger')).toMatchObject({ verdict: 'resumes', needsPerson: false });
    expect(found.get('pipeline')?.verdict).toBe('resumes');
    expect(found.get('was-changed')).toMatchObject({ verdict: 'parked', code: 'DEFINITION_CHANGED' });
  });

  test('reports what the record says, and of which calls the outcome is unknown', async () => {
    const found = await examined(await storeOf(Object.values(left)));
    expect(found.get('mail')?.record).toEqual({
      agentId: 'worker',
      iteration: 2,
      attempts: 0,
      updatedAt: left.mail?.updatedAt,
      isMigrated: false,
      unknownCalls: ['once'],
    });
    expect(found.get('order')?.record?.unknownCalls).toEqual([]);
    expect(found.get('unlucky')?.reason).toContain('started 2 times');
  });

  test('tries `migrate` on each record, writes nothing of it, and judges the run by what it gives', async () => {
    const store = await storeOf([record('pipeline', { completedPhases: [gone] }), record('broken'), record('same')]);
    const migrate: Migrate = (old) => {
      if (old.meta.runId === 'broken') throw new Error('no such field');
      return old.completedPhases.length > 0 ? { ...old, completedPhases: [] } : old;
    };
    const found = await examined(store, { agents: [worker], migrate });
    expect(found.get('pipeline')).toMatchObject({ verdict: 'resumes', record: { isMigrated: true } });
    expect(found.get('same')).toMatchObject({ verdict: 'resumes', record: { isMigrated: false } });
    expect(found.get('broken')).toMatchObject({ verdict: 'fails', code: 'MIGRATION', needsPerson: true });
    expect(found.get('broken')?.reason).toContain('no such field');
    expect((await store.load('pipeline'))?.completedPhases).toEqual([gone]);
    expect((await examined(store, { agents: [worker] })).get('pipeline')?.verdict).toBe('parked');
    const host = hostOf({
      store,
      agents: [worker],
      migrate,
      script: Array.from({ length: 9 }, () => reply('done')),
    });
    const report = await host.executor.recover();
    expect(report.failed.map(({ runId }) => runId)).toEqual(['broken']);
    expect(report.resumed.map(({ runId }) => runId).toSorted()).toEqual(['pipeline', 'same']);
  });

  test('a run that a process works on is live, with its owner', async () => {
    const store = await storeOf([record('busy', underWay('once'))]);
    await store.claim('busy', 'elsewhere|1', 60_000);
    expect((await examined(store)).get('busy')).toMatchObject({
      verdict: 'live',
      needsPerson: false,
      record: { owner: 'elsewhere|1', unknownCalls: [] },
    });
  });

  test('reads each record whole: damage that no list shows is found, and hides no other run', async () => {
    const store = await storeOf([record('a'), record('damaged'), record('z')]);
    const reason = 'CHECKPOINT_TOO_NEW: upgrade the package';
    const newer = { runId: 'newer', status: 'quarantined', reason } as const;
    const failing: CheckpointStore = {
      ...store,
      load: async (runId) => {
        if (runId === 'damaged') throw new CheckpointCorruptError('the checksum of its messages is wrong');
        return store.load(runId);
      },
      listInterrupted: async (options) => [
        ...(await store.listInterrupted(options)),
        ...(options?.status ? [] : [newer]),
      ],
    };
    const found = await examined(failing);
    expect([...found.values()].map(({ runId, verdict, code }) => [runId, verdict, code])).toEqual([
      ['a', 'resumes', undefined],
      ['damaged', 'unreadable', 'CHECKPOINT_CORRUPT'],
      ['z', 'resumes', undefined],
      ['newer', 'unreadable', 'CHECKPOINT_TOO_NEW'],
    ]);
  });

  test('writes nothing and claims nothing, and holds one record at a time', async () => {
    const store = await storeOf(Object.values(left));
    const before = await store.listInterrupted();
    const used = new Set<string>();
    let atOnce = 0;
    let most = 0;
    const watched = wrapStore(store, (name, call) => async (...given) => {
      used.add(name);
      most = Math.max(most, ++atOnce);
      const answer = await call(...given);
      atOnce -= 1;
      return answer;
    });
    await examined(watched, { agents: [worker] });
    expect([...used].toSorted()).toEqual(['listInterrupted', 'load']);
    expect(most).toBe(1);
    expect(await store.listInterrupted()).toEqual(before);
  });

  test('finds the end of a tree above a record that only a list can read, as recover() does (supervision 7)', async () => {
    const inner = await storeOf([
      record('gone~1', { parentRunId: 'gone' }),
      record('gone~1~1', { parentRunId: 'gone~1' }),
      record('top'),
      record('top~1', { parentRunId: 'top' }),
    ]);
    const load: CheckpointStore['load'] = async (runId, options) => {
      if (['gone~1', 'top'].includes(runId)) throw new CheckpointCorruptError('torn');
      return inner.load(runId, options);
    };
    const store = { ...inner, load };
    const found = await examined(store, { agents: [worker] });
    expect([...found.values()].map(({ runId, verdict }) => `${runId} ${verdict}`)).toEqual([
      'gone~1 unreadable',
      'gone~1~1 resumes',
      'top unreadable',
      'top~1 child',
    ]);
    const report = await hostOf({ store, agents: [worker] }).executor.recover();
    expect(report.resumed).toEqual([{ runId: 'gone~1~1' }]);
    expect(report.skipped).toEqual([{ runId: 'top~1', reason: 'its parent run top continues it' }]);
  });

  test('says that a child of which no run is above any more is parked by its next start, if that is so (recovery 2)', async () => {
    const store = await storeOf([record('gone~1', { parentRunId: 'gone', attempts: 3 })]);
    expect((await examined(store, { agents: [worker] })).get('gone~1')).toMatchObject({
      verdict: 'parked',
      code: 'TOO_MANY_ATTEMPTS',
    });
    const report = await hostOf({ store, agents: [worker] }).executor.recover();
    expect(report.parked).toMatchObject([{ runId: 'gone~1' }]);
  });

  test('ends for records that name each other as parents', async () => {
    const store = await storeOf([record('~a', { parentRunId: '~b' }), record('~b', { parentRunId: '~a' })]);
    const found = await examined(store);
    expect([...found.values()].map(({ verdict }) => verdict)).toEqual(['resumes', 'resumes']);
  });

  test('leaves out a run that ends while it looks, and stops at an abort', async () => {
    const store = await storeOf([record('a'), record('b'), record('c')]);
    const controller = new AbortController();
    const seen: string[] = [];
    const looking = (async () => {
      for await (const { runId } of diagnose(store, { signal: controller.signal })) {
        seen.push(runId);
        await store.delete('b');
        if (runId === 'c') controller.abort(new Error('enough'));
      }
    })();
    await looking;
    expect(seen).toEqual(['a', 'c']);
    controller.abort(new Error('enough'));
    await expect(examined(store, { signal: controller.signal })).rejects.toThrow('enough');
  });
});
