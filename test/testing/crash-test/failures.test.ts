import { createPalette, defineAgent, type ToolEffect } from 'pawl';
import { type CrashTestOptions, callTool, callTools, crashTest, reply, scriptedModel } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { judgeFailures } from '../../../src/testing/crash-test/judge.ts';
import { EffectLedger } from '../../../src/testing/crash-test/ledger.ts';
import { sampleRecord } from '../../../src/testing/store-contract/records.ts';
import { torture } from '../../crash/random.ts';
import { toolOf } from '../../fixtures/host.ts';

const duplicate = 'duplicate key value violates unique constraint';

/** Inserts a row for each key: the second time it throws, or gives what it gave the first time. */
function inserting(isHonest: boolean) {
  const rows = new Set<string>();
  return toolOf('insert', 'idempotent', async (_, { idempotencyKey }) => {
    if (rows.has(idempotencyKey) && !isHonest) throw new Error(duplicate);
    rows.add(idempotencyKey);
    return 'inserted';
  });
}

function optionsFor(tool: ReturnType<typeof toolOf>, rest: Partial<CrashTestOptions> = {}): CrashTestOptions {
  const agent = defineAgent({ id: 'till', instructions: '', tools: [tool, toolOf('look', 'read')] });
  const script = [
    callTools([
      { name: 'look', input: {} },
      { name: tool.name, input: { n: 1 } },
    ]),
    reply('Done.'),
  ];
  return { agent, prompt: 'Go.', model: () => scriptedModel(script), doubleCrashes: 3, ...rest };
}

describe('crashTest of tools that are called again', () => {
  test('an idempotent tool that fails for a key which it has seen is a violation that names it and what to do', async () => {
    const { violations } = await crashTest(optionsFor(inserting(false)));
    expect(violations).toContainEqual({
      promise: 'c',
      crashAt: 'after tool insert 1',
      detail:
        `call call-2 of tool insert succeeded without a crash, and failed after one at attempt 2: ${duplicate} ` +
        '(the same idempotencyKey came twice: the tool must return the first answer again)',
    });
    expect(new Set(violations.map(({ promise }) => promise))).toEqual(new Set(['c']));
  });

  test('one that gives the first answer again is none', async () => {
    expect((await crashTest(optionsFor(inserting(true)))).violations).toEqual([]);
  });

  test('it is found beside a once call that took effect without a known outcome', async () => {
    const tools = [inserting(false), toolOf('pay', 'once')];
    const calls = tools.map(({ name }) => ({ name, input: {} }));
    const report = await crashTest({
      ...{ agent: defineAgent({ id: 'till', instructions: '', tools }), prompt: 'Go.', doubleCrashes: 0 },
      model: () => scriptedModel([callTools(calls), reply('Done.')]),
    });
    const places = report.violations.map(({ crashAt }) => crashAt);
    expect(places).toContain('after tool pay 1');
    expect(places).not.toContain('before tool pay 1');
  });

  test('a tool that says "read" and cannot be called twice is a violation', async () => {
    const seen = new Set<string>();
    const take = toolOf('take', 'read', async (_, { runId }) => {
      if (seen.has(runId)) throw new Error('the queue is empty');
      seen.add(runId);
      return 'first in the queue';
    });
    const { violations } = await crashTest(optionsFor(take));
    expect(violations[0]?.detail).toMatch(/ of tool take .*: the queue is empty \(a "read" is repeated/);
  });

  test('a call that fails because one before it took effect twice is a violation, and says where to look', async () => {
    const stock = new Map<string, number>();
    const left = (runId: string, taken: number) => {
      const rest = (stock.get(runId) ?? 2) - taken;
      if (rest < 0) throw new Error('sold out');
      stock.set(runId, rest);
      return `${rest} left`;
    };
    const take = toolOf('take', 'idempotent', async (_, { runId }) => left(runId, 1));
    const agent = defineAgent({ id: 'shop', instructions: '', tools: [take] });
    const model = () => scriptedModel([callTool('take', { n: 1 }), callTool('take', { n: 2 }), reply('Done.')]);
    const { violations } = await crashTest(optionsFor(take, { agent, model }));
    const sold = violations.filter(({ detail }) => detail.includes('call call-2 of tool take'));
    expect(sold[0]?.detail).toMatch(/sold out \(started once: check the effects of repeated calls before it/);
  });

  test('a tool of an agent that another put to work is held to it as well', async () => {
    const helper = defineAgent({ id: 'helper', instructions: '', description: 'Helps.', tools: [inserting(false)] });
    const answer = ({ messages, tools }: { messages: readonly unknown[]; tools: readonly { name: string }[] }) => {
      if (messages.length > 1) return reply('Done.');
      return callTool(tools[0]?.name ?? '', tools[0]?.name === 'insert' ? {} : { prompt: 'insert' });
    };
    const report = await crashTest({
      agent: defineAgent({ id: 'lead', instructions: '', subAgents: ['helper'] }),
      ...{ prompt: 'Go.', doubleCrashes: 0, executor: { ports: { palette: createPalette({ agents: [helper] }) } } },
      model: () => scriptedModel(Array.from({ length: 6 }, () => answer)),
    });
    expect(report.undisturbed.output).toBe('Done.');
    expect(report.violations[0]).toMatchObject({ promise: 'c', detail: expect.stringContaining(duplicate) });
  });

  test('calls that miss the effect of a once call which never happened are none, also when the guards end the run', async () => {
    const accounts = new Set<string>();
    const open = toolOf('open', 'once', async (_, { runId }) => {
      accounts.add(runId);
      return 'opened';
    });
    const credit = toolOf('credit', 'idempotent', async (_, { runId }) => {
      if (!accounts.has(runId)) throw new Error('no such account');
      return 'credited';
    });
    const agent = defineAgent({ id: 'bank', instructions: '', tools: [open, credit] });
    const credits = [1, 2, 3].map((n) => callTool('credit', { n }));
    const model = () => scriptedModel([callTool('open', {}), ...credits, reply('Done.')]);
    const report = await crashTest(
      optionsFor(open, { agent, model, limit: torture > 1 ? 300 : 24, doubleCrashes: torture > 1 ? 12 : 4 }),
    );
    expect(report.violations).toEqual([]);
    expect(accounts.size).toBeLessThan(report.runs);
  });
});

interface Told {
  readonly failure?: string;
  readonly input?: object;
  readonly effect?: ToolEffect;
  /** The processes in which the call began. */
  readonly lives?: readonly number[];
  readonly signal?: AbortSignal;
}

/** A history in which one call came back to the model. */
function ledgerOf({ failure, input = { n: 1 }, effect = 'idempotent', lives = [0, 1], signal }: Told): EffectLedger {
  const ledger = new EffectLedger('r');
  for (const [i, life] of lives.entries()) {
    ledger.life = life;
    const call = { runId: 'r', callId: 'c1', key: 'r:c1', name: 'pay', effect, attempt: i + 1, step: 0 };
    ledger.began({ ...call, ...(signal ? { signal } : {}) });
  }
  const output = failure === undefined ? { type: 'text', value: 'ok' } : { type: 'error-text', value: failure };
  const named = { toolCallId: 'c1', toolName: 'pay' };
  const messages = [
    { role: 'assistant', content: [{ type: 'tool-call', ...named, input }] },
    { role: 'tool', content: [{ type: 'tool-result', ...named, output }] },
  ];
  ledger.wrote('save', [{ ...sampleRecord('r'), messages }], true);
  return ledger;
}

const aborted = (name: string) => AbortSignal.abort(new DOMException('so it is', name));

describe('a call that succeeded without a crash and failed after one', () => {
  const whole = ledgerOf({ lives: [0] });
  const judged = (ledger: EffectLedger, hasRealTime = true) => judgeFailures(ledger, whole, hasRealTime);

  test('is a violation (c)', () => {
    expect(judged(ledgerOf({ failure: 'down' }))).toEqual([
      { promise: 'c', detail: expect.stringMatching(/^call c1 of tool pay .* at attempt 2: down \(the same idemp/) },
    ]);
    expect(judged(ledgerOf({ failure: 'down', lives: [1] }))).toHaveLength(1);
    expect(judged(ledgerOf({ failure: 'x'.repeat(9_999) }))[0]?.detail.length).toBeLessThan(500);
  });

  test.each<[string, Told]>([
    ['it succeeded again', {}],
    ['nothing had died yet', { failure: 'down', lives: [0] }],
    ['it was asked for something else', { failure: 'down', input: { n: 2 } }],
    ['it never began: it is an agent, or was refused', { failure: 'down', lives: [] }],
    ['its run was stopped', { failure: 'down', signal: aborted('AbortError') }],
  ])('is none when %s', (_, told) => {
    expect(judged(ledgerOf(told))).toEqual([]);
  });

  test('is none when it failed without a crash too, or was not made there', () => {
    const failing = ledgerOf({ failure: 'down' });
    expect(judgeFailures(failing, ledgerOf({ failure: 'down', lives: [0] }), true)).toEqual([]);
    expect(judgeFailures(failing, new EffectLedger('r'), true)).toEqual([]);
  });

  test('is one when its time was up, but not where the host makes the time', () => {
    const late = ledgerOf({ failure: 'did not answer', signal: aborted('TimeoutError') });
    expect(judged(late)).toHaveLength(1);
    expect(judged(late, false)).toEqual([]);
  });

  test('is none while it is not known whether another took effect, and one when that had come to its end', () => {
    const ledger = ledgerOf({ failure: 'no such account' });
    ledger.unknown.add('c0');
    expect(judged(ledger)).toEqual([]);
    ledger.onSucceeded({ runId: 'r', callId: 'c0' });
    expect(judged(ledger)).toHaveLength(1);
  });

  test('is none when its outcome is unknown', () => {
    const ledger = ledgerOf({ failure: 'down', effect: 'once' });
    ledger.unknown.add('c1');
    ledger.onSucceeded({ runId: 'r', callId: 'c1' });
    expect(judged(ledger)).toEqual([]);
  });
});
