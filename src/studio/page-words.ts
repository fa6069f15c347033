// Texts that are the same for each run. The server has room for them: the page must stay small (decision 40).
import { NPX_PAWL } from '../values/texts/command-name.ts';
import type { AllowedActions, PageWords, StoreParts } from './wire.ts';

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
  note: 'Note for those who read the decision later; the model does not read it',
  vote: 'Each person has one vote.',
  unread: 'That is stored, and no process has read it. If the run refuses it, another answer counts.',
  ran: 'Exactly what ran',
  changed: 'What runs: the input as it was changed',
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
  fork: 'Another run begins with the steps up to here, and the next process with its agent continues it. What becomes of its calls with an effect? ask: a person decides. refuse: they do not run. live: they run.',
  many: 'The next process continues each of them, with all its attempts. Is the cause of their parking removed?',
  none: 'The record does not have it.',
  choose: 'Choose a row to see its input, its output and its ledger.',
  own: 'The model’s own words, shown as text. Nothing in them is rendered, followed or run.',
  cancelled: 'Cancelled',
  over: 'It had ended before: ',
  cancels: 'Stored: the process that works on it ends it',
  parked: 'Parked: no process takes it up',
  unparked: 'Unparked: the next process continues it',
  freed: 'Unparked: the next process continues them',
  reads: 'Taken up: the model reads it before its next turn',
  ended: 'The run has ended',
  read: 'Taken up: the model reads it in its next turn',
  steered: 'Stored: the run reads it before its next turn',
  paid: ': the provider may have been paid for an answer that the record never got, and the numbers of this run do not have.',
  digest: '. Another input than this one would be asked again, never run.',
  signals: 'It ends when your code sends the event:',
  planned: 'planned by the model’s message',
  lost: 'the process ended while it ran: outcome unknown, not repeated',
  released: 'claim released: no process waits',
  noSteps: 'No step is recorded yet.',
  withoutThem: 'JSON, without messages, inputs and images',
  unreadCommands: 'Commands that it has not read',
  turnAgain: 'a model turn under way is asked again',
  inCall: 'ended in the middle of a call',
  newInput: 'A person changed the input: show it',
  mayHaveAsked: 'A process that died may have asked for',
  inFile: 'more characters are in its file.',
  budgetOf: 'Budget of its caller, within',
  noResult: 'no result is recorded yet',
  callsRun: 'nothing yet: its calls run',
  nextOne: 'Another request waits for you: show it',
  why: 'Why? The model reads it',
  becomes: 'What becomes of each run',
  newestFirst: 'Turns, the newest first',
  asksAgain: 'It asks again: show it',
  rankedBy: 'Ranked so by its judge:',
  moreLines: 'more lines are not shown.',
  oneLoop: 'the one loop of an agent without phases',
  compacted: 'compacted: it stands for earlier messages',
  noCost: 'Without a budget with prices no cost is recorded.',
  noTokens: 'Tokens a step come from the journal; this run has none.',
  noApply: 'needs --apply; shown without the files that it changes',
  applied: 'Applied: all files, together',
  undone: 'Taken back: the files are as they were',
  applies: 'All of them are written, or none. It can be taken back.',
  reload: 'It has changed meanwhile: load it once more.',
  noWait: 'The run does not wait for this any more.',
  toEnd: 'Read the input to its end first',
  another: 'The input is another one by now.',
  erased: 'This run is not in the store: it was erased, or was never there.',
  unknown: 'This Studio does not know the workflow: with its module it draws the machine.',
};

const needs: PageWords['needs'] = {
  value: 'It needs a value.',
  number: 'It needs a number.',
  integer: 'It needs a whole number.',
  choice: 'It needs a choice.',
  flag: 'It needs true or false.',
  json: 'It is not valid JSON.',
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
export function pageWords(parts: StoreParts, may: AllowedActions): PageWords {
  return {
    effects,
    ends,
    expiry,
    stages,
    needs,
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
