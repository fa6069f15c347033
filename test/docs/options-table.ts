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
  /** Fields of the interface that no user sets. */
  readonly inner?: readonly string[];
}

const host = 'src/executor/host';

export const optionSections: readonly OptionSection[] = [
  {
    title: 'createExecutor',
    text: 'An executor without options can be made. It runs agents that name a model of their own, and no run is durable.',
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
];
