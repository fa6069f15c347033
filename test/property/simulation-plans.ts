import fc from 'fast-check';
import { type Agent, defineAgent, type Model, type Palette, type Tool } from 'pawl';
import { agentOf, modelOf, type Plan, plans, type Watch } from './pipeline-plans.ts';
import { type Family, families, familyPhases, paletteOf } from './simulation-family.ts';
import { type Pace, paced } from './simulation-store.ts';

const MINUTE = 60_000;

/**
 * `lost` never reaches the store and `unanswered` does, and neither is ever answered; `late` reaches it when nobody waits
 * for its answer any more.
 */
export type FaultKind = 'refused' | 'unclear' | 'slow' | 'lost' | 'unanswered' | 'late';

/** What happens to one run besides what it does. Numbers of calls and boundaries count from the beginning of a process. */
export interface Misfortune {
  /** How processes end before the run does: at this boundary, one process after the other. */
  readonly stops: readonly {
    readonly at: number;
    readonly how: 'crash' | 'shutdown';
    /** `at` counts from the moment when the end of a phase was refused. */
    readonly isFromPhaseEnd?: true;
  }[];
  /** Calls to the store, counted over all processes, that go wrong. */
  readonly faults: readonly { readonly call: number; readonly kind: FaultKind }[];
  /** From that call on every one is refused, for so long. */
  readonly outage: { readonly call: number; readonly ms: number } | undefined;
  /** From the write on that brings the end of that phase (from 1, over all processes), so many writes are refused. */
  readonly phaseEnd?: { readonly nth: number; readonly writes: number };
  /** Milliseconds that calls to the store take, in turn. */
  readonly latency: readonly number[];
  /** Boundaries at which the wall clock is set to another time. */
  readonly jumps: readonly { readonly at: number; readonly ms: number }[];
}

export interface Story {
  readonly plan: Plan;
  readonly isPipeline: boolean;
  /** On a store of four methods. */
  readonly isPlain: boolean;
  /** Milliseconds that a model and a tool take, in turn. */
  readonly pace: Pace;
  /** Least time between two writes that may be put off, ms; 0 = nothing is put off. */
  readonly throttleMs: number;
  /** Whom the agent puts to work; undefined = nobody. */
  readonly family: Family | undefined;
  readonly misfortunes: readonly Misfortune[];
}

const faultKind = fc.constantFrom<FaultKind>('refused', 'unclear', 'slow', 'lost', 'unanswered', 'late');

const misfortune: fc.Arbitrary<Misfortune> = fc.record({
  stops: fc.array(
    fc.record({
      at: fc.oneof(fc.nat(20), fc.nat(20), fc.nat(60)),
      how: fc.constantFrom('crash', 'crash', 'crash', 'shutdown'),
    }),
    {
      minLength: 1,
      maxLength: 3,
    },
  ),
  faults: fc.oneof(
    fc.constant([]),
    fc.array(fc.record({ call: fc.nat(30), kind: faultKind }), { maxLength: 4 }),
    fc.array(fc.record({ call: fc.nat(60), kind: faultKind }), { maxLength: 6 }),
  ),
  outage: fc
    .record({ isOut: fc.nat(3).map((n) => n === 0), call: fc.nat(30), ms: fc.constantFrom(100, MINUTE) })
    .map(({ isOut, ...outage }) => (isOut ? outage : undefined)),
  latency: fc.oneof(fc.constant([0]), fc.array(fc.constantFrom(0, 1, 40), { minLength: 1, maxLength: 5 })),
  jumps: fc.array(fc.record({ at: fc.nat(20), ms: fc.constantFrom(-60 * MINUTE, 24 * 60 * MINUTE) }), { maxLength: 1 }),
});

export const stories: fc.Arbitrary<Story> = fc.record({
  plan: plans,
  isPipeline: fc.boolean(),
  isPlain: fc.boolean(),
  pace: fc.array(fc.constantFrom(0, 0, 0, 5, 300, 5_000), { minLength: 1, maxLength: 4 }),
  throttleMs: fc.constantFrom(0, 0, 0, 300, 2_000, 60_000),
  family: fc.option(families, { nil: undefined, freq: 2 }),
  misfortunes: fc.array(misfortune, { minLength: 1, maxLength: 7 }),
});

const nobody: Watch = { alive: () => undefined, called: () => {}, asked: () => {} };

type Wait = (ms: number) => Promise<void>;

/** The agent of a story: a pipeline, or its first phase as the one loop of an agent. */
export function storyAgent({ plan, isPipeline, pace, family }: Story, wait: Wait): Agent {
  const pipeline = agentOf(plan, nobody);
  const tools = pacedTools(pipeline.tools as readonly Tool[], pace, wait);
  const subAgents = family ? { subAgents: ['h0', 'h1'] } : {};
  const [first] = plan.phases;
  if (isPipeline) return defineAgent({ ...pipeline, tools, ...subAgents });
  const named = first?.tools;
  return defineAgent({
    id: 'loop',
    instructions: '0: do it',
    tools: tools.filter(({ name }) => !named || (named as readonly string[]).includes(name)),
    maxSteps: first?.maxSteps ?? 6,
    ...subAgents,
  });
}

export function storyPalette({ plan, pace, family }: Story, wait: Wait): Palette | undefined {
  const tools = pacedTools(agentOf(plan, nobody).tools as readonly Tool[], pace, wait);
  return family && paletteOf(family, plan.phases.length, tools);
}

function pacedTools(tools: readonly Tool[], pace: Pace, wait: Wait): Tool[] {
  return tools.map((tool): Tool => {
    const execute = paced(pace, wait, tool.execute as (...args: unknown[]) => Promise<unknown>);
    return Object.create(tool, { execute: { value: execute } });
  });
}

export function storyModel({ plan, pace, family }: Story, wait: Wait): Model {
  const model = modelOf({ ...plan, phases: familyPhases(plan.phases, family) }, nobody);
  return { ...model, doStream: paced(pace, wait, (options) => model.doStream(options)) };
}
