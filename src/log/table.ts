// All log lines, as a table: the code writes only lines of its rows, and docs/log-lines.md is made of it.

/** What is known of a log line besides its event. */
export interface LogRow {
  /** `error`: a person is needed. `info`: nothing is wrong. */
  readonly level: 'info' | 'warn' | 'error';
  /** The sentence. `{name}` stands for a field of the line. */
  readonly says: string;
  /** Why it is written. */
  readonly cause: string;
  /** What to do. */
  readonly remedy: string;
}

const STORE = 'The store was away, full or slow.';
const RETRIED = 'Nothing, if it is rare: it is tried again. Else look at the store.';
const OWN_CODE = 'Code of yours threw.';
const MEND_IT = 'Mend it: the error is in the line.';

/** The log lines of Pawl. Events and fields are stable; a sentence may change. */
export const logTable = {
  'run.taken': info('run: taken', 'This process begins or continues the run.'),
  'run.ended': info('run: ended', 'The run has ended; `status` says how.'),
  'run.waiting': info('run: waits', 'The run waits for a person, an event, a time, a model or another run.'),
  'run.left': info('run: left', 'This process works on the run no more; another one, or a later one, continues it.'),
  'run.parked': error(
    'run: parked',
    'Only a person can say how the run continues; `code` and `reason` say why.',
    'See [When something is stuck](when-stuck.md#a-run-is-parked).',
  ),
  'call.unknown': error(
    'run: a call of tool {tool} may or may not have taken effect; it is not made again',
    'A call of a `once` tool was under way when its process died or its run ended, or it got no answer.',
    'Look in the other system: see [The outcome of a call is unknown](when-stuck.md#the-outcome-of-a-call-is-unknown).',
  ),
  'run.start.failed': warn('work: a run could not be started', STORE, RETRIED),
  'run.suspend.failed': warn('run: the run could not rest; it tries again', STORE, RETRIED),
  'run.give-back.failed': warn(
    'work: a run could not be given back',
    STORE,
    'Nothing: the run is free when its lease is over.',
  ),
  'run.cancel.failed': warn(
    'run: a cancel did not reach a run',
    `${STORE} The run was left, waits, or belongs to another process.`,
    '`pawl cancel` and the id again.',
  ),
  'run.recovery.failed': warn('recover: some runs could not be started', STORE, 'The next `recover()` tries them.'),
  'run.restore.failed': error(
    'run: the record could not be restored',
    'The record does not fit the program or is damaged; `error` says which.',
    '`pawl doctor` says what to do with the run: see [A record cannot be read](when-stuck.md#a-record-cannot-be-read).',
  ),
  'run.erase.partial': warn(
    'run: a record that cannot be read is erased without its child runs',
    'The record does not say which runs the run began.',
    'Erase those by their ids, if they hold data of the person.',
  ),
  'checkpoint.begin.failed': error(
    'run: checkpointer begin failed; running non-durable',
    `${STORE} The run continues, but a crash would lose it.`,
    'See [The store was away](when-stuck.md#the-disk-was-full-or-the-store-was-away). `requireDurable: true` refuses such starts.',
  ),
  'checkpoint.save.failed': warn('run: checkpoint save failed', STORE, RETRIED),
  'checkpoint.close.failed': warn(
    'run: checkpoint {step} failed',
    `${STORE} The end of the run is not recorded.`,
    'Nothing: the run continues from its record once the store is back, and may end otherwise.',
  ),
  'claim.release.failed': warn('run: claim release failed', STORE, 'Nothing: the claim is over with its lease.'),
  'outcome.save.failed': warn('run: outcome save failed', STORE, 'Nothing: the run ends again at its next start.'),
  'outcome.delivery.failed': warn(
    'run: onOutcome failed',
    'The function `onOutcome` of your program threw, or took longer than `portMs`.',
    'Mend it: the end is delivered again until it is accepted.',
  ),
  'outcome.mark.failed': warn(
    'run: the delivery of an end could not be noted',
    STORE,
    'Nothing: the end is delivered again. `onOutcome` sees the same `outcomeId`.',
  ),
  'outcome.read.failed': warn('executor: the undelivered ends cannot be read', STORE, RETRIED),
  'limit.failed': warn('run: its limits gave no turn; they are asked again', STORE, RETRIED),
  'limit.exceeded': warn(
    'run: a request has more tokens than its limit gives for a minute',
    'It is sent when its turn comes, and what follows waits for longer than a minute.',
    'Raise `tokensPerMinute` of the rule, or let the agent send less.',
  ),
  'due.read.failed': warn('executor: the due runs cannot be read', STORE, RETRIED),
  'due.hint.failed': warn('executor: onDue failed; the run stays due', OWN_CODE, MEND_IT),
  'due.listener.lost': warn(
    'work: the connection that listens is lost; due runs are polled',
    'The connection to PostgreSQL ended.',
    'Nothing: it connects again.',
  ),
  'agent.unknown': error(
    'run: due runs wait for an agent that this process does not have, and no other has taken them for a minute',
    'The agent was renamed, removed or not deployed.',
    'Deploy a worker that has it, or cancel its runs: see [Runs pile up](when-stuck.md#runs-pile-up).',
  ),
  'agent.absent': warn(
    'recover: runs that wait are of agents or workflows that this process does not have',
    'The agent was renamed, removed or not deployed, or another process has it.',
    'Nothing, if another process has it. Else give it to `createExecutor`, as `agents` or `workflows`, or cancel its runs.',
  ),
  'setup.failed': error(
    'run: the setup of this process cannot continue the runs of an agent; they are given back',
    'A model, a key or a tool is missing in this process; `error` says which.',
    'Mend the setup and start the process again: see [Runs pile up](when-stuck.md#runs-pile-up). Others take the runs meanwhile.',
  ),
  'notice.failed': warn('executor: notify failed', OWN_CODE, MEND_IT),
  'notice.look.failed': warn('executor: the runs that need a person cannot be looked for', STORE, RETRIED),
  'admission.follow.failed': warn('run: the end of a run cannot be read; it is read again', STORE, RETRIED),
  'command.read.failed': warn('run: commands from other processes cannot be read', STORE, RETRIED),
  'command.confirm.failed': warn('run: a command could not be acknowledged', STORE, 'Nothing: it is read again.'),
  'signal.return.failed': warn(
    'run: a signal that was not read could not be given back',
    `${STORE} The run ended, or its wait was over.`,
    'Send the signal again, if another run waits for it.',
  ),
  'wait.register.failed': warn(
    'run: the store does not know yet which event the run waits for',
    STORE,
    'Nothing: it is written again.',
  ),
  'outbox.delivery.failed': warn(
    'run: an event for another run did not arrive; it is sent again',
    'The other run does not exist, is not a workflow, or its store was away.',
    RETRIED,
  ),
  'event.invalid': warn(
    'run: an event does not fit the schema of its workflow',
    'A sender and the workflow have different versions.',
    'Deploy both; the event is dropped.',
  ),
  'workflow.action.threw': warn('run: an action of the workflow threw', OWN_CODE, MEND_IT),
  'workflow.log': info('workflow: {said}', 'An action `log` of a machine; `label` is its second argument.'),
  'workflow.dead-end': warn(
    'run: the workflow is suspended: {why}',
    'The state is not final, and has no transition for an event, a timer or a result that can still come.',
    "Add a transition or `type: 'final'`, and `migrate`; or cancel the run.",
  ),
  'workflow.restless': warn(
    'run: the workflow has made {count} transitions without a rest; at {most} it fails',
    'Its machine sends itself events, or begins a call again as soon as it has ended: a loop without an end, or a poll without a pause.',
    'Give the loop an end, or a pause (`after`).',
  ),
  'phase.not-repeated': warn(
    'run: a phase continues at its step, not at its beginning: its effects are recorded',
    'The phase should begin again after a crash, but one of its calls has had an effect.',
    'Nothing.',
  ),
  'phase.model.missing': warn(
    "run: no model for the tier of a phase; the agent's ({instead}) is used",
    'No entry of `models` has the name of the tier.',
    'Add it to `createExecutor({ models })`.',
  ),
  'palette.entry.missing': warn(
    'run: this executor has no {kind} {name}; the agent works without it',
    'The agent names a sub-agent or a skill that this process does not have.',
    'Add it to `agents` or `skills`.',
  ),
  'compaction.failed': warn(
    'run: the history could not be compacted; it is sent as it is',
    'The compactor threw, or its model failed.',
    MEND_IT,
  ),
  'critic.failed': warn(
    'run: the critic threw; {outcome}',
    'The critic of your program threw, or its model failed.',
    MEND_IT,
  ),
  'critic.nudge.dropped': warn(
    'run: a nudge of the critic is too large; it was dropped',
    'The run has no room for the text.',
    'Write shorter nudges.',
  ),
  'approval.rule.failed': warn(
    'run: {rule} failed; a person must approve',
    'The rule of an approval threw, or gave no verdict.',
    MEND_IT,
  ),
  'approval.input.unchecked': warn('run: the input of a call of tool {tool} cannot be checked', OWN_CODE, MEND_IT),
  'approval.question.failed': warn(
    'run: the question of tool {tool} cannot be made; the person sees the input alone',
    OWN_CODE,
    MEND_IT,
  ),
  'fork.source.unreadable': warn(
    'run: what run {from} did cannot be said',
    STORE,
    'The person decides without it, or waits until the store answers.',
  ),
  'budget.away': warn(
    'run: the budget does not answer; the run waits for it, or goes without, as onBudgetAway says',
    'The database of the budget is away, full or slow.',
    'Look at it. `onBudgetAway` decides what runs do meanwhile.',
  ),
  'budget.local': warn(
    'executor: the store is shared by computers and the budget is not: each has a budget of its own',
    'The budget is in the memory of the process or in a SQLite file, and the runs are in PostgreSQL.',
    'Give it a shared store: `createBudget({ store: postgresBudget({ pool }) })`.',
  ),
  'budget.shared': warn(
    'run: runs without a callerId share one budget',
    'A run was started without `callerId`, and its budget counts by callers.',
    'Name the caller at the start, or leave it so where one budget for all is meant.',
  ),
  'budget.restore.failed': warn(
    'run: the budget did not accept the earlier spend of the run',
    'The budget was away, or threw.',
    'The limits count too little until the budget answers.',
  ),
  'budget.commit.failed': warn(
    'run: a model call could not be charged to the budget',
    'The budget was away, or threw.',
    'The reservation of the call stays in the place of its cost.',
  ),
  'budget.refund.failed': warn(
    'run: a reservation could not be returned to the budget',
    'The budget was away, or threw.',
    'Nothing: the reservation ends by itself.',
  ),
  'budget.estimated': warn(
    'run: a model reported no usage; the budget counts an estimate of its tokens',
    'The provider sends no usage.',
    'Ask the provider for usage, or accept the estimate.',
  ),
  'audit.failed': warn('run: the audit threw; {outcome}', OWN_CODE, MEND_IT),
  'journal.write.failed': warn('run: a journal write failed', STORE, 'Readers in other processes miss these events.'),
  'callback.threw': warn('run: {what} threw', OWN_CODE, MEND_IT),
  'tracing.ids.missing': warn(
    'tracing: the tracer provider has no runIds(): spans of a process that died may lack their parent',
    'The tracer provider was made without the id generator of `pawl/otel`.',
    'Give it one: `idGenerator: runIds()`.',
  ),
  'clock.threw': warn('run: the clock threw; the system clock replaces it', OWN_CODE, MEND_IT),
  'ids.invalid': warn(
    'run: the port ids returned no valid run id; a random one is used',
    'The option `ids` threw, or made an id that a run cannot have.',
    MEND_IT,
  ),
  'abort-signal.unreadable': warn('run: the signal cannot be followed', OWN_CODE, 'Pass a plain AbortSignal.'),
  'option.no-effect': warn(
    'executor: the option {option} has no effect: {why}',
    'The store lacks what the option needs.',
    'Choose another store, or leave the option out.',
  ),
  'outcome.delivery.partial': warn(
    'executor: onOutcome gets only the ends of runs of this process: this store does not keep which are delivered',
    'The store does not have the methods for deliveries.',
    'Choose another store, or read the ends yourself.',
  ),
  'shutdown.cut': warn(
    'executor: shutdown ended before all runs were left in good order',
    'A call took longer than the time of the shutdown.',
    'Nothing: the runs continue as after a crash. Give the shutdown more time.',
  ),
  'drain.cut': error(
    'executor: the process ends before everything was closed',
    'The drain took longer than `drainMs`.',
    'A longer `drainMs`, and a supervisor that waits for it: see [A process is not well](when-stuck.md#a-process-is-not-well).',
  ),
  'schedule.missed': warn(
    'schedule: ticks were missed',
    'No process was there, or the store was away, when the schedule was due; `ticks` says how many.',
    'Nothing: the newest one began a run, unless the schedule says otherwise.',
  ),
  'schedule.skipped': warn(
    'schedule: a tick began no run: the run of an earlier tick has not ended',
    'The runs of the schedule take longer than its pause.',
    'A longer pause, or let them overlap.',
  ),
  'schedule.start.failed': warn(
    'schedule: a tick began no run: its start failed',
    'The error is in the line.',
    MEND_IT,
  ),
  'schedule.read.failed': warn('schedule: the store does not answer', STORE, RETRIED),
  'turn.start.failed': warn('thread: a turn could not be started', STORE, 'The next message starts it.'),
  'turn.end.failed': warn('thread: a turn could not be ended', STORE, 'The next message ends it.'),
  'turn.read.failed': warn('thread: parked turns could not be looked for', STORE, RETRIED),
  'http.answer.failed': warn(
    'http: a request was answered with {status}',
    'The server or its store failed.',
    'Look at the error.',
  ),
  'http.stream.broke': warn(
    'http: a stream broke',
    'The store failed while a client read.',
    'The client connects again.',
  ),
  'http.run.unreadable': warn(
    'http: a run was not found, because it cannot be read',
    'The record is damaged or encrypted.',
    '`pawl doctor` says which.',
  ),
  'http.start.refused': warn(
    'http: a run was refused',
    'The setup or the store of the server failed.',
    'Look at the error.',
  ),
  'http.chat.major': warn(
    'http: useChat needs ai@7 and @ai-sdk/react@4; ai@{version} is installed here',
    'A page with another major ends with an error of its own at the first approval.',
    '`npm install ai@7 @ai-sdk/react@4`.',
  ),
  'http.local.refused': warn(
    'localOnly refused a request: {why}',
    'A page or a computer that is not this one asked.',
    'Nothing, or use an `authorize` of your own.',
  ),
  'studio.answer.failed': warn(
    'studio: a request was answered with {code}',
    'The store cannot be read.',
    'Look at the error.',
  ),
  'studio.store.away': warn('studio: the store does not answer', STORE, 'Nothing: the page asks again.'),
  'studio.log.incomplete': warn(
    'studio: {path} does not have the end of an action',
    'The disk is full, or the file cannot be written.',
    'The files are changed; only the log of it is not.',
  ),
  'fan-out.run.unreadable': warn(
    'fan-out: a run cannot be continued; its model starts again',
    'Its record is damaged.',
    'Nothing.',
  ),
  'fan-out.answers.unreadable': warn(
    'fan-out: the answers of the last call could not be read',
    STORE,
    'Nothing: all models are asked again.',
  ),
  'fan-out.events.lost': warn(
    'fan-out: events of a run were lost',
    'The reader was slow.',
    'Nothing: the answer is whole.',
  ),
  'fan-out.lock.kept': warn('fan-out: the checkpoint file stays locked', 'The lock cannot be deleted.', 'Delete it.'),
  'fan-out.file.failed': warn('fan-out: the checkpoint file could not be written', 'The disk is full.', 'Make room.'),
  'fan-out.judge.failed': warn('fan-out: the judge gave no ranking', 'The judge threw, or its model failed.', MEND_IT),
  'fan-out.callback.threw': warn('fan-out: {what} threw', OWN_CODE, MEND_IT),
  'fan-out.ids.invalid': warn('fan-out: ids gave no run id; a random one is used', OWN_CODE, MEND_IT),
} satisfies { readonly [event: string]: LogRow };

/** The name of a log line, by which code may recognise it. */
export type LogEvent = keyof typeof logTable;

function info(says: string, cause: string) {
  return { level: 'info', says, cause, remedy: '' } as const;
}

function warn(says: string, cause: string, remedy: string) {
  return { level: 'warn', says, cause, remedy } as const;
}

function error(says: string, cause: string, remedy: string) {
  return { level: 'error', says, cause, remedy } as const;
}
