import { childToolName } from '../agent/names.ts';
import { bornRunOf, childOfCall, waitIdOf } from '../run/identity.ts';
import type { Progress } from '../run/progress.ts';
import { outboxOf, type WorkflowEvent, withOutbox } from '../run/workflow/advanced.ts';
import { checkMachineEvent } from '../run/workflow/event.ts';
import type { MessageReceiver, WorkflowMessage } from '../run/workflow/state.ts';
import { toErrorData } from '../values/error-data.ts';
import { RunNotFoundError, WorkflowError, WorkflowLoopError } from '../values/errors.ts';
import type { JsonObject } from '../values/json.ts';
import type { SentMessage } from './kernel.ts';
import { isWorkflow, type Program } from './program.ts';

/** Most events for other runs that have not arrived. */
const MAX_OUTGOING = 1_000;

/** The first character of the ids of events that another run sends. */
const OF_RUN = '~';

/** Returns the id of an event for another run, equal in each process that sends it. */
export function messageIdFor(of: readonly string[]): string {
  return OF_RUN + waitIdOf(['message', ...of]);
}

/**
 * Returns whether another run has sent an event. A child ends once its events have arrived: they come before its result, as they do
 * in XState.
 */
export function isFromRun(id: string): boolean {
  return id.startsWith(OF_RUN);
}

/**
 * Checks that a run has the parent that its machine sends to: one that would fail at its first event fails at its start.
 * @throws {WORKFLOW_ERROR}
 */
export function checkParent({ sendsToParent }: Program, progress: Progress): void {
  if (sendsToParent && !progress.parent) throw withoutParent();
}

function withoutParent(): WorkflowError {
  return new WorkflowError(
    'the machine sends events to its parent (sendParent), and this run has none: start it from the machine of another workflow, with step(workflow)',
  );
}

/**
 * Returns the run that an event of a machine is for; undefined where there is none: the child has ended, or it is no workflow.
 * @throws {WORKFLOW_ERROR} for an event to the parent of a run that has none
 */
export function receiverOf(program: Program, progress: Progress, to: SentMessage['to']): MessageReceiver | undefined {
  if (to === 'parent') {
    if (!progress.parent) throw withoutParent();
    return { runId: progress.parent.runId };
  }
  const callId = progress.workflow?.calls[to.actorId];
  const call = progress.openStep?.calls.find((each) => each.callId === callId);
  const agent = call && program.agents.find(({ id }) => childToolName('agent', id) === call.name);
  if (!call || call.state === 'done' || !agent || !isWorkflow(agent)) return undefined;
  return { runId: childOfCall(bornRunOf(progress), call), callId: call.callId };
}

/** Returns the event that says of a message that no run gets it. */
export function undelivered({ to, event }: SentMessage, step: number): WorkflowEvent {
  const named = to === 'parent' ? to : to.actorId;
  const why = new RunNotFoundError(`the actor ${named} has ended, or is no workflow: no run gets the event`);
  return { type: 'workflow.undelivered', step, to: named, event: String(event.type), error: toErrorData(why) };
}

/** Adds an event for another run to those that are sent once this is stored. @throws {EVENT_INVALID} @throws {WORKFLOW_LOOP} */
export function withMessage(progress: Progress, { id, to, event }: WorkflowMessage): Progress {
  const outbox = [...outboxOf(progress), { id, to, event: checkedMessage(event) }];
  if (outbox.length <= MAX_OUTGOING) return withOutbox(progress, outbox);
  throw new WorkflowLoopError(
    `a workflow may have ${MAX_OUTGOING} events on their way to other runs, and this is one more`,
  );
}

/** Checks an event for another run: one of a type of XState's own would forge a result there. @throws {EVENT_INVALID} */
export function checkedMessage(event: JsonObject): JsonObject {
  return checkMachineEvent(event);
}
