import fc from 'fast-check';
import { type Budget, createExecutor, memoryStore, type RunCheckpoint, type RunResult, type ToolEffect } from 'pawl';
import { type NotingBudget, notingBudget } from '../fixtures/noting-ports.ts';
import {
  afterCrash,
  headOfWrite,
  isWrite,
  plainStore,
  type StoreCall,
  watchedStore,
} from '../fixtures/watched-store.ts';
import { agentOf, modelOf, type Plan, type Watch } from './pipeline-plans.ts';

/** How a process ends before its run does: by its so many-th write to the store. */
export interface Stop {
  readonly after: number;
  /** `shutdown`: in good order. `lost`: it dies before a further write; `unheard`: that write lands all the same. */
  readonly how: 'shutdown' | 'lost' | 'unheard';
}

export const stops: fc.Arbitrary<Stop[]> = fc.array(
  fc.record({ after: fc.nat(7), how: fc.constantFrom('shutdown', 'lost', 'unheard', 'lost') }),
  { minLength: 1, maxLength: 3 },
);

export interface Call {
  readonly life: number;
  readonly callId: string;
  readonly phase: number;
  readonly effect: ToolEffect;
}

/** What a run was, over all its processes. */
export interface History {
  readonly result: RunResult;
  /** What was stored when each process ended before the run did; null = nothing. */
  readonly left: readonly (RunCheckpoint | null)[];
  readonly calls: readonly Call[];
  readonly asked: readonly { readonly life: number; readonly phase: number; readonly step: number }[];
  /** The head of the last write: the figures the run ended with. */
  readonly last: ReturnType<typeof headOfWrite>;
  /** What the budget's books hold: each turn once, however often a crash had it made again. */
  readonly books: readonly (readonly [turn: string, tokens: number])[];
}

type Memory = ReturnType<typeof memoryStore>;

/** Runs a plan to its end: one process for each stop, and a last one that nobody stops. */
export async function live(
  plan: Plan,
  { stops: all, isPlain }: { stops: readonly Stop[]; isPlain: boolean },
): Promise<History> {
  const left: (RunCheckpoint | null)[] = [];
  const calls: Call[] = [];
  const asked: History['asked'][number][] = [];
  let last: History['last'];
  let inner: Memory = memoryStore();
  // The books outlive each process, as those of a shared budget do.
  const budget = notingBudget();
  for (let life = 0; ; life++) {
    const log = {
      called: (call: Omit<Call, 'life'>) => void calls.push({ life, ...call }),
      asked: (call: { phase: number; step: number }) => void asked.push({ life, ...call }),
    };
    const end = await oneLife(plan, { inner, isPlain, stop: all[life], log, budget });
    last = end.last ?? last;
    if (end.result) return { result: end.result, left, calls, asked, last, books: booksOf(budget) };
    left.push(await inner.load('r'));
    if (all[life]?.how !== 'shutdown') inner = await afterCrash(inner);
  }
}

function booksOf({ counted }: NotingBudget): History['books'] {
  return [...counted].map(([turn, { tokens }]) => [turn, tokens] as const).toSorted(([a], [b]) => (a < b ? -1 : 1));
}

/** Out of reach for a process that is dead. Without the seconds: those of a turn that is made again are other ones. */
function reachedBy(budget: NotingBudget, alive: () => Promise<never> | undefined): Budget {
  const reach = async <T>(ask: () => Promise<T>) => {
    await alive();
    const answer = await ask();
    await alive();
    return answer;
  };
  return {
    check: (callerId) => reach(() => budget.check(callerId)),
    reserve: (callerId, estimate) => reach(() => budget.reserve(callerId, estimate)),
    commit: (reservation, used) => reach(() => budget.commit(reservation, { ...used, seconds: 0 })),
    refund: (reservation) => reach(() => budget.refund(reservation)),
  };
}

interface Life {
  readonly inner: Memory;
  readonly isPlain: boolean;
  readonly stop: Stop | undefined;
  readonly log: Omit<Watch, 'alive'>;
  readonly budget: NotingBudget;
}

async function oneLife(
  plan: Plan,
  { inner, isPlain, stop, log, budget }: Life,
): Promise<{ result?: RunResult; last: History['last'] }> {
  const death = Promise.withResolvers<'dead'>();
  const moment = Promise.withResolvers<'moment'>();
  let isDead = false;
  let last: History['last'];
  let writes = 0;
  const never = () => new Promise<never>(() => {});
  const die = () => {
    isDead = true;
    death.resolve('dead');
    return never();
  };
  const isDying = () => stop !== undefined && stop.how !== 'shutdown' && writes > stop.after;
  const store = watchedStore(
    {
      before: (call: StoreCall) => {
        if (isDead) return never();
        if (isWrite(call)) writes += 1;
        if (isDying() && (stop?.how === 'lost' || !isWrite(call))) return die();
        if (isWrite(call)) last = headOfWrite(call);
        return undefined;
      },
      after: (call: StoreCall) => {
        if (isDying() && isWrite(call)) return die();
        if (stop?.how === 'shutdown' && writes > stop.after) moment.resolve('moment');
        return undefined;
      },
    },
    inner,
  );
  const watch: Watch = { ...log, alive: () => (isDead ? never() : undefined) };
  const executor = createExecutor({
    models: { fast: modelOf(plan, watch) },
    agents: [agentOf(plan, watch)],
    checkpoints: isPlain ? plainStore(store) : store,
    ports: { budget: reachedBy(budget, () => (isDead ? never() : undefined)) },
    logger: { warn: () => {} },
  });
  const begun = begin(executor, agentOf(plan, watch));
  const first = await Promise.race([begun, death.promise, moment.promise]);
  if (first === 'moment') await executor.shutdown();
  const result = first === 'dead' ? undefined : await Promise.race([begun, death.promise]);
  if (result === undefined || result === 'dead' || result.status === 'interrupted') return { last };
  return { result, last };
}

/** What a host does at each boot. */
async function begin(
  executor: ReturnType<typeof createExecutor>,
  agent: ReturnType<typeof agentOf>,
): Promise<RunResult> {
  await executor.recover({ maxAttempts: 99 });
  const run = executor.get('r') ?? (await executor.start(agent, { runId: 'r', prompt: 'Go.' }));
  return run.result;
}
