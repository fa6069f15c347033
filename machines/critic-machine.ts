import { makeCriticMachine } from './critic.ts';

/**
 * The mechanics of a critic, apart from all policy: it watches one run, decides when the host's escalator is asked, and
 * carries out what it answers. Time comes in with the events; what is done to the run goes out as emitted events.
 */
export const criticMachine: ReturnType<typeof makeCriticMachine> = makeCriticMachine();
