import { CodedError } from './error-codes.ts';

/** The host is shutting down: the next process continues the run. */
export class ShutdownError extends CodedError {
  readonly code = 'ERR_SHUTDOWN';
}
/** The caller cancelled the run. */
export class CancelledError extends CodedError {
  readonly code = 'CANCELLED';
}
/** The run used up its `maxRuntimeMs`, counted over all processes that worked on it. */
export class DeadlineExceededError extends CodedError {
  readonly code = 'DEADLINE_EXCEEDED';
}
/** The critic ended the run. */
export class CriticKillError extends CodedError {
  readonly code = 'CRITIC_KILL';
}
/** The model called failing tools again and again, or repeated one call. */
export class ToolLoopError extends CodedError {
  readonly code = 'TOOL_LOOP';
}
/** The run reached `maxSteps` without an answer. */
export class StepLimitError extends CodedError {
  readonly code = 'STEP_LIMIT';
}
/** The agent's list of phases differs from the list that the run began with. */
export class DefinitionChangedError extends CodedError {
  readonly code = 'DEFINITION_CHANGED';
}
/** The answer does not fit the agent's output schema, also after one repair turn. */
export class OutputInvalidError extends CodedError {
  readonly code = 'OUTPUT_INVALID';
}
/** The budget refused the run. */
export class BudgetExceededError extends CodedError {
  readonly code = 'BUDGET_EXCEEDED';
}
/** A port, a callback or a getter threw something that is not an error of Pawl. */
export class RunPanicError extends CodedError {
  readonly code = 'RUN_PANIC';
}
/** The model call failed, and no attempt is left. */
export class ModelError extends CodedError {
  readonly code = 'MODEL';
}
/** A model sent nothing for too long. */
export class ModelStalledError extends CodedError {
  readonly code = 'MODEL_STALLED';
}
/** The model stayed away for longer than a run waits for it. */
export class ModelOutageError extends CodedError {
  readonly code = 'MODEL_OUTAGE';
}
/** The model's reply passed a size limit; reading stopped there. */
export class ReplyTooLargeError extends CodedError {
  readonly code = 'REPLY_TOO_LARGE';
}
/** The provider withheld the whole answer: its filter, or the model, refuses the content of this request. */
export class ContentRefusedError extends CodedError {
  readonly code = 'CONTENT_REFUSED';
}
/** The answer reached its length limit, and `onCutAnswer` is `fail`. */
export class AnswerCutError extends CodedError {
  readonly code = 'ANSWER_CUT';
}
/** The conversation is longer than the model takes, and could not be shortened. */
export class ContextTooLongError extends CodedError {
  readonly code = 'CONTEXT_TOO_LONG';
}
/** A port or store did not answer in time. */
export class PortTimeoutError extends CodedError {
  readonly code = 'PORT_TIMEOUT';
}
/** No model serves this tier. */
export class UnknownTierError extends CodedError {
  readonly code = 'UNKNOWN_TIER';
}
/** An agent names a tool that is not registered. */
export class UnknownToolError extends CodedError {
  readonly code = 'UNKNOWN_TOOL';
}
/** No agent of this id is registered with the executor. */
export class AgentNotFoundError extends CodedError {
  readonly code = 'AGENT_NOT_FOUND';
}
/** This process cannot continue the run: a model, its key or a tool is missing here. The `cause` says what. */
export class SetupError extends CodedError {
  readonly code = 'SETUP';
}
/** A definition uses something that this version does not offer. */
export class UnsupportedError extends CodedError {
  readonly code = 'UNSUPPORTED';
}
/** The run must be durable, but its record could not be stored. */
export class NotDurableError extends CodedError {
  readonly code = 'NOT_DURABLE';
}
/** A steered message came too late: the run had ended, or ended before the delivery. */
export class UndeliveredError extends CodedError {
  readonly code = 'UNDELIVERED';
}
/** JSON cannot hold the value; the message names the path to it. */
export class NotJsonError extends CodedError {
  readonly code = 'NOT_JSON';
}
/** A history breaks the rule that every tool call has one result, in order. */
export class TranscriptInvalidError extends CodedError {
  readonly code = 'TRANSCRIPT_INVALID';
}
/** A run id is empty, longer than 512 bytes, or one that a host may not give. */
export class InvalidRunIdError extends CodedError {
  readonly code = 'INVALID_RUN_ID';
}
/** The events of a run cannot be read any more: it ended too long ago, or never began. */
export class JournalGoneError extends CodedError {
  readonly code = 'JOURNAL_GONE';
}
/** A run has too many labels, or their texts are too long together. */
export class InvalidLabelsError extends CodedError {
  readonly code = 'INVALID_LABELS';
}
/** The run id already belongs to a run of another agent or prompt. */
export class RunIdConflictError extends CodedError {
  readonly code = 'RUN_ID_CONFLICT';
}
/** Another process works on this run. */
export class RunOwnedElsewhereError extends CodedError {
  readonly code = 'RUN_OWNED_ELSEWHERE';
}
/** A fork may have effects, and its options do not say what such calls do. */
export class ForkEffectsError extends CodedError {
  readonly code = 'FORK_EFFECTS';
}
/** The run has ended for good: nothing continues it. */
export class RunEndedError extends CodedError {
  readonly code = 'RUN_ENDED';
}
/** The run ended badly, and its record is not kept any more: nothing is there from which it could continue. */
export class RecordGoneError extends CodedError {
  readonly code = 'RECORD_GONE';
}
/** The run has not ended: what is stored of it cannot be erased yet. */
export class RunNotEndedError extends CodedError {
  readonly code = 'RUN_NOT_ENDED';
}
/** The run is parked because it died repeatedly without progress. */
export class RunParkedError extends CodedError {
  readonly code = 'RUN_PARKED';
}
/** Another owner took the run over; writes of this process no longer count. */
export class LeaseLostError extends CodedError {
  readonly code = 'LEASE_LOST';
}
/** A stored record is damaged; its bytes are kept. */
export class CheckpointCorruptError extends CodedError {
  readonly code = 'CHECKPOINT_CORRUPT';
}
/** A stored record was written by a newer version; its bytes are kept. */
export class CheckpointTooNewError extends CodedError {
  readonly code = 'CHECKPOINT_TOO_NEW';
}
/** A process of a newer deployment has worked on the run: those of an older one leave it alone. */
export class NewerDeploymentError extends CodedError {
  readonly code = 'NEWER_DEPLOYMENT';
}
/** The host's `migrate` failed on a stored record; the record is unchanged. */
export class MigrationError extends CodedError {
  readonly code = 'MIGRATION';
}
/** The store's keys cannot read the stored bytes; the bytes are kept. */
export class KeyMismatchError extends CodedError {
  readonly code = 'KEY_MISMATCH';
}
/** A reference points to a record that the store does not have. */
export class RunNotFoundError extends CodedError {
  readonly code = 'RUN_NOT_FOUND';
}
/** Neither a store nor an executor knows a schedule of this id. */
export class ScheduleNotFoundError extends CodedError {
  readonly code = 'SCHEDULE_NOT_FOUND';
}
/** A file of exported runs is damaged, cut, foreign, too new or too large. */
export class LabFileError extends CodedError {
  readonly code = 'LAB_FILE';
  /** The number of the line, from 1 on. */
  line = 0;
}
/** The recording of a replay has no answer for what the model or a tool is asked. */
export class ReplayMissError extends CodedError {
  readonly code = 'REPLAY_MISS';
}
/** The save would make the record larger than `maxRecordBytes`; nothing was written. */
export class RecordTooLargeError extends CodedError {
  readonly code = 'RECORD_TOO_LARGE';
}
/** A delta does not follow the stored revision. */
export class RevisionGapError extends CodedError {
  readonly code = 'REVISION_GAP';
}
/** The store could not be opened. */
export class StoreUnavailableError extends CodedError {
  readonly code = 'STORE_UNAVAILABLE';
}
/** The disk or the quota of the store is full; the stored data is intact. */
export class StoreFullError extends CodedError {
  readonly code = 'STORE_FULL';
}
/** The time of this process for the run is over (`executor.drive`, `executor.work`); the run is due, and continues anywhere. */
export class RunSlicedError extends CodedError {
  readonly code = 'RUN_SLICED';
}
/** The run waits for a person, an event, a time, a child or its model, and holds no process meanwhile. */
export class RunWaitsError extends CodedError {
  readonly code = 'RUN_WAITS';
}
/** The machine of a workflow threw, or an error came that no state of it takes. */
export class WorkflowError extends CodedError {
  readonly code = 'WORKFLOW_ERROR';
}
/** The machine of a workflow never comes to rest: its transitions, or its timers, have no end. */
export class WorkflowLoopError extends CodedError {
  readonly code = 'WORKFLOW_LOOP';
}
/** The context or output of a workflow holds what no record can hold. */
export class WorkflowStateError extends CodedError {
  readonly code = 'WORKFLOW_STATE';
}
/** The input of a workflow does not fit its schema. */
export class InputInvalidError extends CodedError {
  readonly code = 'INPUT_INVALID';
}
/** A machine event that no workflow may get: of a type that XState itself uses, not JSON, too long, or not as its schema says. */
export class EventInvalidError extends CodedError {
  readonly code = 'EVENT_INVALID';
}
/** The state of a workflow does not take a machine event, which its sender asked for. */
export class EventNotTakenError extends CodedError {
  readonly code = 'EVENT_NOT_TAKEN';
  /** The types of events that the state takes. */
  readonly taken: readonly string[];

  constructor(message?: string, options?: { readonly cause?: unknown; readonly taken?: readonly string[] }) {
    super(message, options);
    this.taken = options?.taken ?? [];
  }
}
/** The run has no such wait, or not any more. */
export class WaitGoneError extends CodedError {
  readonly code = 'WAIT_GONE';
}
/** The call asks for something else than at the same place before, or its input is not the one that was approved. */
export class WaitChangedError extends CodedError {
  readonly code = 'WAIT_CHANGED';
}
/** No answer came in time. */
export class WaitExpiredError extends CodedError {
  readonly code = 'WAIT_EXPIRED';
}
/** A `once` call asked for something after it may have had its effect: after a crash it could not be repeated. */
export class WaitAfterEffectError extends CodedError {
  readonly code = 'WAIT_AFTER_EFFECT';
}
/** An answer that a record has. */
export interface AnsweredBefore {
  readonly how: string;
  readonly by?: { readonly id: string; readonly name?: string };
  /** Wall clock, ms. */
  readonly at: number;
}
/** The first answer that was recorded stands; `answered` says which one it is. */
export class AlreadyAnsweredError extends CodedError {
  readonly code = 'ALREADY_ANSWERED';
  /** How the wait ended, who decided, and when (wall clock, ms). */
  readonly answered: AnsweredBefore | undefined;

  constructor(message?: string, options?: { cause?: unknown; answered?: AnsweredBefore }) {
    super(message, options);
    this.answered = options?.answered;
  }
}
/** The answer does not fit: its value, its kind, or the person may not give it. The wait stays open. */
export class AnswerRefusedError extends CodedError {
  readonly code = 'ANSWER_REFUSED';
}
/** Redaction would change the answer, so it cannot be recorded. The wait stays open. */
export class AnswerRedactedError extends CodedError {
  readonly code = 'ANSWER_REDACTED';
}
/** An id of a thread, of its caller or of a message is not one. */
export class InvalidThreadIdError extends CodedError {
  readonly code = 'INVALID_THREAD_ID';
}
/** A run of the thread is live. */
export class ThreadBusyError extends CodedError {
  readonly code = 'THREAD_BUSY';
}
/** A fork has the id of another thread. */
export class ThreadExistsError extends CodedError {
  readonly code = 'THREAD_EXISTS';
}
/** Too many messages wait for their turn in the thread. */
export class ThreadFullError extends CodedError {
  readonly code = 'THREAD_FULL';
}
/** The thread has a message of this id with other content. */
export class ThreadMessageConflictError extends CodedError {
  readonly code = 'THREAD_MESSAGE_CONFLICT';
}
/** The caller has no such thread, or the thread has no such message. */
export class ThreadMissingError extends CodedError {
  readonly code = 'THREAD_MISSING';
}
