/**
 * The statecharts of Pawl, for hosts that look inside: to draw them, to walk them, to test against them.
 * A run is made with `executor.start` or `executor.logic`, never with the bare machine.
 */

export type { Resolution, RunContext, RunEmitted, RunInput, RunMachineEvent } from './context.ts';
export type {
  CriticAnswer,
  CriticContext,
  CriticDecision,
  CriticEmitted,
  CriticEvent,
  CriticQuestion,
} from './critic.ts';
export { criticMachine } from './critic-machine.ts';
export {
  type ChartedModel,
  type FanOutContext,
  type FanOutEmitted,
  type FanOutEvent,
  type FanOutOpening,
  fanOutMachine,
} from './fan-out.ts';
export { loop } from './loop.ts';
export { type ChartedAgent, runMachine } from './run.ts';
