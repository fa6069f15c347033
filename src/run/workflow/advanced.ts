import { sha256 } from '../../values/digest.ts';
import type { ErrorData } from '../../values/error-data.ts';
import type { JsonObject, JsonValue } from '../../values/json.ts';
import type { RunEventBody } from '../events/body.ts';
import type { OpenCall } from '../open-step.ts';
import type { Progress } from '../progress.ts';
import { type EnteredEvent, MARK_CHARS, type WorkflowMessage, type WorkflowState } from './state.ts';

/** An action of a workflow's machine: it runs once its transition is stored. */
export interface MachineAction {
  readonly name: string;
  /** @param log takes what `log(…)` of XState says */
  run(log: LogOfMachine): void;
}

/** Takes what the action `log` of a machine says. */
export type LogOfMachine = (value: unknown, label: string | undefined) => void;

/** What a transition says of itself. */
export type WorkflowEvent = Extract<
  RunEventBody,
  { type: 'workflow.transition' | 'workflow.ignored' | 'workflow.emitted' | 'workflow.undelivered' }
>;

/** A transition as inspectors see it: the event, and the workflow after it. */
export interface InspectedStep {
  readonly event: JsonObject;
  readonly workflow: WorkflowState;
}

/** What the machine of a workflow did, for inspectors. `before`: where it was; `error`: why it failed. */
export interface InspectedSteps {
  readonly before: WorkflowState | undefined;
  readonly steps: readonly InspectedStep[];
  readonly error: ErrorData | undefined;
}

/** A workflow after it has taken all that was there. */
export interface WorkflowAdvance {
  readonly progress: Progress;
  readonly told: readonly WorkflowEvent[];
  /** The same for inspectors. */
  readonly steps: readonly InspectedStep[];
  /** Actions of the machine's own, which run once this is stored. */
  readonly acts: readonly MachineAction[];
  /** The calls that were stopped, as they were. */
  readonly stopped: readonly OpenCall[];
  /** Something is left: the event loop has its turn before. */
  readonly isMore: boolean;
  /** The machine is done, or failed. */
  readonly end?: { readonly data: JsonValue } | { readonly error: ErrorData };
}

/** So many of the last events are remembered, by which a repetition is recognised. */
const MAX_SEEN = 1_000;

/** A machine that has not begun, for events that come before. */
const unbegun: WorkflowState = { snapshot: {}, hash: '', calls: {}, timers: [], armed: [], events: [], seen: '' };

/** Takes an event in: it waits until the machine takes it. A known one changes nothing. */
export function withEntered(progress: Progress, entered: EnteredEvent): Progress {
  if (isKnownEvent(progress, entered.id)) return progress;
  const { workflow = unbegun } = progress;
  const seen = (workflow.seen + markOf(entered.id)).slice(-MAX_SEEN * MARK_CHARS);
  return { ...progress, workflow: { ...workflow, seen, events: [...workflow.events, entered] } };
}

const markOf = (id: string): string => sha256(id).slice(0, MARK_CHARS);

/** Returns whether a workflow remembers an event of this id: it has come before. */
export function isKnownEvent({ workflow }: Pick<Progress, 'workflow'>, id: string): boolean {
  const { seen = '' } = workflow ?? {};
  const mark = markOf(id);
  for (let at = seen.indexOf(mark); at !== -1; at = seen.indexOf(mark, at + 1)) if (at % MARK_CHARS === 0) return true;
  return false;
}

/** Returns the events for other runs that are not known to have arrived. */
export function outboxOf({ workflow }: Pick<Progress, 'workflow'>): readonly WorkflowMessage[] {
  return workflow?.outbox ?? [];
}

/** Adds an event for another run, or, of one that has arrived, removes it. */
export function withOutbox(progress: Progress, messages: readonly WorkflowMessage[]): Progress {
  const { outbox: _, ...workflow } = progress.workflow ?? unbegun;
  return { ...progress, workflow: messages.length === 0 ? workflow : { ...workflow, outbox: messages } };
}
