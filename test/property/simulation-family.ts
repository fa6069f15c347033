import fc from 'fast-check';
import { type Agent, createPalette, defineAgent, type Palette, type Tool } from 'pawl';
import { type HelperName, type PlannedCall, type PlannedPhase, plannedPhase } from './pipeline-plans.ts';

/** Agents that the agent of a story puts to work: the first of them may put the second to work. */
export interface Family {
  readonly helpers: readonly PlannedPhase[];
  /** Calls beside those of the plan. */
  readonly asks: readonly Ask[];
  readonly isNested: boolean;
}

interface Ask {
  readonly phase: number;
  readonly step: number;
  readonly helper: number;
  readonly isSame: boolean;
}

const names: readonly HelperName[] = ['agent__h0', 'agent__h1'];

const helper = plannedPhase.map((phase) => ({ ...phase, steps: phase.steps.slice(0, 2), tools: undefined }));

export const families: fc.Arbitrary<Family> = fc.record({
  helpers: fc.tuple(helper, helper),
  asks: fc.array(
    fc.record({ phase: fc.nat(4), step: fc.nat(2), helper: fc.nat(1), isSame: fc.nat(3).map((n) => n === 0) }),
    { minLength: 1, maxLength: 3 },
  ),
  isNested: fc.boolean(),
});

/** What all agents of a story do, each known by its number: the phases of its agent, then the helpers. */
export function familyPhases(phases: readonly PlannedPhase[], family: Family | undefined): PlannedPhase[] {
  if (!family) return [...phases];
  const asking = phases.map((phase, i) => {
    const asks = family.asks.filter((ask) => ask.phase % phases.length === i);
    return asks.reduce(
      (asked, { step, helper, isSame }) => withCall(asked, step, { tool: nameOf(helper), isSame }),
      phase,
    );
  });
  const [first, ...others] = family.helpers;
  const lead = first && family.isNested ? withCall(first, 0, { tool: nameOf(1), isSame: false }) : first;
  return [...asking, ...(lead ? [lead] : []), ...others];
}

function nameOf(helper: number): HelperName {
  return names[helper] ?? 'agent__h0';
}

/** The same phase with one call more in one of its steps. */
function withCall(phase: PlannedPhase, at: number, call: PlannedCall): PlannedPhase {
  const steps = phase.steps.length > 0 ? phase.steps : [[]];
  return { ...phase, steps: steps.map((calls, i) => (i === at % steps.length ? [...calls, call] : calls)) };
}

/** @param first the number of the first helper among all that the model speaks for */
export function paletteOf({ helpers }: Family, first: number, tools: readonly Tool[]): Palette {
  const agents = helpers.map(({ maxSteps = 6 }, i): Agent => {
    const below = i === 0 ? { subAgents: ['h1'] } : {};
    return defineAgent({ id: `h${i}`, instructions: `${first + i}: help`, tools, maxSteps, ...below });
  });
  return createPalette({ agents });
}
