import fc from 'fast-check';
import { createExecutor, defineAgent, type Message, memoryStore, type RunCheckpoint } from 'pawl';
import { classifyCheckpointOutcome, parseCheckpoint, toCheckpoint } from 'pawl/stores/kit';
import { arbitraries, reply, scriptedModel } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { fieldOrigins } from '../../../src/testing/arbitraries/runs.ts';
import { torture } from '../../crash/random.ts';
import { toolOf } from '../../fixtures/host.ts';

const { runError, cancelCause, shutdownCause, otherCause, transcript, checkpoint, invocation, progress } =
  arbitraries(fc);

type Part = { readonly type: string; readonly toolCallId: string };
const idsOf = (message: Message | undefined, role: string, type: string) =>
  message?.role === role
    ? (message.content as unknown as Part[]).filter((part) => part.type === type).map((part) => part.toolCallId)
    : [];
const callsOf = (message: Message | undefined) => idsOf(message, 'assistant', 'tool-call');
const resultsOf = (message: Message | undefined) => idsOf(message, 'tool', 'tool-result');

function checkPairs(messages: readonly Message[]): void {
  for (const [i, message] of messages.entries()) {
    expect(resultsOf(messages[i + 1])).toEqual(callsOf(message));
    if (message.role === 'tool') expect(callsOf(messages[i - 1])).not.toEqual([]);
  }
  const ids = messages.flatMap(callsOf);
  expect(new Set(ids).size).toBe(ids.length);
}

const tools = [toolOf('look_up'), toolOf('reserve', 'idempotent'), toolOf('pay', 'once')];
const executorFor = (agentId: string, store = memoryStore()) => {
  const agent = defineAgent({ id: agentId, instructions: 'Go on.', tools });
  const models = { fast: scriptedModel([reply('end')]) };
  // What the arbitrary models do would try the patience of the guards.
  const defaults = { maxConsecutiveToolErrors: 99, maxSameToolCallRepeats: 99 };
  return { agent, store, executor: createExecutor({ models, agents: [agent], store, defaults }) };
};

/** What two tests look at: the drawing takes most of their time. */
let sampled: readonly RunCheckpoint[] | undefined;
const fiveHundred = () => {
  sampled ??= fc.sample(checkpoint, { numRuns: 500, seed: 1 });
  return sampled;
};

describe('a transcript', () => {
  test('is plain JSON that begins with the prompt and in which each call has its one result', () => {
    fc.assert(
      fc.property(transcript, (messages) => {
        expect(JSON.parse(JSON.stringify(messages))).toEqual(messages);
        expect(messages[0]?.role).toBe('user');
        checkPairs(messages);
      }),
    );
  });

  test('is one that a run continues from', async () => {
    await fc.assert(
      fc.asyncProperty(transcript, async (history) => {
        const { agent, executor } = executorFor('worker');
        const result = await executor.run(agent, { prompt: 'Go.' }, { resume: { history } });
        expect(result).toMatchObject({ status: 'ok', output: 'end' });
        expect(result.messages.slice(0, -1)).toEqual(history);
      }),
      { numRuns: torture > 1 ? 500 : 25 },
    );
  });
});

describe('a checkpoint', () => {
  test('is a record: plain JSON that parseCheckpoint takes and that a store gives back as it was', async () => {
    await fc.assert(
      fc.asyncProperty(checkpoint, async (record) => {
        expect(JSON.parse(JSON.stringify(record))).toEqual(record);
        expect(parseCheckpoint(structuredClone(record))).toEqual(record);
        const store = memoryStore();
        await store.save(record);
        expect(await store.load(record.meta.runId)).toEqual(record);
      }),
    );
  });

  test('holds together: its transcript is whole, its turns are counted, its ledger has the calls of its message', () => {
    fc.assert(
      fc.property(checkpoint, ({ messages, iteration, openStep }) => {
        checkPairs(messages);
        expect(messages.filter(({ role }) => role === 'assistant')).toHaveLength(iteration);
        if (!openStep) return;
        expect(openStep.calls.map(({ callId }) => callId)).toEqual(callsOf(openStep.message));
        expect(openStep.calls.some(({ state }) => state !== 'done')).toBe(true);
        for (const { state, result } of openStep.calls) expect(state === 'done').toBe(result !== undefined);
      }),
    );
  });

  test('is one that recovery continues from, unless it is set aside', async () => {
    await fc.assert(
      fc.asyncProperty(checkpoint, async (record) => {
        const { executor, store } = executorFor(record.meta.agentId);
        await store.save(record);
        const { resumed, parked, skipped, failed } = await executor.recover();
        expect({ skipped, failed }).toEqual({ skipped: [], failed: [] });
        expect(resumed.length + parked.length).toBe(1);
        const result = await executor.get(record.meta.runId)?.result;
        const expected = record.outcome?.status ?? 'ok';
        if (resumed.length > 0) expect(result?.status).toBe(expected);
        expect(await store.listInterrupted()).toHaveLength(parked.length);
      }),
      { numRuns: torture > 1 ? 1_000 : 40 },
    );
  });

  test('of five hundred, each kind comes often enough to be of use', () => {
    const records = fiveHundred();
    const share = (is: (record: RunCheckpoint) => unknown) => records.filter(is).length;
    const states = (state: string) => share(({ openStep }) => openStep?.calls.some((call) => call.state === state));
    expect(
      Object.entries({
        open: share(({ openStep }) => openStep),
        done: states('done'),
        started: states('started'),
        planned: states('planned'),
        waiting: states('waiting'),
        parked: share(({ parked }) => parked),
        ended: share(({ outcome }) => outcome),
        begun: share(({ iteration }) => iteration === 0),
        long: share(({ messages }) => messages.length > 6),
        images: share(({ images }) => images),
        inputs: share(({ inputs }) => inputs),
        undelivered: share(({ undelivered }) => undelivered),
        lone: share((record) => !JSON.stringify(record).isWellFormed() || JSON.stringify(record).includes('\\ud83d')),
      }).filter(([, count]) => count < 15),
    ).toEqual([]);
  });

  test('has each field of the table of run fields now and then, but for those that no recovery continues', () => {
    const records = fiveHundred();
    const drawn = Object.entries(fieldOrigins).filter(([, origin]) => origin !== 'absent');
    const isRare = (key: string) => records.filter((record) => Object.hasOwn(record, key)).length < 15;
    expect(drawn.map(([key]) => key).filter(isRare)).toEqual([]);
  });
});

describe('an error and a cause', () => {
  test('decide with each other as the finalize matrix says (finalize 2)', () => {
    fc.assert(
      fc.property(runError, shutdownCause, otherCause, (error, shutdown, other) => {
        expect(error ?? null).not.toBeNull();
        expect(classifyCheckpointOutcome(error, undefined)).toBe('fail');
        expect(classifyCheckpointOutcome(error, other)).toBe('fail');
        expect(classifyCheckpointOutcome(error, shutdown)).toBe('leave-running');
        expect(classifyCheckpointOutcome(undefined, shutdown)).toBe('complete');
      }),
      { numRuns: torture > 1 ? 3_000 : 100 },
    );
  });

  test('a cancel cause is now a shutdown and now something else', () => {
    const verdicts = fc.sample(cancelCause, 200).map((cause) => classifyCheckpointOutcome(new Error('x'), cause));
    expect(verdicts.filter((verdict) => verdict === 'leave-running').length).toBeGreaterThan(40);
    expect(verdicts.filter((verdict) => verdict === 'fail').length).toBeGreaterThan(40);
  });
});

describe('arbitraries', () => {
  test('are those of the fast-check that they are given: they combine with others, shrink, and repeat by seed', () => {
    const combined = fc.record({
      record: checkpoint.filter(({ iteration }) => iteration > 0),
      count: transcript.chain((messages) => fc.nat(messages.length)),
      texts: fc.array(transcript.map((messages) => messages.length)),
    });
    const value: { record: RunCheckpoint; count: number; texts: number[] } | undefined = fc.sample(combined, 1)[0];
    expect(value?.record.iteration).toBeGreaterThan(0);
    expect(fc.sample(checkpoint, { numRuns: 5, seed: 7 })).toEqual(fc.sample(checkpoint, { numRuns: 5, seed: 7 }));
    const found = fc.check(fc.property(transcript, (messages) => messages.length < 3));
    expect(found.failed && found.counterexample?.[0].length).toBe(3);
  });

  test('need fast-check, and say so', () => {
    for (const wrong of [undefined, null, {}, { array: () => 1 }, 'fast-check']) {
      expect(() => arbitraries(wrong as never)).toThrow(TypeError);
    }
    expect(() => arbitraries({} as never)).toThrow(/arbitraries\(fc\)/);
  });
});

describe('an invocation', () => {
  test('is one that an executor takes: it runs to its end', async () => {
    await fc.assert(
      fc.asyncProperty(invocation, async (request) => {
        const { agent, executor } = executorFor('worker');
        const result = await executor.run(agent, request);
        expect(result).toMatchObject({ status: 'ok', output: 'end' });
        if (request.runId !== undefined) expect(result.runId).toBe(request.runId);
      }),
      { numRuns: torture > 1 ? 1_000 : 40 },
    );
  });
});

describe('the progress of a run', () => {
  test('is one that a record can be made of', () => {
    fc.assert(
      fc.property(progress, fc.nat(), (done, now) => {
        const record = JSON.parse(JSON.stringify(toCheckpoint(done, now))) as unknown;
        expect(parseCheckpoint(record)).toEqual(toCheckpoint(done, now));
      }),
    );
  });
});
