/**
 * The statecharts of Pawl, for hosts that draw them, walk them or test against them. Start a run with `executor.start` or
 * `executor.logic`, never with the bare machine.
 */

export type { FinishReason, LostUse, ModelReply, RefusedCall } from '../src/run/reply.ts';
export type { ApprovalWords, WaitAnswer } from '../src/run/waits/wait-answer.ts';
export type { Judgement } from '../src/run/waits/wait-rules.ts';
export type {
  InspectedStep,
  InspectedSteps,
  MachineAction,
  WorkflowAdvance,
  WorkflowEvent,
} from '../src/run/workflow/advanced.ts';
export type { JudgeInput, ModelCallInput, RetryInput, SettleInput } from './actors.ts';
export type {
  FailedAnswer,
  ModelAnswer,
  OutputCheck,
  Resolution,
  Rested,
  RunContext,
  RunEmitted,
  RunInput,
  RunMachineEvent,
  Steer,
  ToolAnswer,
} from './context.ts';
export type {
  CriticAnswer,
  CriticAsked,
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
  type FanOutModelRun,
  type FanOutModelSnapshot,
  type FanOutOpening,
  type FanOutPlace,
  fanOutMachine,
} from './fan-out.ts';
export { loop } from './loop.ts';
export { type ChartedAgent, type RunMachine, runMachine } from './run.ts';
export type { ToolCallInput } from './tool-calls.ts';
export { workflowMachine } from './workflow.ts';
