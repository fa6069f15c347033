import { setTimeout as sleep } from 'node:timers/promises';
import { type Agent, defineAgent, defineTool, type Model } from 'pawl';
import { askingModel, RESULT } from './workload.ts';

const lookup = defineTool({
  name: 'lookup',
  description: 'Looks up one piece.',
  effect: 'read',
  input: { type: 'object' },
  execute: async () => RESULT,
});

/** The agent of the measured fleet: the work of the other benchmarks. */
export const fleetAgent: Agent = defineAgent({
  id: 'fleet',
  instructions: 'Collect the pieces.',
  maxSteps: 10_000,
  tools: [lookup],
});

/** A model that takes a moment for each answer, as one behind a network does. */
export function pausingModel(steps: number, ms: number): Model {
  const model = askingModel(steps);
  return {
    ...model,
    doStream: async (options) => {
      await sleep(ms);
      return model.doStream(options);
    },
  };
}
