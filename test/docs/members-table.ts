/** What one kind of object can do, or what it holds. */
export interface MemberSection {
  readonly title: string;
  /** Where one gets it, or when it comes. */
  readonly text: string;
  readonly of: string;
  readonly path: string;
  /** The members by subject, each once; absent = one table in the order of the code. */
  readonly subjects?: Readonly<Record<string, readonly string[]>>;
}

const lifecycle = 'src/executor/lifecycle';

export const memberSections: readonly MemberSection[] = [
  {
    title: 'Executor',
    text: '`createExecutor({ … })` makes one. One per process is enough, and any number of them may share a store.',
    of: 'Executor',
    path: 'src/executor/executor.ts',
    subjects: {
      'Begin runs': ['run', 'start', 'thread', 'logic'],
      'Continue runs': ['recover', 'work', 'drive', 'retry', 'fork', 'due'],
      'Look at runs': [
        ...['get', 'find', 'explain', 'list', 'waiting', 'history', 'messages', 'events', 'threads', 'runs', 'run$'],
      ],
      'Change runs': ['control', 'signal', 'park', 'unpark', 'erase'],
      'Look at the executor': ['stats', 'health', 'schedules', 'agent', 'capabilities'],
      'End it': ['shutdown', 'shutdownOnSignals'],
    },
  },
  {
    title: 'Run',
    text: '`await executor.start(…)` returns one. `executor.run(…)` returns its `result` alone.',
    of: 'Run',
    path: 'src/executor/run/handle.ts',
  },
  {
    title: 'Control',
    text: '`executor.control(runId)` returns one, in any process, for a run that is live in any process or stored.',
    of: 'RunControl',
    path: `${lifecycle}/control.ts`,
  },
  {
    title: 'Thread',
    text: '`executor.thread(id, { agent })` returns one: a conversation.',
    of: 'Thread',
    path: `${lifecycle}/threads/threads.ts`,
  },
  { title: 'Worker', text: '`executor.work()` returns one.', of: 'Worker', path: 'src/executor/fleet/fleet.ts' },
  {
    title: 'Tool context',
    text: 'The second argument of `execute` in `defineTool`.',
    of: 'ToolContext',
    path: 'src/tool/define-tool.ts',
  },
];

export const resultSections: readonly MemberSection[] = [
  {
    title: 'Fields of every result',
    text: '`executor.run(…)` and `run.result` resolve to one, and never reject. It also has `messages`, the transcript.',
    of: 'EndedFacts',
    path: 'src/run/result.ts',
  },
  { title: 'With the status `ok`', text: 'The run has its answer.', of: 'OkOutput', path: 'src/run/result.ts' },
  {
    title: 'With the status `waiting`',
    text: 'The run is suspended in its store. It continues in any process when one of its waits is over.',
    of: 'WaitingOutput',
    path: 'src/run/result.ts',
  },
  { title: 'With any other status', text: 'The error is the reason.', of: 'FailedOutput', path: 'src/run/result.ts' },
];

/** Types of words, each with its words in its docstring. */
export const wordSections: readonly MemberSection[] = [
  { title: 'status of a result', text: 'How the run ended.', of: 'RunStatus', path: 'src/run/finalize.ts' },
  {
    title: 'accepted of a run',
    text: 'How `start` found the run. A server answers 202, 200 or 409 by it.',
    of: 'Accepted',
    path: 'src/executor/run/handle.ts',
  },
  {
    title: 'status in a list',
    text: 'Of `executor.list()` and `executor.find()`; the latter also knows `queued`, a message of a thread that waits for its turn, and `ended`.',
    of: 'ListedStatus',
    path: 'src/run/result.ts',
  },
];
