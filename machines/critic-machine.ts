import { makeCriticMachine } from './critic.ts';

/**
 * The mechanics of a critic, apart from all policy: it watches one run, decides when to ask the host's escalator, and executes
 * its decision. Events carry the time; emitted events carry the actions on the run.
 */
export const criticMachine: ReturnType<typeof makeCriticMachine> = makeCriticMachine();
