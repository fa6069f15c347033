import fc from 'fast-check';
import type { Clock, Model, RunCheckpoint, RunResult } from 'pawl';
import { hostOf, toolOf } from '../fixtures/host.ts';
import type { MortalProcess } from '../fixtures/mortal-process.ts';
import { type NotingBudget, notingBudget, notingCritic } from '../fixtures/noting-ports.ts';
import { headOfWrite, plainStore } from '../fixtures/watched-store.ts';

interface Step {
  readonly calls: readonly { readonly name: 'good' | 'bad' | 'keyed'; readonly n: number }[];
  /** Attempts that break off before the one that answers, each of which is paid for. */
  readonly broken: number;
  readonly tokens: { readonly input: number; readonly output: number };
}

export interface Plan {
  readonly steps: readonly Step[];
  readonly maxSteps: number;
  /** What the critic allows each time the steps are used up; nothing more after that. */
  readonly grants: readonly number[];
  /** The critic also allows one step more for each so many that are done; 0 = none. */
  readonly bonusEvery: number;
  /** Tokens that all turns but the one under way may have used. */
  readonly budget: number;
  /** On a store of four methods. */
  readonly isPlain: boolean;
}

const call = fc.record({ name: fc.constantFrom('good', 'good', 'bad', 'keyed'), n: fc.nat(1) });
const step: fc.Arbitrary<Step> = fc.record({
  calls: fc.array(call, { minLength: 1, maxLength: 3 }) as fc.Arbitrary<Step['calls']>,
  broken: fc.constantFrom(0, 0, 0, 1, 2),
  tokens: fc.record({ input: fc.integer({ min: 1, max: 64 }), output: fc.nat(64) }),
});

export const plans: fc.Arbitrary<Plan> = fc.record({
  steps: fc.array(step, { minLength: 1, maxLength: 8 }),
  maxSteps: fc.integer({ min: 1, max: 9 }),
  grants: fc.array(fc.nat(3), { maxLength: 4 }),
  bonusEvery: fc.constantFrom(0, 0, 2, 3),
  budget: fc.constantFrom(200, 5_000, 5_000, 5_000),
  isPlain: fc.boolean(),
});

/** What a run came to, and what is known of it besides its result. */
export interface Life {
  readonly result: RunResult | undefined;
  /** The last record that it wrote. */
  readonly last: RunCheckpoint | undefined;
}

/** A process that works on the run of a plan, or goes on with it. */
export async function live(plan: Plan, process: MortalProcess, budget: NotingBudget): Promise<Life> {
  const clock = tickingClock();
  const tools = [
    toolOf('good', 'read', async ({ n }) => `good ${n}`),
    toolOf('bad', 'read', async () => {
      throw new Error('bad');
    }),
    toolOf(
      'keyed',
      'idempotent',
      process.reaching(async () => 'kept'),
    ),
  ];
  const host = hostOf({
    models: { fast: process.model(modelOf(plan, clock)) },
    tools,
    agent: { maxSteps: plan.maxSteps },
    clock,
    random: () => 0,
    // A parked run has no result that could be compared.
    onBudgetExceeded: 'fail',
    store: plan.isPlain ? plainStore(process.store) : process.store,
    ports: { budget: process.ports(budget), critic: criticOf(plan) },
  });
  const result = await Promise.race([host.run({ runId: 'r' }), process.died]);
  const last = process.store.log.map(headOfWrite).findLast((head) => head !== undefined);
  return { result, last: last as RunCheckpoint | undefined };
}

export function budgetOf({ budget: most }: Plan): NotingBudget {
  const budget: NotingBudget = notingBudget({
    refuse: (key) => {
      const others = [...budget.counted].filter(([other]) => other !== key);
      return others.reduce((sum, [, { tokens }]) => sum + tokens, 0) > most;
    },
  });
  return budget;
}

/** It decides by what the run has done and by what it remembers, and by nothing else. */
function criticOf({ grants, bonusEvery }: Plan) {
  return notingCritic((run) => {
    const given = { grants: Number(run.saved?.grants ?? 0), bonus: Number(run.saved?.bonus ?? 0) };
    const reward = () => {
      const due = bonusEvery === 0 ? 0 : Math.floor(run.tallies().iteration / bonusEvery);
      if (due > given.bonus) run.raiseSteps(due - given.bonus);
      given.bonus = Math.max(due, given.bonus);
    };
    return {
      // A call that was not recorded is made again, and is a sign of life again; a step that was recorded is not.
      onActivity: ({ type }) => {
        if (type === 'tool') reward();
      },
      onOutOfSteps: async () => {
        reward();
        const { iteration, maxIterations } = run.tallies();
        if (iteration < maxIterations || given.grants >= grants.length) return;
        run.raiseSteps(grants[given.grants] ?? 0);
        given.grants += 1;
      },
      state: () => ({ ...given }),
    };
  });
}

/** A model that does what the plan says, a quarter of a second an attempt. */
function modelOf({ steps }: Plan, clock: Clock & { tick(ms: number): void }): Model {
  const attempts = new Map<number, number>();
  const doStream = async ({ prompt }: { prompt: readonly { role: string }[] }) => {
    clock.tick(250);
    const turn = prompt.filter(({ role }) => role === 'assistant').length;
    const { calls = [], broken = 0, tokens = { input: 8, output: 8 } } = steps[turn] ?? {};
    const attempt = (attempts.get(turn) ?? 0) + 1;
    attempts.set(turn, attempt);
    const isBroken = attempt <= broken;
    const unified = isBroken ? 'interrupted' : calls.length > 0 ? 'tool-calls' : 'stop';
    const parts = calls.map(({ name, n }, i) => ({
      type: 'tool-call',
      toolCallId: `${turn}.${i}`,
      toolName: name,
      input: JSON.stringify({ n }),
    }));
    return {
      stream: ReadableStream.from([
        { type: 'stream-start', warnings: [] },
        { type: 'text-start', id: 't' },
        { type: 'text-delta', id: 't', delta: `turn ${turn}` },
        { type: 'text-end', id: 't' },
        ...(isBroken ? [] : parts),
        {
          type: 'finish',
          finishReason: { unified, raw: 'x' },
          usage: { inputTokens: { total: tokens.input }, outputTokens: { total: tokens.output } },
        },
      ]),
    };
  };
  return { specificationVersion: 'v4', provider: 'test', modelId: 'test', supportedUrls: {}, doStream } as never;
}

/** Time passes when somebody says so; what is to happen at once happens, and deadlines never come. */
function tickingClock(): Clock & { tick(ms: number): void } {
  let time = 0;
  return {
    now: () => time,
    monotonic: () => time,
    setTimeout: (callback, ms) => (ms > 0 ? undefined : setImmediate(callback)),
    clearTimeout: (timer) => clearImmediate(timer as NodeJS.Immediate),
    tick: (ms) => {
      time += ms;
    },
  };
}
