import fc from 'fast-check';
import { type Message, memoryStore, type RunCheckpoint } from 'pawl';
import { parseCheckpoint } from 'pawl/stores/kit';
import { callTools, reply, type ScriptedEntry } from 'pawl/testing';
import { expect, test } from 'vitest';
import type { JsonValue } from '../../src/values/json.ts';
import { torture } from '../crash/random.ts';
import { hostOf, toolOf } from '../fixtures/host.ts';
import { isWrite, plainStore, watchedStore } from '../fixtures/watched-store.ts';

const names = ['read', 'keyed', 'once', 'throws', 'unknown'] as const;
const steps = fc.array(
  fc.array(
    fc.record({
      name: fc.constantFrom(...names),
      callId: fc.constantFrom('a', 'b', 'c', ''),
      turns: fc.nat(4),
      input: fc.jsonValue({ maxDepth: 1 }),
    }),
    { minLength: 1, maxLength: 5 },
  ),
  { maxLength: 5 },
);

/** Every call has one result, right after it and in its order: the rule of a transcript. */
function checkPairs(messages: readonly Message[]): void {
  for (const [i, message] of messages.entries()) {
    const calls = callsOf(message);
    const next = messages[i + 1];
    if (calls.length > 0) expect(resultsOf(next)).toEqual(calls);
    if (message.role === 'tool') expect(callsOf(messages[i - 1])).toEqual(resultsOf(message));
  }
  const ids = messages.flatMap(callsOf);
  expect(new Set(ids).size).toBe(ids.length);
}

type Part = { type: string; toolCallId: string };
const partsOf = (message: Message | undefined, role: string, type: string): string[] =>
  message?.role === role
    ? (message.content as unknown as Part[]).filter((part) => part.type === type).map(({ toolCallId }) => toolCallId)
    : [];
const callsOf = (message: Message | undefined) => partsOf(message, 'assistant', 'tool-call');
const resultsOf = (message: Message | undefined) => partsOf(message, 'tool', 'tool-result');

const turns = async (count: number) => {
  for (let turn = 0; turn < count * 3; turn++) await Promise.resolve();
};

const RUNS = torture > 1 ? 1_500 : 30;

test(
  `at each of the saves of ${RUNS} random runs the record parses and its transcript is whole (executor 17)`,
  async () => {
    let saves = 0;
    let open = 0;
    const plans = fc.record({
      all: steps,
      isPlain: fc.boolean(),
      concurrency: fc.integer({ min: 1, max: 4 }),
      latency: fc.nat(4),
    });
    await fc.assert(
      fc.asyncProperty(plans, async ({ all, isPlain, concurrency, latency }) => {
        const inner = memoryStore();
        let isBad: unknown;
        let iteration = 0;
        const look = (record: RunCheckpoint | null) => {
          if (!record) return;
          saves += 1;
          parseCheckpoint(record);
          checkPairs(record.messages);
          expect(record.iteration).toBeGreaterThanOrEqual(iteration);
          iteration = record.iteration;
          const { openStep } = record;
          if (!openStep) return;
          open += 1;
          expect(openStep.calls.map(({ callId }) => callId)).toEqual(callsOf(openStep.message));
          for (const { state, result } of openStep.calls) expect(state === 'done').toBe(result !== undefined);
        };
        const watched = watchedStore(
          {
            before: () => turns(latency),
            after: async (call) => {
              if (isWrite(call))
                await Promise.resolve(inner.load('r').then(look)).catch((error: unknown) => (isBad = error));
            },
          },
          inner,
        );
        const waits = new Map<string, number>();
        const effectOf = { read: 'read', keyed: 'idempotent', once: 'once', throws: 'read' } as const;
        const tools = Object.entries(effectOf).map(([name, effect]) =>
          toolOf(name, effect, async (_, { callId }) => {
            await turns(waits.get(name) ?? 0);
            if (name === 'throws') throw new Error(callId);
            return callId;
          }),
        );
        const script: ScriptedEntry[] = all.map((calls) => () => {
          for (const { name, turns: count } of calls) waits.set(name, count);
          return callTools(
            calls.map(({ name, callId, input }) => ({ name, callId, input: { input: input as JsonValue } })),
          );
        });
        const host = hostOf({
          script: [...script, reply('end')],
          tools,
          agent: { toolConcurrency: concurrency },
          store: isPlain ? plainStore(watched) : watched,
          defaults: { maxConsecutiveToolErrors: 99, maxSameToolCallRepeats: 99 },
        });
        const result = await host.run({ runId: 'r' });
        if (isBad) throw isBad;
        expect(result).toMatchObject({ status: 'ok', iterations: all.length + 1, saveErrors: 0 });
        checkPairs(result.messages);
        expect(host.model.calls.at(-1)?.messages).toEqual(result.messages.slice(0, -1));
        expect(result.messages).toHaveLength(2 * all.length + 2);
      }),
      { numRuns: RUNS },
    );
    expect(saves).toBeGreaterThan(2 * RUNS);
    expect(open).toBeGreaterThan(RUNS / 2);
  },
  60_000 * torture,
);
