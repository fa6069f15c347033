import { defineAgent, memoryStore, type RunCheckpoint } from 'pawl';
import { type CrashTestOptions, callTool, callTools, crashTest, reply, scriptedModel } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { checkAside, isAsideAsAsked } from '../../../src/testing/crash-test/aside.ts';
import { EffectLedger } from '../../../src/testing/crash-test/ledger.ts';
import { sampleRecord } from '../../../src/testing/store-contract/records.ts';
import { torture } from '../../crash/random.ts';
import { toolOf } from '../../fixtures/host.ts';
import { leadAndHelper } from './lead-and-helper.ts';
import { honestStore } from './lying-stores.ts';

const tools = [toolOf('look', 'read'), toolOf('pay', 'once')];
const till = defineAgent({ id: 'till', instructions: 'Charge once.', tools });
const script = [
  callTools([
    { name: 'look', input: {} },
    { name: 'pay', input: { cents: 5 } },
  ]),
  reply('Charged.'),
];
const options: CrashTestOptions = {
  ...{ agent: till, prompt: 'Charge.', model: () => scriptedModel(script), doubleCrashes: torture > 1 ? 80 : 3 },
  limit: torture > 1 ? 300 : 24,
  executor: { onUnknownOutcome: 'park' },
};

/** A record as a start leaves it that sets the run aside. */
function asideRecord(code: string, state: 'started' | 'planned' = 'started'): RunCheckpoint {
  const call = { callId: 'c1', name: 'pay', input: {}, effect: 'once', state, attempt: 1 } as const;
  const message = { role: 'assistant' as const, content: [] };
  return { ...sampleRecord('r'), openStep: { message, calls: [call] }, parked: { code, reason: 'so it is' } };
}

describe("crashTest of a host that sets runs aside (onUnknownOutcome: 'park')", () => {
  test('a run that waits for a person because the outcome of a once call is unknown is counted, and no violation', async () => {
    const records = new Map<string, string>();
    for (const store of [memoryStore(), honestStore(records)]) {
      const report = await crashTest({ ...options, store: () => store });
      expect(report.violations).toEqual([]);
      expect(report.undisturbed.output).toBe('Charged.');
      // Before the call and after it, before what it came to is stored: a crash at any other place leaves nothing unknown.
      expect(report.parked).toBeGreaterThan(2);
      expect(report.parked).toBeLessThan(report.runs / 2);
    }
    expect(await crashTest({ ...options, executor: {} })).toMatchObject({ parked: 0, violations: [] });
  });

  test('a run that did without an agent which waits for a person may end otherwise, and is counted', async () => {
    const helper = defineAgent({ id: 'helper', instructions: 'Help.', description: 'Helps.', tools });
    const { executor, ...lead } = leadAndHelper(helper, { helper: callTool('pay', {}) });
    const report = await crashTest({ ...options, ...lead, executor: { ...options.executor, ...executor } });
    expect(report.violations).toEqual([]);
    expect(report.parked).toBeGreaterThan(2);
  });

  test('a run that was set aside for another reason is still a violation', async () => {
    const records = new Map<string, string>();
    const store = honestStore(records);
    const parking = toolOf('pay', 'idempotent', (_, { runId }) => {
      const { parked } = asideRecord('TOO_MANY_ATTEMPTS');
      records.set(runId, JSON.stringify({ ...JSON.parse(records.get(runId) ?? '{}'), parked }));
      return 'paid';
    });
    const agent = defineAgent({ id: 'till', instructions: '', tools: [parking, tools[0] as never] });
    const report = await crashTest({ ...options, agent, store: () => store, doubleCrashes: 0 });
    expect(report.parked).toBe(0);
    expect(report.violations).toContainEqual({
      ...{ promise: 'a', crashAt: 'after tool pay 1' },
      detail: expect.stringContaining('the run did not come to its end: '),
    });
  });

  test.each([
    ['it is what was asked for', 'park', asideRecord('OUTCOME_UNKNOWN'), true],
    ['nobody asked for it', 'tell', asideRecord('OUTCOME_UNKNOWN'), false],
    ['it was started too often', 'park', asideRecord('TOO_MANY_ATTEMPTS'), false],
    ['no once call had begun', 'park', asideRecord('OUTCOME_UNKNOWN', 'planned'), false],
    ['it was not set aside', 'park', sampleRecord('r'), false],
    ['there is no record', 'park', null, false],
  ] as const)('a run counts as set aside only when it was asked for and a once call was under way: %s', (...row) => {
    const [, onUnknownOutcome, record, isAsked] = row;
    expect(isAsideAsAsked(record, { onUnknownOutcome })).toBe(isAsked);
  });

  test('a run that is set aside is left alone, not delivered, and listed', () => {
    const settings = { onUnknownOutcome: 'park' } as const;
    const found = (ledger: EffectLedger, listed: readonly { runId: string }[]) => {
      checkAside(ledger, settings, listed);
      return ledger.complaints.map(({ promise, detail }) => `${promise}: ${detail}`);
    };
    const aside = (record: RunCheckpoint) => {
      const ledger = new EffectLedger('r');
      ledger.wrote('save', [record], true);
      return ledger;
    };
    const parked = asideRecord('OUTCOME_UNKNOWN');
    expect(found(aside(parked), [{ runId: 'r' }])).toEqual([]);
    expect(found(aside(parked), [{ runId: 's' }])).toEqual([expect.stringMatching(/^a: .* does not list it$/)]);
    expect(found(aside(sampleRecord('r')), [])).toEqual([
      expect.stringMatching(/^c: .* the next process continued it$/),
    ]);
    const told = aside(parked);
    told.onEnded({ runId: 'r', outcomeId: 'r:1' } as never);
    expect(found(told, [{ runId: 'r' }])).toEqual([expect.stringMatching(/^e: .* its outcome had been delivered$/)]);
  });
});
