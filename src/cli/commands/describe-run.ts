import type {
  Executor,
  InterruptedRun,
  OpenWait,
  RunCheckpoint,
  RunEvent,
  RunOutcome,
  SetupFault,
  WorkflowView,
} from '../../index.ts';
import type { OpenCall, SentCommand } from '../../kit.ts';
import { isAwaitingEvents, openWaitsIn } from '../../record/interrupted.ts';
import { listedStatus } from '../../record/listed-status.ts';
import type { TreePlace } from '../../record/run-tree.ts';
import { stepsIn } from '../../record/steps.ts';
import { type RunVerdict, verdictOfRun } from '../../record/verdict.ts';
import { staysParked } from '../../run/fields.ts';
import { outcomeUnknown } from '../../run/open-step.ts';
import { answersIn } from '../../run/waits/sent-answer.ts';
import { nameOfWait, type SettledWait } from '../../run/waits/wait.ts';
import { restText, statePaths } from '../../run/workflow/state.ts';
import { pageOfCode } from '../../values/error-codes.ts';
import { isObject } from '../../values/json.ts';
import { type Message, type ToolOutput, toolCallsOf, toolResultsOf } from '../../values/message.ts';
import { makerOf } from '../../values/message-mark.ts';
import type { RunStore } from '../open/open-store.ts';
import { pidOf } from '../open/stored-runs.ts';
import { wayToResume } from '../open/way-to-resume.ts';
import { commandsFor, describeWait, untilWords } from '../ui/describe-wait.ts';
import { oneLine } from '../ui/failure.ts';
import { ago, count, dollars, duration, shortened } from '../ui/format.ts';
import { lineFor, PAWL } from '../ui/shell-words.ts';
import { field } from '../ui/table.ts';
import { describeVerdict, todoForParked } from './obstacle.ts';
import { answerLines, describeAnswer } from './waits/waiting-command.ts';

/** The most characters of a value in a line of `pawl show`. */
export const WIDTH = 72;

/** Describes how a stored run ended as lines, from its outcome, without its output. */
export function describeOutcome({ runId, status, error, usage, spend, iterations, traceId }: RunOutcome): string[] {
  return [
    field('run', oneLine(runId)),
    field('status', `ended: ${status}`),
    field('steps', String(iterations)),
    field('tokens', String(usage.inputTokens + usage.outputTokens)),
    ...spentLine(spend),
    ...(traceId === undefined ? [] : [field('trace', oneLine(traceId))]),
    ...(error ? [field('error', `${oneLine(error.message)} (${error.code})`), ...seeLine(error.code)] : []),
  ];
}

/** Returns a line for what a run has cost under a budget. */
export function spentLine(spend: RunOutcome['spend']): string[] {
  return spend && spend.usd > 0 ? [field('spent', dollars(spend.usd))] : [];
}

/** Returns a line for the run that this one was forked from, and one for each retry: when, after how many steps, and what had ended it. */
export function describeLives({ forkedFrom, retries = [] }: Pick<RunCheckpoint, 'forkedFrom' | 'retries'>): string[] {
  const origin = forkedFrom ? [field('fork', `of ${oneLine(forkedFrom.runId)}, at step ${forkedFrom.at}`)] : [];
  const lines = retries.map(({ at, steps, error }) =>
    field('retried', `${ago(at, Date.now())}, after ${count(steps, 'step')}; ${oneLine(error.code)} had ended it`),
  );
  return [...origin, ...lines];
}

/** Describes a run whose record cannot be read as lines: why, and what to do. */
export function describeUnreadable(runId: string, why: RunVerdict): string[] {
  const lines = [field('run', oneLine(runId)), field('status', why.verdict), field('blocked', describeVerdict(why))];
  return why.code === undefined ? lines : [...lines, ...seeLine(why.code)];
}

/** Where the error of a code is explained. */
function seeLine(code: string): string[] {
  const page = pageOfCode(code);
  return page === undefined ? [] : [field('see', page)];
}

/** A run that has not ended. */
export interface WaitingFacts {
  readonly record: RunCheckpoint;
  /** Its line in the list; undefined if it has none. */
  readonly entry: InterruptedRun | undefined;
  readonly place: TreePlace;
  /** The commands that the run has not processed yet, with their times. */
  readonly inbox: readonly SentCommand[];
  /** Its agent module, if this user started it on this machine. */
  readonly module: string | undefined;
  /** What the next recovery does with it; undefined if that is not known. */
  readonly why: RunVerdict | undefined;
  /** Its machine, if it is a workflow. */
  readonly workflow: WorkflowView | undefined;
}

/** Describes the record of an unfinished run as lines: status, prompt, steps so far, open calls, messages that wait. */
export function describeRecord(
  { record, entry, place, inbox, module, why, workflow }: WaitingFacts,
  store: Pick<RunStore, 'identity' | 'option'>,
): string[] {
  const { meta, iteration, usage, spend, parked, openStep, setup } = record;
  const traceId = entry && 'traceId' in entry ? entry.traceId : undefined;
  const pid = pidOf(entry);
  const status = entry ? listedStatus(entry) : 'interrupted';
  const waits = openWaitsIn(record);
  const isResting = !parked && isAwaitingEvents(record);
  // The other reasons have a line of their own.
  const isBlocked = !parked && isBlocking(why);
  const isShown = ({ command }: SentCommand) =>
    command.kind === 'answer' && command.answer.how !== 'signal' && waits.some(({ id }) => id === command.waitId);
  const unread = inbox.filter((sent) => !isShown(sent)).map(({ command }) => command);
  return [
    field('run', oneLine(meta.runId)),
    field('status', pid === undefined ? status : `${status}, in process ${pid}`),
    field('agent', oneLine(meta.agentName)),
    ...(meta.parentRunId === '' ? [] : [field('parent', oneLine(meta.parentRunId))]),
    ...(module === undefined ? [] : [field('module', oneLine(module))]),
    ...(workflow ? workflowLines(workflow, isResting) : [field('prompt', shortened(oneLine(meta.prompt), WIDTH))]),
    field('steps', String(iteration)),
    field('tokens', String(usage.inputTokens + usage.outputTokens)),
    ...spentLine(spend),
    ...(traceId === undefined ? [] : [field('trace', oneLine(traceId))]),
    field('recorded', ago(record.updatedAt, Date.now())),
    field('worked', duration(record.elapsedMs ?? 0)),
    ...describeLives(record),
    ...(parked ? [field('parked', `${oneLine(parked.reason)} (${oneLine(parked.code)})`)] : []),
    ...(setup && !parked ? [field('setup', lackingWords(setup))] : []),
    ...(isBlocked && why ? [field('blocked', describeVerdict(why))] : []),
    '',
    ...recordedSteps(record),
    ...decisionsIn(record),
    ...(openStep ? ['under way:', ...openStep.calls.map(openCall)] : []),
    ...waits.flatMap((wait) => waitLines(wait, { runId: meta.runId, place, inbox, store })),
    ...(unread.length === 0 ? [] : ['not read yet:', ...told(unread)]),
    ...(!isResting && !isBlocked && isToContinue(entry, place) ? ['', wayOn(meta.runId, place, store)] : []),
    ...(parked ? ['', wayToFree(meta.runId, parked.code, store)] : []),
    ...(isResting && workflow?.takes?.length !== 0 ? ['', wayToSend(meta.runId, workflow, store)] : []),
  ];
}

/** Returns a line that says what to do about a parked run. */
function wayToFree(runId: string, code: string, { option }: Pick<RunStore, 'option'>): string {
  if (!staysParked(code)) return `next: ${todoForParked(code)}`;
  return `when its cause is mended, continue with: ${lineFor('unpark', [runId], option)}`;
}

/** What the last process that took the run lacked. */
function lackingWords({ code, since }: SetupFault): string {
  return `a model, its key or a tool is missing (${oneLine(code)}), since ${ago(since, Date.now())}: set it, and start the process again`;
}

/** The state of a workflow's machine, what it takes, and its timers. */
function workflowLines({ state, takes, timers }: WorkflowView, isResting: boolean): string[] {
  const timer = ({ sendId, dueAt }: WorkflowView['timers'][number]) =>
    field('timer', `${sendId}, ${dueAt === undefined ? 'due' : untilWords(dueAt, Date.now())}`);
  return [
    field('state', statePaths(state).join(', ') || 'its machine has not begun'),
    ...(takes ? [field('takes', takes.join(', ') || 'no event')] : []),
    ...timers.map(timer),
    ...(isResting ? [field('waits', oneLine(restText(state, takes)))] : []),
  ];
}

/** Returns a line that says with which command to send an event to a workflow that waits for one. */
function wayToSend(runId: string, workflow: WorkflowView | undefined, { option }: Pick<RunStore, 'option'>): string {
  const type = workflow?.takes?.find((each) => !each.includes('*')) ?? '<type>';
  return `continue with: ${lineFor('send', [runId, type], option)}`;
}

interface WaitsOf extends Pick<WaitingFacts, 'place' | 'inbox'> {
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
function isToContinue(entry: InterruptedRun | undefined, place: TreePlace): boolean {
  if (!entry) return true;
  const found = verdictOfRun({ entry, place, agent: 'found' });
  return 'need' in found || found.verdict === 'child';
}

/** Whether a start of the run would not continue it. */
function isBlocking(why: RunVerdict | undefined): boolean {
  return why !== undefined && ['skipped', 'fails', 'parked'].includes(why.verdict);
}

/** Returns why a run does not continue, as the next recovery would say it, and the command that does something about it. */
export function standingOf(
  { record, entry, place, why }: Pick<WaitingFacts, 'record' | 'entry' | 'place' | 'why'>,
  store: Pick<RunStore, 'identity' | 'option'>,
): { readonly why?: RunVerdict; readonly next?: string } {
  const { runId } = record.meta;
  const listed = entry && verdictOfRun({ entry, place, next: () => ({ record, parks: undefined, now: Date.now() }) });
  const found = isBlocking(why) ? why : listed;
  if (!found || 'need' in found) return { next: wayToResume(store, runId) };
  const [wait] = openWaitsIn(record);
  const next: { readonly [verdict in RunVerdict['verdict']]?: string | undefined } = {
    parked: lineFor('unpark', [runId], store.option),
    waits:
      wait &&
      (wait.kind === 'retry'
        ? lineFor('retry', [runId], store.option)
        : commandsFor({ ...wait, runId }, store.option)[0]),
    child: place.kind === 'child' ? wayToResume(store, place.root) : undefined,
    resumes: wayToResume(store, runId),
  };
  const command = next[found.verdict];
  return { why: found, ...(command === undefined ? {} : { next: command }) };
}

/** Returns a line that says with which command to continue a waiting run. */
export function wayOn(runId: string, place: TreePlace, store: Pick<RunStore, 'identity' | 'option'>): string {
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

/** Returns a line for each of the last waits of a run that a person ended: who, how and when. */
export function decisionsIn({ waiting }: RunCheckpoint): string[] {
  return (waiting?.settled ?? []).flatMap(decidedLine);
}

function decidedLine({ kind, how, by, at, note, votes = [] }: SettledWait): string[] {
  const first = votes.slice(0, -1).map((vote) => decision(`${kind}, ${how}`, vote));
  if (by === undefined && note === undefined) return first;
  return [...first, decision(`${kind}, ${how}`, { by, at, note })];
}

interface Decided extends Pick<SettledWait, 'at'> {
  readonly by?: SettledWait['by'] | undefined;
  readonly note?: string | undefined;
}

function decision(what: string, { by, at, note }: Decided): string {
  const said = note === undefined ? '' : `: ${shortened(oneLine(note), WIDTH)}`;
  return `decided: ${what} by ${oneLine(by?.name || by?.id || 'a person')}, ${ago(at, Date.now())}${said}`;
}

/** Returns the model that answered, as it follows the beginning of a step's line. */
export function madeBy(model: string | undefined): string {
  return model === undefined ? '' : ` · ${oneLine(model)}`;
}

/** Returns the result of a tool call as text for a description. */
export function resultText(output: ToolOutput | undefined): string {
  if (output?.type === 'execution-denied') return output.reason ? `denied: ${output.reason}` : 'denied';
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
