/** Options of one call, or of one object inside it. */
export interface OptionSection {
  /** The heading of the page. */
  readonly title: string;
  /** A sentence below it. */
  readonly text?: string;
  /** The interface, and the file that declares it. */
  readonly of: string;
  readonly path: string;
  /** The options by subject, each once; absent = one table of all in the order of the code. */
  readonly subjects?: Readonly<Record<string, readonly string[]>>;
  /** Its type arguments, for the check of its examples. */
  readonly with?: string;
  /** The type whose table of known options it has, where that is another one. */
  readonly keys?: string;
  /** Known options that no user sets. */
  readonly inner?: readonly string[];
}

const host = 'src/executor/host';

export const optionSections: readonly OptionSection[] = [
  {
    title: 'createExecutor',
    text: 'No option is required: `createExecutor({})` runs agents that name a model of their own, and no run is durable.',
    of: 'ExecutorOptions',
    path: `${host}/options.ts`,
    subjects: {
      'What it runs': ['agents', 'workflows', 'tools', 'skills', 'schedules'],
      'Models and their context': ['models', 'failover', 'limits', 'systemHeader', 'compactor', 'contextTokens'],
      'What is stored': [
        'store',
        'requireDurable',
        'onSaveError',
        'retention',
        'journal',
        'audit',
        'redact',
        'migrate',
      ],
      'What decides': [
        ...['approvals', 'middleware', 'onUnknownOutcome', 'onModelOutage', 'onBudgetExceeded', 'onBudgetAway'],
        'onDefinitionChange',
      ],
      'What it reports': ['onOutcome', 'notify', 'onDue', 'onStep', 'observers', 'tracing', 'logger', 'inspect'],
      'Many processes': ['deployment', 'fairBy'],
      'Parts and limits': ['defaults', 'ports', 'clock', 'random', 'ids'],
    },
  },
  {
    title: 'createExecutor: defaults',
    text: 'An agent, a phase or a tool with a value of its own has precedence. [Limits](limits.md) has the bounds that no option changes.',
    of: 'Defaults',
    path: `${host}/defaults.ts`,
  },
  {
    title: 'createExecutor: retention',
    text: "How long the store keeps what ended runs leave. Each is a number of ms, or a text: `'90s'`, `'10m'`, `'12h'`, `'7d'`.",
    of: 'RetentionOptions',
    path: `${host}/options.ts`,
  },
  { title: 'createExecutor: failover', of: 'FailoverOptions', path: `${host}/options.ts` },
  {
    title: 'createExecutor: journal',
    text: 'In place of `true`.',
    of: 'JournalOptions',
    path: `${host}/journal-options.ts`,
  },
  { title: 'createExecutor: ports', of: 'Ports', path: `${host}/options.ts` },
  {
    title: 'defineAgent',
    text: 'An agent may have the tools of the AI SDK as they are; see [I have an AI SDK agent](from-the-ai-sdk.md).',
    of: 'AgentDefinition',
    path: 'src/agent/agent.ts',
    keys: 'Agent',
    inner: ['outputSchema'],
  },
  { title: 'defineAgent: phases', text: 'Each entry of the list.', of: 'Phase', path: 'src/agent/phase.ts' },
  {
    title: 'defineAgent: settings',
    text: 'A phase and a skill may have settings too.',
    of: 'ModelSettings',
    path: 'src/run/model-settings.ts',
  },
  { title: 'defineSkill', of: 'SkillDefinition', path: 'src/agent/skill.ts', with: '<unknown>' },
  {
    title: 'defineTool',
    text: 'The decision about a tool is its `effect`: see [Effects](effects.md).',
    of: 'ToolDefinition',
    path: 'src/tool/define-tool.ts',
    with: '<Mail, unknown>',
  },
  { title: 'defineTool: approval', of: 'Approval', path: 'src/tool/approval.ts', with: '<Refund>' },
  {
    title: 'defineWorkflow',
    of: 'WorkflowDefinition',
    path: 'src/workflow/define.ts',
    with: '<Machine, unknown, unknown>',
  },
  {
    title: 'run and start',
    text: 'The second argument of `executor.run(agent, …)`, `executor.start` and `thread.send`.',
    of: 'Invocation',
    path: 'src/run/request.ts',
  },
  {
    title: 'run and start: a workflow',
    text: 'The second argument where the first is a workflow.',
    of: 'WorkflowInvocation',
    path: 'src/run/request.ts',
    with: '<unknown>',
  },
  { title: 'run and start: options', text: 'The third argument.', of: 'RunOptions', path: `${host}/run-options.ts` },
  {
    title: 'sqliteStore',
    text: 'Of `pawl/stores/sqlite`.',
    of: 'SqliteStoreOptions',
    path: 'src/store/sqlite/sqlite-store.ts',
  },
  {
    title: 'postgresStore',
    text: 'Of `pawl/stores/postgres`.',
    of: 'PostgresStoreOptions',
    path: 'src/store/postgres/postgres-store.ts',
  },
  { title: 'encrypt', of: 'EncryptOptions', path: 'src/codec/encrypt.ts' },
  {
    title: 'recover',
    text: 'Of `executor.recover`.',
    of: 'RecoverOptions',
    path: 'src/executor/lifecycle/stored/recover.ts',
  },
  { title: 'work', text: 'Of `executor.work`.', of: 'WorkOptions', path: 'src/executor/fleet/options.ts' },
  { title: 'drive', text: 'Of `executor.drive`.', of: 'DriveOptions', path: 'src/executor/drive/options.ts' },
  {
    title: 'shutdownOnSignals',
    text: 'Of `executor.shutdownOnSignals`. `executor.shutdown` has `drainMs` alone.',
    of: 'SignalOptions',
    path: `${host}/process-signals.ts`,
  },
  {
    title: 'thread',
    text: 'Of `executor.thread(id, …)`.',
    of: 'ThreadOptions',
    path: 'src/executor/lifecycle/threads/threads.ts',
  },
  {
    title: 'schedules',
    text: 'Each entry of `createExecutor({ schedules })`. It has `cron` or `every`.',
    of: 'Schedule',
    path: 'src/schedules/definition.ts',
  },
  { title: 'rateLimits', of: 'RateLimitsOptions', path: 'src/limits/rate-limits.ts' },
  {
    title: 'rateLimits: rules',
    text: 'Each entry of the list. It has one limit at least.',
    of: 'LimitRule',
    path: 'src/limits/rate-limits.ts',
  },
  { title: 'createBudget', text: 'It has one limit at least.', of: 'BudgetOptions', path: 'src/budget/budget.ts' },
  { title: 'createCompactor', of: 'CompactorOptions', path: 'src/compaction/compactor.ts' },
  { title: 'createCritic', of: 'CriticOptions', path: 'src/critic/critic.ts' },
  { title: 'httpHandler', text: 'Of `pawl/http`.', of: 'HttpOptions', path: 'src/http/handler.ts' },
];
