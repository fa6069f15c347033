import fc from 'fast-check';
import { type CallLimits, memoryStore, rateLimits } from 'pawl';
import { type TestClock, testClock } from 'pawl/testing';
import { expect, test } from 'vitest';
import { seed, torture } from '../crash/random.ts';

const MINUTE = 60_000;
const HOLD = 2_000;
const noon = Date.UTC(2026, 0, 1, 12);

/** What happens to a fleet: calls come, a process dies with the turns that it holds, a clock is set, the store is away for a time. */
type Deed =
  | { readonly kind: 'calls'; readonly process: number; readonly count: number; readonly tokens: number }
  | { readonly kind: 'kill'; readonly process: number }
  | { readonly kind: 'step'; readonly ms: number }
  | { readonly kind: 'away'; readonly ms: number };

const process = fc.nat(2);
const calls = fc.record({
  kind: fc.constant('calls' as const),
  process,
  count: fc.integer({ min: 1, max: 12 }),
  tokens: fc.constantFrom(0, 10, 500, 5_000),
});
const deed: fc.Arbitrary<Deed> = fc.oneof(
  { weight: 12, arbitrary: calls },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('kill' as const), process }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('step' as const), ms: fc.constantFrom(-30_000, 5_000, 3_600_000) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('away' as const), ms: fc.constantFrom(500, 10_000) }) },
);
const histories = fc.record({
  limit: fc.constantFrom(
    ...[6, 60, 90, 600].map((requestsPerMinute) => ({ requestsPerMinute })),
    ...[3_000, 60_000].map((tokensPerMinute) => ({ tokensPerMinute })),
  ),
  deeds: fc.array(fc.record({ after: fc.constantFrom(0, 5, 200, 3_000, 20_000), deed }), {
    minLength: 5,
    maxLength: 25,
  }),
});

interface Sent {
  /** Monotonic, ms. */
  readonly at: number;
  readonly tokens: number;
}

/** What a run does with its turns: it is held, or rests until a second before; late, it takes another one. */
async function send(
  limits: CallLimits,
  tokens: number,
  { clock, signal, sent, answerMs, stepped }: World & { signal: AbortSignal },
) {
  const call = { model: 'm', tier: '', callerId: '', labels: {}, inputTokens: tokens };
  const sleep = (ms: number) => new Promise<void>((resolve) => void clock.setTimeout(resolve, ms));
  while (!signal.aborted) {
    const taken = await limits.take(call, signal).catch(() => undefined);
    // The answer of a store comes later.
    await sleep(taken ? answerMs() : 250);
    if (!taken) continue;
    if (taken.waitMs > HOLD) {
      const turnAt = clock.now() + taken.waitMs;
      // A store finds the due runs by the wall clock.
      while (clock.now() < turnAt - 1_000) await Promise.race([sleep(turnAt - 1_000 - clock.now()), stepped()]);
      const left = turnAt - clock.now();
      if (left < -1_000) continue;
      await sleep(Math.max(0, left));
    } else await sleep(taken.waitMs);
    if (!signal.aborted) sent.push({ at: clock.monotonic(), tokens });
    return;
  }
}

interface World {
  readonly clock: TestClock;
  readonly sent: Sent[];
  answerMs(): number;
  /** Resolves when the clock is set. */
  stepped(): Promise<void>;
}

type History = typeof histories extends fc.Arbitrary<infer T> ? T : never;

/** Lives through a history, and ten minutes more. @returns what was sent, and how often the clock was set */
async function lived({ limit, deeds }: History) {
  const clock = testClock(noon);
  const store = memoryStore({ clock });
  const sent: Sent[] = [];
  let steps = 0;
  let [awayUntil, answers] = [0, 0];
  let step = Promise.withResolvers<void>();
  const stepped = () => step.promise;
  const answerMs = () => [0, 0, 3, 40, 700][answers++ % 5] ?? 0;
  const takeTurns: typeof store.takeTurns = async (...take) => {
    const isAway = clock.monotonic() < awayUntil;
    // Every second answer of a store that goes away was made.
    if (isAway && answers++ % 2 === 0) throw new Error('away');
    const taken = await store.takeTurns(...take);
    if (isAway) throw new Error('no answer');
    return taken;
  };
  const rules = [{ by: 'model', ...limit }] as const;
  const flaky = { ...store, takeTurns };
  const born = () => ({ limits: rateLimits({ store: flaky, rules, clock }), life: new AbortController() });
  const processes = [born(), born(), born()];
  for (const { after, deed } of deeds) {
    await clock.advance(after);
    if (deed.kind === 'step') {
      // An answer that is under way counts in the time that it finds.
      await clock.advance(1_000);
      clock.wallJump(deed.ms);
      step.resolve();
      step = Promise.withResolvers();
      steps += 1;
    } else if (deed.kind === 'away') awayUntil = clock.monotonic() + deed.ms;
    else if (deed.kind === 'kill') {
      processes[deed.process]?.life.abort();
      processes[deed.process] = born();
    } else {
      const { limits, life } = processes[deed.process] ?? born();
      for (let i = 0; i < deed.count; i++)
        void send(limits, deed.tokens, { clock, sent, answerMs, stepped, signal: life.signal });
    }
  }
  await clock.advance(2 * MINUTE);
  for (const { life } of processes) life.abort();
  return { sent, steps };
}

/** The most of some amounts in any span beyond what the limit gives for it. */
function mostBeyond(sent: readonly { readonly at: number; readonly amount: number }[], perMs: number): number {
  let [most, beyond, before] = [0, 0, sent[0]?.at ?? 0];
  for (const { at, amount } of sent) {
    // The best span that ends here: that of the last one, or one that begins here.
    beyond = Math.max(0, beyond - (at - before) * perMs) + amount;
    before = at;
    most = Math.max(most, beyond);
  }
  return most;
}

const RUNS = torture === 1 ? 1_000 : 10_000;

test(`in ${RUNS} random histories of three processes with kills, clocks that are set and stores that are away, no span has more than its limit and two seconds' worth, or two requests and one second's worth (seed ${seed}) (failover 19, 32)`, async () => {
  let total = 0;
  const holds = fc.asyncProperty(histories, async (history) => {
    const { sent, steps } = await lived(history);
    total += sent.length;
    const { limit } = history;
    const isTokens = 'tokensPerMinute' in limit;
    const perMinute = isTokens ? limit.tokensPerMinute : limit.requestsPerMinute;
    const rate = perMinute / MINUTE;
    const amounts = sent.map(({ at, tokens }) => ({
      at,
      amount: isTokens ? tokens + Math.min(1_000, perMinute / 20) : 1,
    }));
    // The one that begins the span, what an idle bucket lags behind, and a second by which each may be late.
    const first = Math.max(0, ...amounts.map(({ amount }) => amount));
    const batch = first + Math.max(isTokens ? 0 : 1, 1_000 * rate) + 1_000 * rate;
    // A clock that is set makes a bucket idle that is not, and old turns meet new ones: one such batch more for each time.
    expect(mostBeyond(amounts, rate)).toBeLessThanOrEqual((1 + steps) * batch + 1e-6);
  });
  await fc.assert(holds, { seed, numRuns: RUNS });
  expect(total).toBeGreaterThan(RUNS);
}, 600_000);
