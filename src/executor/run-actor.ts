import type { ActorRefFrom } from 'xstate';
import type { runMachine } from '../../machines/run.ts';

/** A run's actor: a real XState actor of the run machine. */
export type RunActor = ActorRefFrom<ReturnType<typeof runMachine>>;
