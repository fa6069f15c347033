import { type CheckpointStore, defineAgent, defineTool, memoryStore } from 'pawl';
import {
  type AskedWait,
  type CrashTestAnswer,
  type CrashTestOptions,
  callTool,
  callTools,
  crashTest,
  reply,
  scriptedModel,
} from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { torture } from '../../crash/random.ts';
import { plainStore } from '../../fixtures/watched-store.ts';
import { leadAndHelper } from './lead-and-helper.ts';

const ada = { id: 'ada' };
const approve: CrashTestAnswer = { how: 'approve', by: ada };

/** A desk whose refunds need approvals. */
function desk({ quorum = 1, expiresInMs = 60_000, paid = [] as string[] } = {}) {
  const refund = defineTool({
    name: 'refund',
    description: 'Pays money back.',
    effect: 'once',
    input: { type: 'object' },
    needsApproval: true,
    approval: { quorum, expiresInMs },
    execute: async (_, { runId }) => {
      paid.push(runId);
      return 'paid';
    },
  });
  const book = defineTool({
    name: 'book',
    description: 'Writes a booking.',
    effect: 'idempotent',
    input: { type: 'object' },
    execute: async () => 'booked',
  });
  return defineAgent({ id: 'desk', instructions: 'Refund.', tools: [refund, book] });
}

const script = [
  callTools([
    { name: 'refund', input: {} },
    { name: 'book', input: {} },
  ]),
  callTool('refund', { n: 2 }),
  reply('Done.'),
];
const refunding = (rest: Partial<CrashTestOptions>) =>
  crashTest({
    agent: desk(),
    prompt: 'Refund.',
    model: () => scriptedModel(script),
    limit: torture > 1 ? 200 : 6,
    doubleCrashes: torture > 1 ? 40 : 2,
    ...rest,
  });

describe('crashTest of a run that waits (waiting 32)', () => {
  test('is quiet on approvals that come twice and late: each approved call runs once after any crash', async () => {
    const report = await refunding({
      answers: () => approve,
      limit: torture > 1 ? 1_000 : 30,
      doubleCrashes: torture > 1 ? 200 : 4,
    });
    expect(report.violations).toEqual([]);
    expect(report.undisturbed).toEqual({ status: 'ok', output: 'Done.' });
    expect(report.crashes).toBeGreaterThan(torture > 1 ? 60 : 30);
  });

  test('is quiet on a call that two persons must approve, and gives the open wait with its votes to `answers`', async () => {
    const seen: AskedWait[] = [];
    const answers = (wait: AskedWait): CrashTestAnswer => {
      seen.push(wait);
      return { how: 'approve', by: { id: wait.kind === 'approval' && wait.votes.length > 0 ? 'bob' : 'ada' } };
    };
    const report = await refunding({ agent: desk({ quorum: 2 }), answers });
    expect(report.violations).toEqual([]);
    expect(report.undisturbed.output).toBe('Done.');
    expect(seen[0]).toMatchObject({ kind: 'approval', tool: 'refund', input: {}, votes: [] });
    expect(seen[1]).toMatchObject({ votes: [{ by: ada }] });
  });

  test('is quiet on calls that are denied, and on calls whose time passes without an answer: they never run', async () => {
    const paid: string[] = [];
    const agent = desk({ paid });
    const denied = await refunding({ agent, answers: () => ({ how: 'deny', by: ada, reason: 'no' }) });
    expect(denied.violations).toEqual([]);
    const expired = await refunding({ agent });
    expect(expired.violations).toEqual([]);
    expect([denied, expired].map(({ undisturbed }) => undisturbed.status)).toEqual(['ok', 'ok']);
    expect(paid).toEqual([]);
  });

  test('is quiet on questions, events and times: a tool runs from its beginning, and its effect is not repeated', async () => {
    const answered: unknown[] = [];
    const book = defineTool({
      name: 'book',
      description: 'Books a day.',
      effect: 'once',
      input: { type: 'object' },
      execute: async (_, { ask }) => {
        const day = await ask({ question: 'Which day?', options: ['Monday', 'Friday'] });
        answered.push(day);
        return `booked ${day}`;
      },
    });
    const delivered = defineTool({
      name: 'delivered',
      description: 'Waits for the parcel.',
      effect: 'read',
      input: { type: 'object' },
      execute: async (_, { waitFor, sleep }) => {
        await sleep('3d');
        return waitFor('parcel', { key: '7' });
      },
    });
    const report = await crashTest({
      agent: defineAgent({ id: 'travel', instructions: 'Book.', tools: [book, delivered] }),
      prompt: 'Book.',
      model: () => scriptedModel([callTool('book'), callTool('delivered'), reply('Booked.')]),
      answers: ({ kind }) =>
        kind === 'timer' ? undefined : { how: 'answer', value: kind === 'event' ? { at: 'door' } : 'Friday' },
      limit: torture > 1 ? 200 : 6,
      doubleCrashes: torture > 1 ? 40 : 2,
    });
    expect(report.violations).toEqual([]);
    expect(report.undisturbed).toEqual({ status: 'ok', output: 'Booked.' });
    expect(new Set(answered)).toEqual(new Set(['Friday']));
  });

  test('answers a run whose store cannot let it rest in its process', async () => {
    const storage = memoryStore();
    const report = await refunding({
      store: () => plainStore(storage),
      answers: () => approve,
    });
    expect(report.violations).toEqual([]);
    expect(report.undisturbed.output).toBe('Done.');
  });

  test('answers the calls of children', async () => {
    const report = await crashTest({
      ...leadAndHelper(desk(), { helper: callTool('refund') }),
      answers: () => approve,
      limit: torture > 1 ? 200 : 6,
      doubleCrashes: torture > 1 ? 40 : 2,
    });
    expect(report.violations).toEqual([]);
    expect(report.undisturbed.output).toBe('Done.');
  });

  test('reports a run that waits without an end although no one answers it (a)', async () => {
    const report = await refunding({ agent: desk({ expiresInMs: Number.POSITIVE_INFINITY }) });
    expect(report.violations).toMatchObject([{ promise: 'a', crashAt: 'no crash' }]);
    expect(report.violations[0]?.detail).toContain('the approval of tool refund has no answer');
  });

  /** A store that loses a part of what it acknowledged. */
  function losing(
    change: (storage: ReturnType<typeof memoryStore>) => Partial<CheckpointStore>,
  ): () => CheckpointStore {
    const storage = memoryStore();
    return () => ({ ...storage, ...change(storage) });
  }

  test('reports a store that loses an answer (h)', async () => {
    const store = losing(({ commands }) => ({ commands: { ...commands, send: async () => {} } }) as never);
    const { violations } = await refunding({ store, answers: () => approve, limit: 1, doubleCrashes: 0 });
    expect(violations[0]).toMatchObject({ promise: 'h', crashAt: 'no crash' });
  });
});
