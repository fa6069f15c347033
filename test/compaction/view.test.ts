import fc from 'fast-check';
import type { CompactionRequest, Compactor, Message } from 'pawl';
import { estimateTokens } from 'pawl/stores/kit';
import { arbitraries, scriptedModel, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import {
  CompactedView,
  type CompactedViewOptions,
  type ViewedCall,
} from '../../src/executor/services/compacted-view.ts';
import { callModel } from '../../src/model/call.ts';
import { enterAnswer, type RecordedCompaction } from '../../src/values/message-mark.ts';
import { torture } from '../crash/random.ts';
import { answered, faultOf, history, said, step } from './histories.ts';

const model = scriptedModel([]);

/** Drops everything between the opening and the last step. */
const dropMiddle: Compactor = (messages) => [messages[0] as Message, said('[summary]'), ...messages.slice(-2)];

function viewOf(compactor: Compactor, options: Partial<CompactedViewOptions> = {}) {
  const clock = testClock();
  const warned: unknown[] = [];
  const asked: { messages: readonly Message[]; request: CompactionRequest }[] = [];
  const run = new AbortController();
  const view = new CompactedView({
    compactor: (messages, request) => {
      asked.push({ messages, request });
      return compactor(messages, request);
    },
    contextTokens: { fast: 1_000 },
    portMs: 50,
    clock,
    warn: (message, fields) => warned.push([message, fields]),
    ...options,
  });
  const show = (messages: readonly Message[], call: Partial<ViewedCall> = {}) =>
    view.messagesFor(messages, { tier: 'fast', model, signal: run.signal, ask: callModel, ...call });
  return { show, asked, warned, clock, run };
}

const short = history(5); // some 600 tokens
const long = history(7); // some 840

describe('what a model is shown of a transcript', () => {
  test('is all of it below the threshold of 0.7, and the compactor is not asked (executor 19)', async () => {
    const { show, asked } = viewOf(dropMiddle);
    expect(estimateTokens(short)).toBeLessThan(700);
    expect(await show(short)).toBe(short);
    expect(asked).toEqual([]);
  });

  test('is what the compactor made of it beyond the threshold (executor 19)', async () => {
    const { show, asked, warned } = viewOf(dropMiddle);
    expect(await show(long)).toEqual([long[0], said('[summary]'), ...long.slice(-2)]);
    expect(asked).toHaveLength(1);
    expect(asked[0]).toMatchObject({
      messages: long,
      request: { tier: 'fast', limit: 1_000, tokens: estimateTokens(long), model },
    });
    expect(warned).toEqual([]);
  });

  test('is the threshold that the executor names (executor 19)', async () => {
    const { show, asked } = viewOf(dropMiddle, { threshold: 0.5 });
    await show(short);
    expect(asked).toHaveLength(1);
  });

  test('is the compacted history with what came after, without asking again each turn (executor 19)', async () => {
    const { show, asked } = viewOf(dropMiddle);
    const prefix = await show(long);
    const longer = [...long, ...step('look', {}, 'page 8')];
    expect(await show(longer)).toEqual([...prefix, ...longer.slice(-2)]);
    expect(await show(longer)).toEqual([...prefix, ...longer.slice(-2)]);
    expect(asked).toHaveLength(1);
  });

  test('is compacted again when it has grown over the threshold again (executor 19)', async () => {
    const { show, asked } = viewOf(dropMiddle);
    const prefix = await show(long);
    const longer = [...long, ...history(6).slice(1)];
    expect(await show(longer)).toEqual([long[0], said('[summary]'), ...longer.slice(-2)]);
    expect(asked).toHaveLength(2);
    expect(asked[1]?.messages).toEqual([...prefix, ...longer.slice(long.length)]);
  });

  test('stays what it was in the transcript itself (executor 19)', async () => {
    const { show } = viewOf((messages) => {
      (messages as Message[]).length = 2;
      return messages;
    });
    const transcript = [...long];
    await show(transcript.slice());
    expect(transcript).toEqual(long);
  });

  test('begins again with another transcript, as the next phase has it (executor 19)', async () => {
    const { show } = viewOf(dropMiddle);
    await show(long);
    const other = history(7);
    expect(await show(other.slice(0, 3))).toEqual(other.slice(0, 3));
    const another = history(20, 40);
    expect(await show(another)).toBe(another);
  });
});

describe('a compaction that an answer is marked with', () => {
  const made = { upTo: 5, parts: [[0, 1], said('[summary]')] } as const;
  const marked = (compacted: RecordedCompaction) => {
    const { role, content } = short[5] as Message & { role: 'assistant' };
    return short.with(5, enterAnswer({ role, content }, { model: 'x/y', compacted }));
  };

  test('is what the model is shown by the next process, with what came after (lab 16)', async () => {
    const { show, asked } = viewOf(dropMiddle);
    const messages = marked(made);
    expect(await show(messages)).toEqual([messages[0], said('[summary]'), ...messages.slice(5)]);
    expect(asked).toEqual([]);
  });

  test('of an earlier turn of its thread is not that of the run (lab 16)', async () => {
    const messages = marked(made);
    expect(await viewOf(dropMiddle).show(messages, { ownFrom: 6 })).toEqual(messages);
    expect(await viewOf(dropMiddle).show(messages, { ownFrom: 5 })).not.toEqual(messages);
  });

  test.for<[string, RecordedCompaction]>([
    ['replaces more messages than there are', { ...made, upTo: short.length + 1 }],
    ['would part a call from its result', { ...made, upTo: 4 }],
    ['ends in the middle of a turn', { upTo: 5, parts: [[0, 2]] }],
    ['is empty', { upTo: 5, parts: [] }],
    ['has a range that is none', { upTo: 5, parts: [[3, 1]] }],
    ['has a part that is no message', { upTo: 5, parts: [{ role: 'critic' } as never] }],
    ['has a part that is a number', { upTo: 5, parts: [5 as never] }],
  ])('that %s is left out, and the model is shown the whole history (lab 16)', async ([, compacted]) => {
    const messages = marked(compacted);
    expect(await viewOf(dropMiddle).show(messages)).toEqual(messages);
  });
});

describe('how full the window is', () => {
  test('is what the provider counted last, and an estimate of what came since (executor 19)', async () => {
    const { show, asked } = viewOf(dropMiddle);
    await show(short);
    const added = step('look', {}, 'x'.repeat(80));
    await show([...short, ...added], { lastInputTokens: 700 - estimateTokens(added) });
    expect(asked).toEqual([]);
    await show([...short, ...added, ...added], { lastInputTokens: 701 - estimateTokens(added) });
    expect(asked).toHaveLength(1);
    expect(asked[0]?.request.tokens).toBe(701);
  });

  test('may be less than the estimate says, when the provider says so (executor 19)', async () => {
    const { show, asked } = viewOf(dropMiddle);
    await show(short);
    await show([...short, ...history(2).slice(1)], { lastInputTokens: 300 });
    expect(asked).toEqual([]);
  });

  test('is the estimate where the provider counted what cannot be, as without its cache (executor 19)', async () => {
    const { show, asked } = viewOf(dropMiddle);
    await show(short);
    await show([...short, ...history(2).slice(1)], { lastInputTokens: 50 });
    expect(asked).toHaveLength(1);
  });

  test.for([Number.NaN, 0, -5, Number.POSITIVE_INFINITY, undefined, 'many'])(
    'is the estimate where the provider counted %s (executor 19)',
    async (lastInputTokens) => {
      const { show, asked } = viewOf(dropMiddle);
      await show(short, { lastInputTokens: lastInputTokens as number });
      expect(asked).toEqual([]);
      await show(long, { lastInputTokens: lastInputTokens as number });
      expect(asked).toHaveLength(1);
    },
  );

  test('is not counted again each turn (executor 19)', async () => {
    const { show } = viewOf(dropMiddle, { contextTokens: { fast: 1e9 } });
    let reads = 0;
    const counted = new Proxy(history(500), {
      get(target, key, receiver) {
        if (typeof key === 'string' && /^\d+$/.test(key)) reads += 1;
        return Reflect.get(target, key, receiver);
      },
    });
    await show(counted);
    expect(reads).toBeGreaterThan(1_000);
    reads = 0;
    for (let turn = 0; turn < 10; turn++) await show(counted);
    expect(reads).toBeLessThan(50);
  });
});

describe('the context window', () => {
  test.for<[string, CompactedViewOptions['contextTokens']]>([
    ['absent', undefined],
    ['of another tier only', { deep: 10 }],
    ['NaN', { fast: Number.NaN }],
    ['negative', { fast: -1 }],
    ['infinite', () => Number.POSITIVE_INFINITY],
    ['a text', { fast: '10' as never }],
    ['a promise', (async () => Promise.reject(new Error('no'))) as never],
    [
      'a function that throws',
      () => {
        throw new Error('no');
      },
    ],
    [
      'a getter that throws',
      Object.defineProperty({}, 'fast', {
        get() {
          throw new Error('no');
        },
      }),
    ],
  ])('%s is unknown, and nothing is compacted (executor 19)', async ([, contextTokens]) => {
    const { show, asked, warned } = viewOf(dropMiddle, { contextTokens });
    expect(await show(long)).toBe(long);
    expect([asked, warned]).toEqual([[], []]);
  });

  test('is that of the tier (executor 19)', async () => {
    const { show, asked } = viewOf(dropMiddle, { contextTokens: (tier) => (tier === 'deep' ? 1e6 : 10) });
    await show(short, { tier: 'deep' });
    expect(asked).toEqual([]);
    await show(short, { tier: 'fast' });
    expect(asked).toHaveLength(1);
  });
});

const [opening, ...work] = long as [Message, ...Message[]];
const failures: Readonly<Record<string, Compactor>> = {
  throws: () => {
    throw new Error('no');
  },
  'throws null': () => {
    throw null;
  },
  rejects: () => Promise.reject(new Error('no')),
  'never answers': () => new Promise(() => {}),
  'answers with nothing': () => undefined as never,
  'answers with null': () => null as never,
  'answers with a text': () => 'short' as never,
  'answers with no messages': () => [],
  'answers with more messages than there were': (messages) => [...messages, said('?')],
  'answers with a history that is not shorter': (messages) => messages.map((each) => JSON.parse(JSON.stringify(each))),
  'loses the result of a call': () => [opening, work[0] as Message, said('?')],
  'loses the call of a result': () => [opening, work[1] as Message],
  'ends in a call': () => [opening, work[0] as Message],
  'ends with an answer': () => [opening, answered('Done.')],
  'turns results around': () => [opening, ...[work[0], work[3], work[2], work[1]].map((message) => message as Message)],
  'begins with the assistant': () => work.slice(-2),
  'answers with texts for messages': () => ['short' as never],
  'answers with the content of a message as a text': () => [{ role: 'user', content: 'short' } as never],
  'answers with a role nobody knows': () => [opening, { role: 'developer', content: [] } as never],
  'answers with a text part without a text': () => [{ role: 'user', content: [{ type: 'text' }] } as never],
  'answers with what is no JSON': () => [
    { role: 'user', content: [{ type: 'text', text: 'a', at: new Date() }] } as never,
  ],
  'answers with getters that throw': () =>
    Object.defineProperty([said('a')], 0, {
      get() {
        throw new Error('no');
      },
    }),
  'answers with a list that is a lie': () =>
    new Proxy([], { get: (_, key) => (key === 'length' ? Number.NaN : said('a')) }) as never,
  'answers with a thenable that throws': () =>
    Object.defineProperty({}, 'then', {
      get() {
        throw new Error('no');
      },
    }) as never,
};

describe('a compactor that fails', () => {
  test.for(Object.entries(failures))(
    'one that %s leaves the history as it was, and is warned of once (executor 19)',
    async ([, bad]) => {
      const { show, asked, warned, clock } = viewOf(bad);
      const shown = show(long);
      await clock.advance(50);
      expect(await shown).toBe(long);
      // The log makes data of what was thrown, also of null.
      expect(warned).toEqual([['compaction.failed', expect.toSatisfy((fields: object) => 'error' in fields)]]);
      expect(clock.pending).toBe(0);

      // Grown by a bit: it is not asked. By a tenth: it is, and not warned of again.
      const bit = [...long, ...step('look', {}, 'x')];
      expect(await show(bit)).toBe(bit);
      expect(asked).toHaveLength(1);
      const tenth = [...bit, ...step('look', {}, 'x'.repeat(400))];
      const again = show(tenth);
      await clock.advance(50);
      expect(await again).toBe(tenth);
      expect([asked.length, warned.length]).toEqual([2, 1]);
    },
  );

  test('keeps what an earlier answer made of the history (executor 19)', async () => {
    let isDown = false;
    const { show, clock } = viewOf((messages, request) => {
      if (isDown) throw new Error('no');
      return dropMiddle(messages, request);
    });
    const prefix = await show(long);
    isDown = true;
    const longer = [...long, ...history(6).slice(1)];
    expect(await show(longer)).toEqual([...prefix, ...longer.slice(long.length)]);
    expect(clock.pending).toBe(0);
  });

  test('a compactor that sees nothing to do is not warned of, and asked again when it has grown (executor 19)', async () => {
    const { show, asked, warned } = viewOf((messages) => messages);
    expect(await show(long)).toBe(long);
    await show([...long, ...step('look', {}, 'x')]);
    expect([asked.length, warned]).toEqual([1, []]);
    await show([...long, ...step('look', {}, 'x'.repeat(500))]);
    expect([asked.length, warned]).toEqual([2, []]);
  });

  test('a history that stays over the threshold is not compacted again each turn (executor 19)', async () => {
    const { show, asked } = viewOf((messages) => [messages[0] as Message, ...messages.slice(3)]);
    const transcript = history(20);
    for (let turn = 0; turn < 5; turn++) {
      transcript.push(...step('look', {}, 'x'));
      await show(transcript.slice());
    }
    expect(asked).toHaveLength(1);
  });

  test('a late answer changes nothing, and its signal was aborted (executor 19)', async () => {
    let answer: (messages: readonly Message[]) => void = () => {};
    const { show, asked, clock } = viewOf(
      () =>
        new Promise((resolve) => {
          answer = resolve;
        }),
    );
    const shown = show(long);
    await clock.advance(50);
    expect(await shown).toBe(long);
    expect(asked[0]?.request.signal.aborted).toBe(true);
    answer([said('late')]);
    await clock.advance(1);
    expect(await show(long)).toBe(long);
  });

  test('a run that is stopped does not wait for it, and nothing is warned of (executor 19)', async () => {
    const { show, asked, warned, clock, run } = viewOf(() => new Promise(() => {}));
    const shown = show(long);
    await clock.advance(1);
    run.abort(new Error('cancelled'));
    expect(await shown).toBe(long);
    expect(asked[0]?.request.signal.reason).toMatchObject({ message: 'cancelled' });
    await clock.advance(100);
    expect([warned, clock.pending]).toEqual([[], 0]);
    expect(await show([...long, ...long.slice(1)])).toHaveLength(29);
    expect(asked).toHaveLength(1);
  });
});

test('for any answer of a compactor, what the model is shown never parts a call from its results (executor 17)', async () => {
  let [used, refused] = [0, 0];
  const pick = fc.array(fc.nat(30), { maxLength: 12 });
  const property = fc.asyncProperty(arbitraries(fc).transcript, pick, fc.nat(8), async (messages, chosen, at) => {
    const closed = [...messages, said('Go on.')];
    // Any messages of the history, in any order: mostly nonsense, sometimes a history.
    const { show, warned } = viewOf((all) => chosen.flatMap((i) => all[i] ?? []), { contextTokens: { fast: 1 } });
    const seen = await show(closed.slice(0, at).some(({ role }) => role === 'tool') ? closed : [said('x'), ...closed]);
    expect(faultOf(seen)).toBeUndefined();
    if (warned.length > 0) refused += 1;
    else used += 1;
  });
  await fc.assert(property, { numRuns: 100 * torture });
  expect(used).toBeGreaterThan(4);
  expect(refused).toBeGreaterThan(25);
});
