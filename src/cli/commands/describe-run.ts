import type {
  Executor,
  InterruptedRun,
  OpenWait,
  RunCheckpoint,
  RunEvent,
  RunOutcome,
  WorkflowView,
} from '../../index.ts';
import type { OpenCall, SentCommand } from '../../kit.ts';
import { openWaitsIn } from '../../record/interrupted.ts';
import { listedStatus } from '../../record/listed-status.ts';
import type { Place } from '../../record/run-tree.ts';
import { stepsIn } from '../../record/steps.ts';
import { verdictOf } from '../../record/verdict.ts';
import { outcomeUnknown } from '../../run/open-step.ts';
import { answersIn } from '../../run/waits/sent-answer.ts';
import { nameOfWait } from '../../run/waits/wait.ts';
import { statePaths } from '../../run/workflow/state.ts';
import { pageOfCode } from '../../values/error-codes.ts';
import { isObject } from '../../values/json.ts';
import { type Message, type ToolOutput, toolCallsOf, toolResultsOf } from '../../values/message.ts';
import { makerOf } from '../../values/message-mark.ts';
import type { RunStore } from '../open/open-store.ts';
import { pidOf } from '../open/stored-runs.ts';
import { wayToResume } from '../open/way-to-resume.ts';
import { describeWait, untilWords } from '../ui/describe-wait.ts';
import { oneLine } from '../ui/failure.ts';
import { ago, count, duration, shortened } from '../ui/format.ts';
import { PAWL } from '../ui/shell-words.ts';
import { field } from '../ui/table.ts';
import { answerLines, describeAnswer } from './waits/waiting-command.ts';

/** The most characters of a value in a line of `pawl show`. */
export const WIDTH = 72;

/** Describes how a stored run ended as lines, from its outcome, without its output. */
export function describeOutcome({ runId, status, error, usage, iterations, traceId }: RunOutcome): string[] {
  return [
    field('run', oneLine(runId)),
    field('status', `ended: ${status}`),
    field('steps', String(iterations)),
    field('tokens', String(usage.inputTokens + usage.outputTokens)),
    ...(traceId === undefined ? [] : [field('trace', oneLine(traceId))]),
    ...(error ? [field('error', `${oneLine(error.message)} (${error.code})`), ...seeLine(error.code)] : []),
  ];
}

/** Where the error of a code is explained. */
function seeLine(code: string): string[] {
  const page = pageOfCode(code);
  return page === undefined ? [] : [field('see', page)];
}

/** A run that has not ended. */
export interface Waiting {
  readonly record: RunCheckpoint;
  /** Its line in the list; undefined if it has none. */
  readonly entry: InterruptedRun | undefined;
  readonly place: Place;
  /** The commands that the run has not processed yet, with their times. */
  readonly inbox: readonly SentCommand[];
  /** Its agent module, if this user started it on this machine. */
  readonly module: string | undefined;
  /** Its machine, if it is a workflow. */
  readonly workflow: WorkflowView | undefined;
}

/** Describes the record of an unfinished run as lines: status, prompt, steps so far, open calls, messages that wait. */
export function describeRecord(
  { record, entry, place, inbox, module, workflow }: Waiting,
  store: Pick<RunStore, 'identity' | 'option'>,
): string[] {
  const { meta, iteration, usage, parked, openStep } = record;
  const traceId = entry && 'traceId' in entry ? entry.traceId : undefined;
  const pid = pidOf(entry);
  const status = entry ? listedStatus(entry) : 'interrupted';
  const waits = openWaitsIn(record);
  const isShown = ({ command }: SentCommand) =>
    command.kind === 'answer' && command.answer.how !== 'signal' && waits.some(({ id }) => id === command.waitId);
  const unread = inbox.filter((sent) => !isShown(sent)).map(({ command }) => command);
  return [
    field('run', oneLine(meta.runId)),
    field('status', pid === undefined ? status : `${status}, in process ${pid}`),
    field('agent', oneLine(meta.agentName)),
    ...(meta.parentRunId === '' ? [] : [field('parent', oneLine(meta.parentRunId))]),
    ...(module === undefined ? [] : [field('module', oneLine(module))]),
    ...(workflow ? workflowLines(workflow) : [field('prompt', shortened(oneLine(meta.prompt), WIDTH))]),
    field('steps', String(iteration)),
    field('tokens', String(usage.inputTokens + usage.outputTokens)),
    ...(traceId === undefined ? [] : [field('trace', oneLine(traceId))]),
    field('recorded', ago(record.updatedAt, Date.now())),
    field('worked', duration(record.elapsedMs ?? 0)),
    ...(parked ? [field('parked', oneLine(parked.reason))] : []),
    '',
    ...recordedSteps(record),
    ...(openStep ? ['under way:', ...openStep.calls.map(openCall)] : []),
    ...waits.flatMap((wait) => waitLines(wait, { runId: meta.runId, place, inbox, store })),
    ...(unread.length === 0 ? [] : ['not read yet:', ...told(unread)]),
    ...(isToContinue(entry, place) ? ['', wayOn(meta.runId, place, store)] : []),
  ];
}

/** The state of a workflow's machine, what it takes, and its timers. */
function workflowLines({ state, takes, timers }: WorkflowView): string[] {
  const timer = ({ sendId, dueAt }: WorkflowView['timers'][number]) =>
    field('timer', `${sendId}, ${dueAt === undefined ? 'due' : untilWords(dueAt, Date.now())}`);
  return [
    field('state', statePaths(state).join(', ') || 'its machine has not begun'),
    ...(takes ? [field('takes', takes.join(', ') || 'no event')] : []),
    ...timers.map(timer),
  ];
}

interface WaitsOf extends Pick<Waiting, 'place' | 'inbox'> {
  readonly runId: string;
  readonly store: Pick<RunStore, 'identity' | 'option'>;
}

/** What the run waits for, the answers that it has not read, and the commands that answer. */
function waitLines(wait: OpenWait, { runId, place, inbox, store }: WaitsOf): string[] {
  const answers = answersIn(inbox).get(wait.id) ?? [];
  const rootRunId = place.kind === 'child' ? place.root : runId;
  const next = answerLines({ ...wait, runId, rootRunId, answers }, store);
  return [
    `waits for ${oneLine(nameOfWait(wait))}:`,
    ...[...describeWait(wait, Date.now()), ...next].map((line) => `  ${line}`),
  ];
}

/** Returns whether the run, or the one above it, can be resumed. */
function isToContinue(entry: InterruptedRun | undefined, place: Place): boolean {
  if (!entry) return true;
  const found = verdictOf({ entry, place, agent: 'found' });
  return 'need' in found || found.verdict === 'child';
}

/** Returns a line that says with which command to continue a waiting run. */
export function wayOn(runId: string, place: Place, store: Pick<RunStore, 'identity' | 'option'>): string {
  if (place.kind === 'own') return `continue with: ${wayToResume(store, runId)}`;
  if (place.kind === 'orphan') return `its parent run is gone: \`${PAWL} recover\` ends it as cancelled`;
  return `the top run continues it: ${wayToResume(store, place.root)}`;
}

/** Further commands are only counted. */
const MOST_COMMANDS = 20;

type WaitingCommand = SentCommand['command'];

function told(commands: readonly WaitingCommand[]): string[] {
  const lines = commands
    .slice(0, MOST_COMMANDS)
    .map((command) => `  ${command.kind}: ${shortened(oneLine(said(command)), WIDTH)}`);
  const more = commands.length - lines.length;
  return more === 0 ? lines : [...lines, `  … and ${count(more, 'more', 'more')}`];
}

function said(command: WaitingCommand): string {
  switch (command.kind) {
    case 'steer':
      return command.text;
    case 'cancel':
      return command.reason ?? '';
    case 'answer':
      return `${answerText(command)} to ${command.waitId}`;
    case 'child-ended':
      return command.childRunId;
    case 'event':
      return String(command.event.type);
    default:
      return `a command of version ${command.v}`;
  }
}

function answerText({ answer, by }: Extract<WaitingCommand, { kind: 'answer' }>): string {
  return answer.how === 'signal' ? answer.how : describeAnswer({ ...answer, ...(by ? { by } : {}) });
}

function openCall({ name, input, state, attempt, effect }: OpenCall): string {
  const times = attempt > 1 ? `, ${count(attempt, 'start')}` : '';
  return `  ${oneLine(name)} ${shortened(oneLine(JSON.stringify(input)), WIDTH)}: ${state} (${effect}${times})`;
}

/** Returns the steps of a record as lines: each reply of the model with its calls and results. */
export function recordedSteps(record: RunCheckpoint): string[] {
  const { messages } = record;
  const results = new Map(messages.flatMap(toolResultsOf).map((part) => [part.toolCallId, part.output]));
  return stepsIn(record).flatMap(({ at }, i) => [
    `step ${i + 1}${madeBy(makerOf(messages[at] as Message))}`,
    ...toolCallsOf(messages[at] as Message).map(({ toolName, input, toolCallId }) => {
      const given = shortened(oneLine(JSON.stringify(input)), WIDTH / 2);
      return `  ${oneLine(toolName)} ${given} → ${shortened(oneLine(resultText(results.get(toolCallId))), WIDTH / 2)}`;
    }),
  ]);
}

/** Returns the model that answered, as it follows the beginning of a step's line. */
export function madeBy(model: string | undefined): string {
  return model === undefined ? '' : ` · ${oneLine(model)}`;
}

/** Returns the result of a tool call as text for a description. */
export function resultText(output: ToolOutput | undefined): string {
  if (!isObject(output) || !('value' in output)) return '';
  return typeof output.value === 'string' ? output.value : JSON.stringify(output.value);
}

/** Returns the tools of the `once` calls during which the last process of a run died: they are not repeated. */
export function unknownCalls(
  executor: Executor,
  resumed: Extract<RunEvent, { type: 'run.resumed' }>,
): readonly string[] {
  const progress = executor.get(resumed.runId)?.actor?.getSnapshot().context.progress;
  if (!progress) return [];
  const { openStep, transcript, iteration } = progress;
  if (openStep) return openStep.calls.flatMap(({ name, result }) => (isUnknown(result) ? [name] : []));
  // If these calls were its last ones, the step is over already.
  if (iteration === resumed.iteration) return [];
  let i = -1;
  while (transcript.at(i) && transcript.at(i)?.role !== 'tool') i -= 1;
  const last = transcript.at(i);
  return (last ? toolResultsOf(last) : []).flatMap(({ toolName, output }) => (isUnknown(output) ? [toolName] : []));
}

function isUnknown(output: ToolOutput | undefined): boolean {
  return output?.type === 'error-text' && output.value === outcomeUnknown;
}
