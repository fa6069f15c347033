import fc from 'fast-check';
import { type CallLimits, type LimitRule, memoryStore, rateLimits } from 'pawl';
import { type TestClock, testClock } from 'pawl/testing';
import { expect, test } from 'vitest';
import { seed, torture } from '../crash/random.ts';

const MINUTE = 60_000;
const HOLD = 2_000;
const noon = Date.UTC(2026, 0, 1, 12);

/** What happens to a fleet: calls come, a process dies with the turns that it holds, a clock is set, the store is away for a time. */
type Deed =
  | {
      readonly kind: 'calls';
      readonly process: number;
      readonly count: number;
      readonly tokens: number;
      readonly tenant: string;
    }
  | { readonly kind: 'kill'; readonly process: number }
  | { readonly kind: 'step'; readonly ms: number }
  | { readonly kind: 'away'; readonly ms: number };

const tenants = ['acme', 'blue', 'cyan', 'deep', 'east'];
const process = fc.nat(2);
const calls = fc.record({
  kind: fc.constant('calls' as const),
  process,
  count: fc.constantFrom(1, 2, 5, 12, 30),
  tokens: fc.constantFrom(0, 10, 500, 5_000),
  tenant: fc.constantFrom('', ...tenants),
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
const limit = fc.constantFrom<Omit<LimitRule, 'by'>>(
  ...[6, 15, 60, 600].map((requestsPerMinute) => ({ requestsPerMinute })),
  ...[3_000, 60_000].map((tokensPerMinute) => ({ tokensPerMinute })),
  { requestsPerMinute: 15, tokensPerMinute: 3_000 },
);
const deeds = fc.array(fc.record({ after: fc.constantFrom(0, 5, 200, 3_000, 20_000), deed }), {
  minLength: 5,
  maxLength: 25,
});
const sometimes = fc.option(limit, { nil: undefined });
const histories = fc.record({ tenant: sometimes, tier: sometimes, model: limit, deeds });

interface Sent {
  /** Monotonic, ms. */
  readonly at: number;
  readonly tokens: number;
  readonly tenant: string;
  /** When its turn came by each rule, at the earliest. */
  readonly turns: ReadonlyMap<string, number>;
}

/** What a run does with its turns: it is held, or rests until a second before; late, it takes another one. */
async function send(
  { limits, signal }: { readonly limits: CallLimits; readonly signal: AbortSignal },
  { tokens, tenant }: Pick<Sent, 'tokens' | 'tenant'>,
  { clock, sent, answerMs, stepped, rules, asking }: World,
) {
  const labels = tenant === '' ? {} : { tenant };
  const call = { model: 'm', tier: 'fast', callerId: '', labels, inputTokens: tokens };
  const sleep = (ms: number) => new Promise<void>((resolve) => void clock.setTimeout(resolve, ms));
  const turns = new Map<string, number>();
  for (let after: string | undefined; !signal.aborted; ) {
    const askedAt = clock.monotonic();
    asking.count += 1;
    const taken = await limits.take(call, { signal, after }).catch(() => undefined);
    // The answer of a store comes later.
    await sleep(taken ? answerMs() : 250);
    asking.count -= 1;
    if (!taken) continue;
    for (const { by } of rules) if (by !== after && !turns.has(by)) turns.set(by, askedAt);
    if (taken.waitMs > HOLD) {
      const turnAt = clock.now() + taken.waitMs;
      // A store finds the due runs by the wall clock.
      while (clock.now() < turnAt - 1_000) await Promise.race([sleep(turnAt - 1_000 - clock.now()), stepped()]);
      const left = turnAt - clock.now();
      after = undefined;
      if (left < -900) {
        turns.clear();
        continue;
      }
      await sleep(Math.max(0, left));
    } else await sleep(taken.waitMs);
    turns.set(taken.rule ?? '', clock.monotonic());
    after = taken.rule;
    if (taken.isPart) for (const { by } of rules.slice(rules.findIndex(({ by }) => by === after) + 1)) turns.delete(by);
    else if (!signal.aborted) return void sent.push({ at: clock.monotonic(), tokens, tenant, turns });
  }
}

interface World {
  readonly clock: TestClock;
  readonly sent: Sent[];
  /** From the narrowest to the widest. */
  readonly rules: readonly LimitRule[];
  /** How many calls have no answer of the store yet. */
  readonly asking: { count: number };
  answerMs(): number;
  /** Resolves when the clock is set. */
  stepped(): Promise<void>;
}

type History = typeof histories extends fc.Arbitrary<infer T> ? T : never;

/** Lives through a history, and ten minutes more. @returns what was sent, and how often the clock was set */
async function lived(rules: readonly LimitRule[], { deeds }: History) {
  const clock = testClock(noon);
  const store = memoryStore({ clock });
  const sent: Sent[] = [];
  let steps = 0;
  let [awayUntil, answers] = [0, 0];
  let step = Promise.withResolvers<void>();
  const stepped = () => step.promise;
  const answerMs = () => [0, 0, 3, 40, 700][answers++ % 5] ?? 0;
  const takeTurns: typeof store.limits.takeTurns = async (...take) => {
    const isAway = clock.monotonic() < awayUntil;
    // Every second answer of a store that goes away was made.
    if (isAway && answers++ % 2 === 0) throw new Error('away');
    const taken = await store.limits.takeTurns(...take);
    if (isAway) throw new Error('no answer');
    return taken;
  };
  const flaky = { ...store, limits: { takeTurns } };
  const asking = { count: 0 };
  let late = 0;
  const world = { clock, sent, answerMs, stepped, rules, asking };
  const born = () => ({
    limits: rateLimits({ store: flaky, rules: rules.toReversed(), clock }),
    life: new AbortController(),
  });
  const processes = [born(), born(), born()];
  for (const { after, deed } of deeds) {
    await clock.advance(after);
    if (deed.kind === 'step') {
      // An answer that is under way counts in the time that it finds.
      await clock.advance(1_000);
      late += asking.count;
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
      for (let i = 0; i < deed.count; i++) void send({ limits, signal: life.signal }, deed, world);
    }
  }
  await clock.advance(2 * MINUTE);
  for (const { life } of processes) life.abort();
  return { sent, steps, late };
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

const RUNS = torture === 1 ? 100 : 10_000;
const expected = (tokens: number, perMinute: number) => tokens + Math.min(1_000, perMinute / 20);

/** Checks what was sent against each limit of a rule. @param lateMs how long the rules after it held a request back */
function checkRule(
  { by, ...limits }: LimitRule,
  sent: readonly Sent[],
  { steps, asked, lateMs }: { readonly steps: number; readonly asked: number; readonly lateMs: number },
) {
  for (const [what, perMinute] of Object.entries(limits)) {
    const isTokens = what === 'tokensPerMinute';
    const rate = perMinute / MINUTE;
    const amounts = sent.map(({ at, tokens }) => ({ at, amount: isTokens ? expected(tokens, perMinute) : 1 }));
    // The one that begins the span, what a bucket lags behind, and a second by which each may be late.
    const first = Math.max(0, ...amounts.map(({ amount }) => amount));
    const batch = first + Math.max(isTokens ? 0 : 1, 1_000 * rate) + 1_000 * rate;
    // A clock that is set makes a bucket idle that is not, and old turns meet new ones: one such batch more for each time.
    // So does an answer that is under way then: it counts in the time that it finds.
    const most = (1 + steps) * batch + asked * first + lateMs * rate;
    expect(mostBeyond(amounts, rate), `${what} by ${by}, late by ${lateMs} ms`).toBeLessThanOrEqual(most + 1e-6);
  }
}

test(`in ${RUNS} random histories of three processes with one to three rules, kills, clocks that are set and stores that are away, no span has more than the widest limit and two seconds' worth, or two requests and one second's worth; of a narrower one no more than that, and what a wider one held back (seed ${seed}) (failover 19, 32)`, async () => {
  let total = 0;
  const holds = fc.asyncProperty(histories, async (history) => {
    const { tenant, tier, model } = history;
    const given = { 'label:tenant': tenant, tier, model };
    const rules = Object.entries(given).flatMap(([by, perMinute]) =>
      perMinute ? [{ by: by as LimitRule['by'], ...perMinute }] : [],
    );
    const { sent, steps, late: asked } = await lived(rules, history);
    total += sent.length;
    for (const rule of rules) {
      for (const value of rule.by === 'label:tenant' ? tenants : ['']) {
        const own = sent.filter(({ tenant }) => value === '' || tenant === value);
        const late = own.map(({ at, turns }) => at - (turns.get(rule.by) ?? at));
        checkRule(rule, own, { steps, asked, lateMs: rule.by === 'model' ? 0 : Math.max(0, ...late) });
      }
    }
  });
  await fc.assert(holds, { seed, numRuns: RUNS });
  expect(total).toBeGreaterThan(RUNS);
}, 600_000);

test('a caller whose own limit holds it back for an hour takes no room of the model from the others: they use 95 % of it or more (failover 17, 19)', async () => {
  const rules: readonly LimitRule[] = [
    { by: 'label:tenant', requestsPerMinute: 6, tokensPerMinute: 60_000 },
    { by: 'model', requestsPerMinute: 600 },
  ];
  const clock = testClock(noon);
  const limits = rateLimits({ store: memoryStore({ clock }), rules, clock });
  const life = new AbortController();
  const sent: Sent[] = [];
  const world = {
    clock,
    sent,
    rules,
    answerMs: () => 0,
    asking: { count: 0 },
    stepped: () => new Promise<void>(() => {}),
  };
  const ask = (tenant: string) => void send({ limits, signal: life.signal }, { tokens: 10, tenant }, world);
  for (let i = 0; i < 360; i++) ask('acme');
  for (let second = 0; second < 180; second++) {
    for (let i = 0; i < 11; i++) ask('');
    await clock.advance(1_000);
  }
  life.abort();
  const used = sent.filter(({ tenant }) => tenant === '').length;
  expect(used).toBeGreaterThan(0.95 * (1_800 - 18));
  expect(sent.length - used).toBeGreaterThanOrEqual(18);
  checkRule({ by: 'model', requestsPerMinute: 600 }, sent, { steps: 0, asked: 0, lateMs: 0 });
});

test('a store that never answers one write holds back no later call (failover 19)', async () => {
  const clock = testClock(noon);
  const store = memoryStore({ clock });
  let writes = 0;
  const takeTurns: typeof store.limits.takeTurns = (...take) => {
    writes += 1;
    return writes === 1 ? new Promise(() => {}) : store.limits.takeTurns(...take);
  };
  const rules: readonly LimitRule[] = [{ by: 'model', requestsPerMinute: 60 }];
  const limits = rateLimits({ store: { ...store, limits: { takeTurns } }, rules, clock });
  const call = { model: 'p/m', tokens: 1, labels: {}, agentId: 'a', callerId: 'c' };
  const take = () => limits.take(call as never, { signal: new AbortController().signal });
  const lost = take().catch((error: { code?: string }) => error.code);
  await clock.advance(5_000);
  const second = take();
  await clock.advance(6_000);
  expect(await second).toMatchObject({ waitMs: 0 });
  expect(await lost).toBe('PORT_TIMEOUT');
});
