/** How a number is written: a plain one, a time, or a size of so many bytes or characters. */
export type Unit = 'number' | 'ms' | 'size' | 'days';

/** A line of the page. The number is read off the code by its name; `src/budget: NAME` where several folders have it. */
export interface Limit {
  readonly what: string;
  readonly code: string;
  readonly unit?: Unit;
  /** What changes it; absent = nothing does. */
  readonly option?: string;
}

interface Section {
  readonly title: string;
  readonly text?: string;
  readonly limits: readonly Limit[];
}

const inDefaults = (what: string, name: string, unit: Unit = 'number'): Limit => ({
  what,
  code: name.startsWith('maxReply') || name.startsWith('maxCall') ? name : `src/executor/host: ${name}`,
  unit,
  option: `defaults.${name}`,
});

export const sections: readonly Section[] = [
  {
    title: 'Defaults of a run',
    text:
      '`createExecutor({ defaults: { … } })` changes them for all runs. An agent may have its own `maxIterations`, `maxRuntimeMs`,\n' +
      '`toolConcurrency` and `modelTier`; a tool its own `timeoutMs` and `concurrency`.',
    limits: [
      inDefaults('model turns of a run, or of a phase', 'maxIterations'),
      inDefaults('working time of a run, over all its processes', 'maxRuntimeMs', 'ms'),
      inDefaults('steps in a row in which each call failed, then `TOOL_LOOP`', 'maxConsecutiveToolErrors'),
      inDefaults('consecutive steps with one identical call, then `TOOL_LOOP`', 'maxSameToolCallRepeats'),
      inDefaults('tool calls of one message side by side', 'toolConcurrency'),
      inDefaults('attempts of a model call that fails temporarily, in one process', 'modelAttempts'),
      inDefaults('time for those attempts, from the first failure', 'modelRetryMs', 'ms'),
      inDefaults('wait of a durable run for a model that stays away', 'modelOutageMs', 'ms'),
      inDefaults("wait for the first chunk of a model's answer", 'firstChunkMs', 'ms'),
      inDefaults('silence within an answer', 'chunkGapMs', 'ms'),
      inDefaults('characters of one reply, arguments and metadata included', 'maxReplyChars'),
      inDefaults('bytes of the arguments of one call', 'maxCallInputBytes', 'size'),
      inDefaults('tool calls of one reply', 'maxCallsPerMessage'),
      inDefaults('time of one tool call', 'toolTimeoutMs', 'ms'),
      inDefaults('wait for a port or a store call', 'portMs', 'ms'),
      inDefaults('time for storing the end of a run', 'finalizeMs', 'ms'),
      inDefaults('a claim without renewal', 'leaseMs', 'ms'),
      inDefaults('pause between two looks for commands of other processes', 'controlMs', 'ms'),
      inDefaults('starts in a row without progress before a run is parked', 'maxAttempts'),
      inDefaults('time that a run that waits stays in its process before it rests', 'waitLingerMs', 'ms'),
      inDefaults('pause between two looks for runs that are due', 'dueMs', 'ms'),
    ],
  },
  {
    title: 'Defaults of an executor',
    limits: [
      {
        what: 'finished steps that may be unsaved while the store fails',
        code: 'maxUnsavedSteps',
        option: 'onSaveError.maxUnsavedSteps',
      },
      {
        what: 'time for which an outcome is kept',
        code: 'src/executor/host: WEEK_MS',
        unit: 'ms',
        option: 'keepOutcomesMs',
      },
      {
        what: 'time for which a signal is kept that no run waits for',
        code: 'src/executor/host: DAY_MS',
        unit: 'ms',
        option: 'keepSignalsMs',
      },
      {
        what: 'time of a shutdown',
        code: 'src/executor/lifecycle: drainMs',
        unit: 'ms',
        option: '`drainMs` of `executor.shutdown`',
      },
      {
        what: 'time from a signal to the exit',
        code: 'DRAIN_MS',
        unit: 'ms',
        option: '`drainMs` of `executor.shutdownOnSignals`',
      },
      { what: 'share of that time for calls with effects', code: 'CALLS_SHARE' },
      {
        what: 'starts in a row without progress, then the run is parked',
        code: 'DEFAULT_MAX_ATTEMPTS',
        option: '`maxAttempts` of `recover`',
      },
      {
        what: 'recovered runs that are live at once',
        code: 'concurrency',
        option: '`concurrency` of `recover`',
      },
      {
        what: 'lines of one page of a list',
        code: 'src/executor/lifecycle: USUAL_LIMIT',
        option: '`limit` of `executor.list`',
      },
      { what: 'open waits of one page', code: 'WAITS_A_PAGE', option: '`limit` of `executor.waiting`' },
      { what: 'open waits of one page, with that option', code: 'MAX_WAITS_LISTED' },
      { what: 'ended runs that `executor.get` finds', code: 'MAX_ENDED' },
      { what: 'events of a run that are kept for consumers', code: 'BUFFER' },
      { what: 'levels of sub-agents below a run', code: 'src/executor/run: MAX_DEPTH' },
      { what: 'turns of repair for an answer that does not fit its schema', code: 'MAX_REPAIRS' },
      { what: 'share of the context window, then a history is compacted', code: 'threshold' },
    ],
  },
  {
    title: 'Retries of a model call',
    limits: [
      { what: 'first pause, doubled each time', code: 'BASE_MS', unit: 'ms' },
      { what: 'longest pause', code: 'MAX_BACKOFF_MS', unit: 'ms' },
      { what: 'attempts for a compactor or an escalator', code: 'MODEL_ATTEMPTS' },
      { what: 'time for these attempts', code: 'MODEL_RETRY_MS', unit: 'ms' },
      { what: 'then a durable run waits, doubled each time', code: 'FIRST_WAIT_MS', unit: 'ms' },
      { what: 'longest such wait', code: 'LONGEST_WAIT_MS', unit: 'ms' },
      { what: 'share by which it is longer or shorter', code: 'WAIT_SPREAD' },
      { what: 'wait for a model that refuses the account or the address', code: 'BLOCKED_WAIT_MS', unit: 'ms' },
    ],
  },
  {
    title: 'Sizes',
    limits: [
      { what: 'bytes of a run id', code: 'MAX_RUN_ID_BYTES' },
      { what: 'bytes of the id of a thread, of its caller, and of a message', code: 'MAX_RUN_ID_BYTES' },
      { what: 'parts of a message of a thread', code: 'MAX_MESSAGE_PARTS' },
      {
        what: 'characters of a message of a thread as JSON, with its files as base64',
        code: 'MAX_MESSAGE_CHARS',
        unit: 'size',
      },
      { what: 'labels of a run', code: 'MAX_LABELS' },
      { what: 'bytes of the labels of a run, together', code: 'MAX_LABEL_BYTES' },
      {
        what: 'bytes of a record, transcript included',
        code: 'DEFAULT_MAX_RECORD_BYTES',
        unit: 'size',
        option: '`maxRecordBytes` of `createCheckpointerFactory`',
      },
      { what: 'levels of a JSON value', code: 'src/values: MAX_DEPTH' },
      { what: 'parts of a reply besides its calls', code: 'MAX_PARTS' },
      { what: 'characters of an error message in results, records and events', code: 'src/values: MAX_MESSAGE' },
      { what: 'errors of a `cause` chain', code: 'src/values: MAX_CHAIN' },
      { what: 'errors of one failed model call that are looked at', code: 'MAX_ERRORS' },
      { what: 'members of a group of errors that are looked at', code: 'MAX_MEMBERS' },
      { what: 'characters of an error that a wait for the model keeps', code: 'MAX_WAIT_MESSAGE' },
      { what: 'causes that it keeps', code: 'MAX_WAIT_CAUSES' },
      {
        what: 'characters of a kept outcome; a longer one is cut, `isCut: true`',
        code: 'src/run: MAX_CHARS',
        unit: 'size',
      },
      { what: 'then its answer has', code: 'OUTPUT_CHARS', unit: 'size' },
      { what: 'the outputs of its phases have', code: 'PHASES_CHARS', unit: 'size' },
      { what: 'its undelivered messages have', code: 'UNDELIVERED_CHARS', unit: 'size' },
    ],
  },
  {
    title: 'Messages to a run',
    limits: [
      { what: 'characters of one message, or of the reason of a cancel', code: 'MAX_TEXT_CHARS', unit: 'size' },
      { what: 'messages that wait for the next turn', code: 'MAX_UNDELIVERED' },
      { what: 'bytes that wait for the next turn', code: 'MAX_WAITING_BYTES', unit: 'size' },
      { what: 'share of a record that messages may fill', code: 'SHARE' },
      { what: 'commands that wait in a store for one run', code: 'MAX_COMMANDS' },
      { what: 'persons whose approval one call may need', code: 'MAX_QUORUM' },
      { what: 'characters of the question about one call', code: 'MAX_PROMPT_CHARS' },
      { what: 'characters of the facts about one call, as JSON', code: 'MAX_DETAIL_CHARS' },
      { what: 'characters of the questions and facts of one step', code: 'MAX_WORDS_CHARS', unit: 'size' },
      { what: 'characters of the reason of a verdict', code: 'src/executor/run: MAX_REASON_CHARS' },
      { what: 'characters of the note or reason of an answer', code: 'MAX_NOTE_CHARS' },
      { what: 'characters of the id, and of the name, of a person', code: 'MAX_PERSON_CHARS' },
      { what: 'waits of one tool call', code: 'MAX_WAITS' },
      {
        what: 'characters of a question of a tool, and of the JSON of its options or schema',
        code: 'MAX_QUESTION_CHARS',
      },
      { what: 'characters of the name, and of the key, of an event', code: 'MAX_EVENT_CHARS' },
      { what: 'cancels that may wait besides', code: 'src/run: MAX_CANCELS' },
      { what: 'characters that wait in a store for one run', code: 'MAX_INBOX_CHARS', unit: 'size' },
      { what: 'characters of the id of a command', code: 'src/run: MAX_ID_CHARS' },
      {
        what: 'characters of the output of a child, for the parent that waits for it',
        code: 'MAX_OUTPUT_CHARS',
        unit: 'size',
      },
      { what: 'signals that are kept for one topic', code: 'MAX_KEPT_SIGNALS' },
      { what: 'signals that a process keeps without a store, for one topic', code: 'MAX_KEPT_HERE' },
      { what: 'signals that a process keeps without a store, for all topics', code: 'MAX_SIGNALS' },
      { what: 'characters of a signal', code: 'MAX_SIGNAL_CHARS' },
      { what: 'characters of the id of a signal', code: 'MAX_SIGNAL_ID_CHARS' },
      { what: 'time for which an obeyed command is recognised', code: 'REMEMBERED_MS', unit: 'ms' },
      { what: 'obeyed commands that a run remembers', code: 'src/executor/services: MAX_REMEMBERED' },
      { what: 'characters of a nudge of a critic', code: 'src/executor: MAX_NUDGE' },
    ],
  },
  {
    title: 'Checks against a JSON Schema',
    limits: [
      { what: 'characters of the value', code: 'MAX_CHARACTERS' },
      { what: 'levels of the value', code: 'src/tool: MAX_DEPTH' },
      { what: 'characters of a text that a `pattern` is tried on', code: 'MAX_PATTERN_CHARACTERS' },
      { what: 'problems that the model reads', code: 'MAX_ISSUES' },
      { what: 'items of a list that `uniqueItems` compares one by one', code: 'MAX_COMPARED_ITEMS' },
    ],
  },
  {
    title: 'Stores',
    limits: [
      {
        what: 'wait for the lock of another process, SQLite',
        code: 'src/store/sqlite: busyTimeoutMs',
        unit: 'ms',
        option: '`busyTimeoutMs` of `sqliteStore`',
      },
      {
        what: 'the same, files',
        code: 'src/store/file: busyTimeoutMs',
        unit: 'ms',
        option: '`busyTimeoutMs` of `fileStore`',
      },
      {
        what: 'time in which a PostgreSQL call is tried',
        code: 'src/store/postgres: timeoutMs',
        unit: 'ms',
        option: '`timeoutMs` of `postgresStore`',
      },
      { what: 'bytes of one write to PostgreSQL', code: 'src/store/postgres: MAX_BYTES' },
      { what: 'bytes of the name of a PostgreSQL schema', code: 'MAX_NAME_BYTES' },
      {
        what: 'age at which a file lock of an unknown process is taken over',
        code: 'src/files: PATIENCE_MS',
        unit: 'ms',
      },
    ],
  },
  {
    title: 'Critic, budget, audit',
    limits: [
      {
        what: 'silence that is an idle period',
        code: 'idleMs',
        unit: 'ms',
        option: '`idleMs` of `createCritic`',
      },
      {
        what: 'time of the escalator',
        code: 'askTimeoutMs',
        unit: 'ms',
        option: '`askTimeoutMs` of `createCritic`',
      },
      { what: 'working time of a watched run', code: 'WATCHED_RUNTIME_MS', unit: 'ms' },
      { what: 'steps that one decision can grant', code: 'MAX_RAISE' },
      { what: 'characters of a nudge of `createCritic`', code: 'src/critic: MAX_NUDGE' },
      { what: 'characters of the reason of a kill', code: 'MAX_REASON' },
      { what: 'window of a budget', code: 'src/budget: WEEK_MS', unit: 'ms', option: '`windowMs` of `createBudget`' },
      {
        what: 'age at which the reservation of a dead process is free',
        code: 'RESERVATION_MS',
        unit: 'ms',
        option: '`reservationMs` of `createBudget`',
      },
      { what: 'calls of a caller that a budget in memory knows one by one', code: 'src/budget: MAX_KNOWN' },
      {
        what: 'days for which the audit keeps an ended run',
        code: 'retentionDays',
        option: '`retentionDays` of `createAudit`',
      },
      {
        what: 'characters of the input or output of a tool in the audit',
        code: 'maxChars',
        option: '`maxChars` of `createAudit`',
      },
      { what: 'entries that wait while the audit cannot be written', code: 'src/audit: MAX_ENTRIES' },
      { what: 'characters that wait then', code: 'src/audit: MAX_CHARS', unit: 'size' },
    ],
  },
  {
    title: 'Fan-out and file edits',
    limits: [
      { what: 'models of one fan-out', code: 'MAX_MODELS' },
      {
        what: 'time of a model in one call of `fanOut`',
        code: 'DEADLINE_MS',
        unit: 'ms',
        option: '`deadlineMs` of `fanOut`',
      },
      { what: 'time for calls with effects after that', code: 'LEAVE_MS', unit: 'ms' },
      { what: 'characters of each answer that a judging model reads', code: 'src/fan-out: MAX_SHOWN' },
      {
        what: 'characters of proposed writes in the file while their model works',
        code: 'MAX_IN_PROGRESS',
        unit: 'size',
      },
      { what: 'proposed writes of one answer', code: 'MAX_WRITES' },
      { what: 'bytes of them', code: 'MAX_QUEUED_BYTES', unit: 'size' },
      { what: 'bytes of one file that a model reads or writes', code: 'MAX_FILE_BYTES', unit: 'size' },
      { what: 'bytes of a path', code: 'MAX_PATH' },
      { what: 'bytes of a name in it', code: 'MAX_NAME' },
      { what: 'entries of a listing', code: 'src/edits: MAX_ENTRIES' },
      { what: 'names that a listing looks at', code: 'MAX_NAMES' },
      { what: 'bytes of one `.gitignore`', code: 'MAX_RULES_BYTES', unit: 'size' },
      { what: 'applied answers that can be undone', code: 'MAX_UNDOS' },
      { what: 'wait for another process that applies', code: 'WAIT_MS', unit: 'ms' },
    ],
  },
  {
    title: 'Requests over HTTP',
    text: 'Of `pawl/http`; the options are those of `httpHandler`.',
    limits: [
      { what: 'bytes of a body', code: 'src/http: maxBodyBytes', unit: 'size', option: 'maxBodyBytes' },
      { what: 'time for a body', code: 'src/http: bodyMs', unit: 'ms', option: 'bodyMs' },
      { what: 'open streams of a caller', code: 'src/http: maxStreams', option: 'maxStreams' },
      {
        what: 'pause between comments of a silent stream',
        code: 'src/http: heartbeatMs',
        unit: 'ms',
        option: 'heartbeatMs',
      },
      {
        what: 'time after which a stream is authorised again',
        code: 'src/http: reauthorizeMs',
        unit: 'ms',
        option: 'reauthorizeMs',
      },
      { what: 'time for an answer of `authorize`', code: 'AUTHORIZE_MS', unit: 'ms' },
      { what: 'characters of a `callerId`', code: 'MAX_CALLER_CHARS' },
      { what: 'characters of an `Idempotency-Key`', code: 'MAX_KEY' },
      { what: 'entries of a page', code: 'MAX_LIMIT' },
      { what: 'runs that are read for a page', code: 'MAX_READ' },
      { what: 'runs below others that are read for a page', code: 'MAX_BELOW' },
      { what: 'characters of a filter of `GET /runs`', code: 'MAX_FILTER_CHARS' },
      { what: 'labels of that filter', code: 'MAX_LABEL_FILTERS' },
      { what: 'characters of the messages in a page of a thread', code: 'PAGE_CHARS', unit: 'size' },
      { what: 'newest turns that a thread shows', code: 'TURNS_SHOWN' },
      { what: 'characters of the `detail` of an error', code: 'MAX_DETAIL' },
      { what: 'bytes that wait for a slow reader of a stream', code: 'BUFFER_BYTES', unit: 'size' },
    ],
  },
  {
    title: 'Clients',
    text: 'Of `pawl/client`; the options are those of `createClient`, and of `chatTransport`.',
    limits: [
      { what: 'time for a request', code: 'src/client: timeoutMs', unit: 'ms', option: 'timeoutMs' },
      { what: 'tries of a request', code: 'src/client: TRIES' },
      { what: 'silence after which a stream is opened again', code: 'silenceMs', unit: 'ms', option: 'silenceMs' },
      { what: 'first wait before that', code: 'src/client: FIRST_RETRY_MS', unit: 'ms' },
      { what: 'longest wait before that', code: 'LONGEST_RETRY_MS', unit: 'ms' },
      { what: 'longest wait that a server can ask for', code: 'LONGEST_RETRY_AFTER', unit: 'ms' },
      {
        what: 'bytes of an event or an answer',
        code: 'src/client/connection: maxBytes',
        unit: 'size',
        option: 'maxBytes',
      },
      { what: 'time until an answer of a chat begins', code: 'FIRST_ANSWER_MS', unit: 'ms', option: 'firstAnswerMs' },
    ],
  },
  {
    title: 'Requests over AG-UI',
    text: 'Of `pawl/ag-ui`; the other options and limits are those of `httpHandler`.',
    limits: [
      { what: 'bytes of a body', code: 'DEFAULT_BODY_BYTES', unit: 'size', option: 'maxBodyBytes' },
      { what: 'characters of an id in a body', code: 'MAX_POSTED_ID_CHARS' },
      { what: 'messages of a body', code: 'MAX_POSTED_MESSAGES' },
      { what: 'new messages at its end that are taken', code: 'MAX_NEW_MESSAGES' },
      { what: 'parts of a message', code: 'MAX_POSTED_PARTS' },
      { what: 'answers to interrupts in a body', code: 'MAX_RESUME_ENTRIES' },
    ],
  },
  {
    title: 'Logs and the command line',
    limits: [
      { what: 'characters of a text in a line of `jsonLogger`', code: 'src/executor/host: MAX_TEXT' },
      { what: 'characters of that line', code: 'src/executor/host/logger: MAX_LINE' },
      { what: 'levels of a logged value', code: 'src/executor/host: MAX_DEPTH' },
      { what: 'items of a logged list', code: 'MAX_ITEMS' },
      { what: 'bytes of a prompt from stdin', code: 'src/cli: MAX_BYTES', unit: 'size' },
      { what: 'runs of the audit in `pawl list --all`', code: 'src/cli: USUAL_LIMIT', option: '`--limit`' },
      {
        what: 'wait of `pawl cancel` and `pawl steer` for a live run',
        code: 'USUAL_WAIT_MS',
        unit: 'ms',
        option: '`--wait`',
      },
      { what: 'agent modules whose paths are remembered', code: 'MOST_FILES' },
      { what: 'days for which a path is remembered', code: 'MOST_DAYS' },
    ],
  },
];
