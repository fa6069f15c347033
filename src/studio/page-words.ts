// Texts that are the same for each run. The server has room for them: the page must stay small (decision 40).
import { NPX_PAWL } from '../values/texts/command-name.ts';
import type { Allowed, PageWords, StoreParts } from './wire.ts';

/** What an effect means for a call that may run. */
const effects: PageWords['effects'] = {
  once: [
    'Runs at most once.',
    'Pawl never repeats this call. If the process dies in the middle, its outcome is called unknown and the model reads that.',
  ],
  idempotent: [
    'May run again with the same key.',
    'After a crash in the middle it runs again; the second time changes nothing.',
  ],
  read: ['Reads only.', 'After a crash it runs again.'],
};

const ends: PageWords['ends'] = {
  approve: 'approved',
  deny: 'denied',
  answer: 'answered',
  signal: 'its event came',
  expire: 'no answer came in time',
  expired: 'no answer came in time',
  wake: 'woken',
  ended: 'the child run has ended',
  withdrawn: 'withdrawn',
};

const expiry: PageWords['expiry'] = {
  deny: ['it is', 'denied'],
  fail: ['the run', 'fails'],
  park: ['the run is', 'parked'],
  question: ['the tool reads that', 'nothing came'],
  event: ['the tool reads that', 'nothing came'],
  retry: ['the model is', 'asked again'],
  limit: ['the model is', 'asked'],
  timer: ['the run', 'continues'],
  child: ['the run', 'continues'],
};

/** Those that begin with a space follow the name of a tool. */
const stages: PageWords['stages'] = {
  reader: 'Studio only reads here. Start it with --write to answer.',
  soon: ' as soon as a process takes up the run.',
  stored: 'Stored: your answer survives a crash from here on',
  pending: 'Sent: the process that takes up the run checks it, and may refuse it',
  next: 'Next: a process takes up the run',
  vote: 'Each person has one vote.',
  unread: '. That is stored, and no process has read it. If the run refuses it, another answer counts.',
  changed: 'What will run: the input as it was changed',
  unchanged: 'The input before it was changed',
  changedBy: 'What the model asked for; changed by ',
  denied: 'The model reads that it was denied',
  retried: 'The model is asked again',
  woken: 'The run continues',
  failed: ' has failed: the model reads why',
  done: ' is done, and its result recorded',
  answered: ' continues with the answer',
  runs: ' runs',
  hasFailed: ' has failed.',
  isDone: ' is done.',
  recorded: ' has a recorded result: the run shows it',
  isRecorded: ' has a result.',
  notRun: 'What does not run',
  isRunning: ' runs.',
  isDenied: ' does not run.',
  isWaiting: ' has not started yet.',
  isAsking: ' has not continued yet.',
  steers: 'The model reads it before its next turn',
  ends: ' ends for good',
  below: ', and each run below it',
  parks: 'is not taken up by any process until a person unparks it.',
  fork: 'Another run begins with the steps up to here. What do its calls with an effect do: does a person decide (ask), are they refused, or do they run (live)? The next process with its agent continues it.',
  many: 'The next process continues each of them, with all its attempts. Is the cause of their parking removed?',
  none: 'The record does not have it.',
  choose: 'Choose a row to see its input, its output and its ledger.',
  own: 'The model’s own words, shown as text. Nothing in them is rendered, followed or run.',
  cancelled: 'Cancelled',
  over: 'It had ended before: ',
  cancels: 'Stored: the process that works on it ends it',
  parked: 'Parked: no process takes it up',
  unparked: 'Unparked: the next process continues it',
  reads: 'Taken up: the model reads it before its next turn',
  ended: 'The run has ended',
  read: 'Taken up: the model reads it in its next turn',
  steered: 'Stored: the run reads it before its next turn',
};

const keys: PageWords['keys'] = [
  ['j k ⏎', 'next, previous, open'],
  ['/ Esc', 'filter, back'],
  ['g r  g i  g f', 'runs, inbox, fan-outs'],
  ['a', 'to the answer that is wanted'],
  ['⌘⏎ Ctrl⏎', 'approve, after you have read'],
  ['s', 'steer'],
  ['c', 'fold or open the chart'],
  ['[ ]', 'step before, step after'],
  ['?', 'these keys'],
];

/** Where an ended run comes from: else it leaves the list with its end. */
const HISTORY = `// in the agent's module, for pawl run: an ended run stays for a day
export const retention = { records: '1d' };
// in a program
createExecutor({ retention: { records: '1d' }, … });`;

/** What is said in a view that has nothing to show, and the call that fills it. */
const empty = {
  runs: {
    text: 'No run yet',
    more: 'A run is here as soon as this store has one. It leaves the list with its end, unless its record is kept:',
    call: `// or: ${NPX_PAWL} run agent.ts "Hello"\nawait executor.start(agent, { runId: 'first', prompt: 'Hello' });\n\n${HISTORY}`,
  },
  filtered: {
    text: 'No run fits the filter',
    more: 'Clear the filter to see all runs. An ended run is here only while its record is kept:',
    call: HISTORY,
  },
  waits: {
    text: 'Nothing waits for you',
    more: 'A run is here while a call needs an approval, or asks a question with context.ask().',
    call: "defineTool({ name: 'refund', needsApproval: true, … })",
  },
  gone: {
    text: 'Nothing waits here any more',
    more: 'It was answered, its time was over, or its run has ended. Press k for the one before.',
  },
  fanOuts: {
    text: 'No fan-out yet',
    more: 'A fan-out asks several models the same. Studio shows those whose files are below its folder.',
    call: `${NPX_PAWL} ask 'Which is better?' --models a,b`,
  },
  threads: { text: 'No conversation yet', call: "executor.thread('chat-42', { agent }).send({ text })" },
  doctor: {
    text: 'No run needs a person',
    more: 'Every run in this store has ended. The same table is printed by:',
    call: `${NPX_PAWL} doctor --json`,
  },
} satisfies PageWords['empty'];

const MADE_OF = 'the timeline is made of the record and its messages, without times.';

const noThreads = {
  text: 'This store keeps no threads',
  more: "Conversations need a store with threads: all of Pawl's have them.",
};

const notKept = 'A run is here until it ends: this store keeps no record of an ended run.';

/** Returns the texts of the page for a store and what may be done to it. */
export function pageWords(parts: StoreParts, may: Allowed): PageWords {
  return {
    effects,
    ends,
    expiry,
    stages,
    keys,
    noJournal: parts.journal
      ? `This run has no journal: createExecutor({ journal: true }) of its program keeps one. Here ${MADE_OF}`
      : `This store has no journal: ${MADE_OF}`,
    empty: {
      ...empty,
      ...(parts.threads ? {} : { threads: noThreads }),
      ...(parts.history
        ? {}
        : { runs: { ...empty.runs, more: notKept }, filtered: { ...empty.filtered, more: notKept, call: '' } }),
    },
    may: may.write
      ? may.apply
        ? 'answers and file changes are allowed'
        : 'answers are allowed, file changes are not'
      : 'read-only: --write allows answers',
  };
}
