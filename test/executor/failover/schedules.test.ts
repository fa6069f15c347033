import fc from 'fast-check';
import type { RunEvent } from 'pawl';
import { callTool, reply, type ScriptedEntry, type ScriptedStep, stallAfter } from 'pawl/testing';
import { expect, test } from 'vitest';
import { seed, torture } from '../../crash/random.ts';
import { listHost, named, refusal } from './lists.ts';
import { type Deed, Oracle, type StepEnd } from './oracle.ts';

const NAMES = ['anthropic/opus', 'openai/gpt', 'google/pro'];
/** The answers of a whole run. */
const STEPS = 3;
const TEN_MINUTES = 600_000;

const waits = fc.constantFrom(0, 0, 700, 5_000, 90_000);
const deed: fc.Arbitrary<Deed> = fc.oneof(
  { weight: 4, arbitrary: fc.constant({ kind: 'answer' as const }) },
  { weight: 5, arbitrary: waits.map((retryAfterMs) => ({ kind: 'passing' as const, retryAfterMs })) },
  { weight: 2, arbitrary: fc.constant({ kind: 'stall' as const }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'blocked' as const }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'final' as const }) },
);
/** What each model of a list does, request by request; after that it answers. */
const schedules = fc.array(fc.array(deed, { maxLength: 14 }), { minLength: 1, maxLength: 3 });

const statuses = { passing: 529, blocked: 401, final: 400 } as const;

function stepOf(done: Deed, messages: readonly { readonly role: string }[]): ScriptedStep {
  if (done.kind === 'stall') return stallAfter('half of');
  if (done.kind !== 'answer') {
    return refusal(statuses[done.kind], done.retryAfterMs ? { 'retry-after-ms': String(done.retryAfterMs) } : {});
  }
  const made = messages.filter(({ role }) => role === 'assistant').length;
  return made + 1 < STEPS ? callTool('look', { made }) : reply('done');
}

/** One turn of the model, or one wake of it: when it began, whom it asked, and what became of it. */
interface Turn {
  readonly at: number;
  readonly asked: string[];
  end?: StepEnd;
}

/** The turns of a real run that lives through a schedule. */
async function lived(plan: readonly (readonly Deed[])[]): Promise<readonly Turn[]> {
  const turns: Turn[] = [];
  const list = plan.map((deeds, place) => {
    const name = NAMES[place] as string;
    let next = 0;
    const entry: ScriptedEntry = ({ messages }) => {
      turns.at(-1)?.asked.push(name);
      return stepOf(deeds[next++] ?? { kind: 'answer' }, messages);
    };
    return named(name, Array(100).fill(entry));
  });
  const end = (how: StepEnd) => Object.assign(turns.at(-1) ?? {}, { end: how });
  const onEvent = (event: RunEvent) => {
    if (event.type === 'step.started') turns.push({ at: host.clock.monotonic(), asked: [] });
    if (event.type === 'wait.opened' && event.wait.kind === 'retry')
      end(event.wait.needsPerson ? 'needs a person' : 'waits');
    if (event.type === 'step.done') end('answer');
    if (event.type === 'run.ended' && event.status === 'error') end('ends');
  };
  const host = listHost(list, { defaults: { chunkGapMs: 1_000, firstChunkMs: 1_000 }, observers: [{ onEvent }] });
  await host.start({ runId: 'r' });
  for (let tens = 0; tens < 30 && host.outcomes.length === 0; tens++) await host.clock.advance(TEN_MINUTES);
  await host.executor.shutdown();
  return turns;
}

/** The same turns by the contract. */
function foretold(plan: readonly (readonly Deed[])[], turns: readonly Turn[]): readonly Turn[] {
  const next = new Map<string, number>();
  const oracle = new Oracle(NAMES.slice(0, plan.length), (model) => {
    const at = next.get(model) ?? 0;
    next.set(model, at + 1);
    return plan[NAMES.indexOf(model)]?.[at] ?? { kind: 'answer' };
  });
  let answers = 0;
  let isWake = false;
  return turns.map(({ at }) => {
    oracle.now = at;
    oracle.asked.length = 0;
    const said = oracle.step(isWake);
    // A mistake in the setup that shows in the first turn ends the run.
    const end = said === 'needs a person' && answers === 0 ? 'ends' : said;
    if (end === 'answer') answers += 1;
    isWake = end !== 'answer';
    return { at, asked: [...oracle.asked], end };
  });
}

const title = `any schedule of failures of one to three models asks whom the contract says, and ends as it says, seed ${seed} (failover 2, 3, 5, 6, 7, 31)`;
test(title, { timeout: 900_000 }, async () => {
  const seen = new Set<StepEnd | undefined>();
  await fc.assert(
    fc.asyncProperty(schedules, async (plan) => {
      const turns = await lived(plan);
      expect(turns).toEqual(foretold(plan, turns));
      for (const { end } of turns) seen.add(end);
      const answers = turns.filter(({ end }) => end === 'answer').length;
      expect(turns.at(-1)?.end === 'ends' || answers === STEPS).toBe(true);
    }),
    { seed, numRuns: torture > 1 ? 2_000 : 60 },
  );
  expect([...seen].toSorted()).toEqual(['answer', 'ends', 'needs a person', 'waits']);
});
