import { setTimeout as sleep } from 'node:timers/promises';
import { type Agent, defineAgent, type Model, type Phase } from 'pawl';
import { callTools, fail, reply, type ScriptedRequest, scriptedModel } from 'pawl/testing';
import type { Failpoints } from './failpoints.ts';
import { numberOf } from './random.ts';
import { tool, toolNames } from './twelve-tools.ts';

interface Planned extends Omit<Phase, 'instructions'> {
  /** What is called at each step, before the answer. */
  readonly steps: readonly (readonly string[])[];
  readonly isFailing?: true;
}

/** A phase of each kind, and two of one name. */
const plan: readonly Planned[] = [
  {
    name: 'survey',
    steps: [
      ['read_1', 'read_2'],
      ['idempotent_1', 'once_1'],
      ['once_2', 'read_3', 'idempotent_2'],
    ],
  },
  { name: 'doubt', optional: true, fallback: 'no doubts {{.survey}}', steps: [['read_4', 'once_3']], isFailing: true },
  { name: 'dig', recovery: 'boundary', steps: [['read_1'], ['read_2', 'read_3'], ['read_4']] },
  { name: 'sum', bare: true, steps: [] },
  { name: 'act', recovery: 'boundary', steps: [['read_1', 'read_2'], ['once_4', 'idempotent_3'], ['read_3']] },
  { name: 'survey', maxSteps: 3, steps: [['idempotent_4'], ['once_1', 'once_2'], ['read_1'], ['read_2']] },
];

/** The phase that a call belongs to, its step there, and whether that phase begins anew as long as it only reads. */
export function placeOf(callId: string): { phase: number; step: string; isAnew: boolean } | undefined {
  const [, phase = '', step = ''] = /^p(\d+)s(\d+)-/.exec(callId) ?? [];
  if (phase === '') return undefined;
  return { phase: Number(phase), step: `${phase}.${step}`, isAnew: plan[Number(phase)]?.name === 'dig' };
}

export const phaseCount = plan.length;

/** Placeholders of all phases before this one. */
const earlier = (index: number) =>
  [...new Set(plan.slice(0, index).map(({ name }) => name))].map((name) => `[{{.${name}}}]`).join(' ');

export function pipeline(folder: string, points: Failpoints): { agent: Agent; model: Model } {
  const agent = defineAgent({
    id: 'pipeline',
    instructions: '',
    tools: toolNames.map((name) => tool(name, { folder, points })),
    phases: plan.map(({ steps: _, isFailing: __, ...phase }, i) => ({
      ...phase,
      instructions: `${i}: {{.Query}} ${earlier(i)}`,
    })),
  });
  return { agent, model: scriptedModel(Array.from({ length: 1_000 }, () => answer)) };
}

/** A function of what it is sent and nothing else, like a model at temperature 0. */
async function answer({ system, messages }: ScriptedRequest) {
  const index = Number.parseInt(system, 10);
  const step = messages.filter((message) => message.role === 'assistant').length;
  await sleep(2 * numberOf(`model ${index}.${step}`));
  const { steps, isFailing } = plan[index] as Planned;
  const names = steps[step];
  if (names === undefined && isFailing) return fail(Object.assign(new Error('down'), { isRetryable: false }));
  if (names === undefined) return reply(`${index} after ${step} steps: ${numberOf(system)}`);
  return callTools(names.map((name, i) => ({ name, input: { step, position: i }, callId: `p${index}s${step}-${i}` })));
}
