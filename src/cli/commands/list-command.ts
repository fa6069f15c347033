import type { HistoryFilter, InterruptedRun, KeptRun } from '../../index.ts';
import type { ReadableRun } from '../../record/interrupted.ts';
import { listedStatus } from '../../record/listed-status.ts';
import { nameOfWait } from '../../run/waits/wait.ts';
import { hasCode } from '../../values/error-data.ts';
import type { CliCommand, CommandContext } from '../command.ts';
import { controlExecutor } from '../open/control-executor.ts';
import { openExistingStore, type RunStore } from '../open/open-store.ts';
import { allRuns, pidOf } from '../open/stored-runs.ts';
import { limitOption, oneOf, sinceOf } from '../option-values.ts';
import { exitCodes, Failure, oneLine } from '../ui/failure.ts';
import { ago, shortened } from '../ui/format.ts';
import { table } from '../ui/table.ts';

/** How many ended runs are listed by default. */
const USUAL_LIMIT = 50;

/** Runs `pawl list`: prints the runs that have not ended; with `--all` also the ended ones that the store keeps. */
export const listCommand: CliCommand = async (context) => {
  const { args, output } = context;
  if (!args.all) refuseBounds(context);
  const bounds = boundsOf(args);
  const store = await openExistingStore(args.store);
  const open = await allRuns(store);
  const waiting = args.needsPerson ? open.filter(needsPerson) : open;
  const kept = args.all ? await readKeptRuns(store, bounds) : [];
  const listed = { store, waiting, kept };
  if (args.json) output.printJson(document(listed, args.all), 2);
  else print(context, listed);
  await store.close();
  return exitCodes.ok;
};

interface Listed {
  readonly store: RunStore;
  readonly waiting: readonly InterruptedRun[];
  /** Runs that have ended and whose records the store keeps. */
  readonly kept: readonly KeptRun[];
}

type Bounds = Pick<HistoryFilter, 'since' | 'limit' | 'status' | 'labels'>;

/** Which ended runs are listed. @throws {Failure} for options that no run can fit */
function boundsOf({ since, limit, status, label }: CommandContext['args']): Bounds {
  const at = label?.indexOf('=') ?? 1;
  if (at < 1) throw new Failure(`--label ${JSON.stringify(oneLine(label ?? ''))} is not a label; write name=text`);
  const known = ['ok', 'error', 'timeout', 'cancelled', 'killed'] as const;
  return {
    since: sinceOf(since, Date.now()),
    limit: limitOption(limit, USUAL_LIMIT),
    ...(status === undefined ? {} : { status: status.split(',').map((each) => oneOf('status', each, known)) }),
    ...(label === undefined ? {} : { labels: { [label.slice(0, at)]: label.slice(at + 1) } }),
  };
}

/** The newest ends first; none if the store keeps no records. */
async function readKeptRuns(store: RunStore, bounds: Bounds): Promise<readonly KeptRun[]> {
  try {
    return await controlExecutor(store).history(bounds);
  } catch (error) {
    if (hasCode(error, 'UNSUPPORTED')) return [];
    throw error;
  }
}

function refuseBounds({ args }: CommandContext): void {
  const { since, limit, status, label } = args;
  if ([since, limit, status, label].every((each) => each === undefined)) return;
  throw new Failure('--since, --limit, --status and --label are for runs that have ended; add --all');
}

/** Whether only a person moves a run, or ends its wait. */
function needsPerson(entry: InterruptedRun): boolean {
  if (entry.status === 'parked' || entry.status === 'quarantined' || isGivenBack(entry)) return true;
  return (entry.waits ?? []).some(
    (wait) => wait.kind === 'approval' || wait.kind === 'question' || (wait.kind === 'retry' && wait.needsPerson),
  );
}

/** Whether the last process that took the run lacked something, and none has it now. */
function isGivenBack(entry: ReadableRun): boolean {
  return entry.setup !== undefined && listedStatus(entry) === 'interrupted';
}

function document({ store, waiting, kept }: Listed, all: boolean) {
  return { store: store.path, runs: waiting.map(plain), ...(all ? { ended: kept } : {}) };
}

function plain(entry: InterruptedRun) {
  const pid = pidOf(entry);
  return { ...entry, status: listedStatus(entry), ...(pid === undefined ? {} : { pid }) };
}

function print({ args, output }: CommandContext, { store, waiting, kept }: Listed): void {
  const now = Date.now();
  const rows = [...waiting.map((entry) => cells(entry, now)), ...kept.map((run) => keptCells(run, now))];
  if (rows.length > 0) for (const line of table([heads, ...rows])) output.print(line);
  else if (args.needsPerson) output.say(`no run needs a person in ${store.path}`);
  else output.say(`no runs are open in ${store.path}${args.all ? '' : '; --all lists those that ended'}`);
  if (args.all && kept.length === 0) output.say(NONE_KEPT);
}

/** Says where ended runs would come from. */
const NONE_KEPT =
  "pawl: no ended run is listed: none is kept (`pawl run --audit` and createExecutor({ retention: { records: '7d' } }) keep them; `pawl show` has the ends of a week)";

const heads = ['RUN', 'STATUS', 'AGENT', 'STEPS', 'RECORDED', 'PROMPT'];

function cells(entry: InterruptedRun, now: number): string[] {
  const runId = oneLine(entry.runId);
  if (entry.status === 'quarantined') return [runId, 'unreadable', '', '', '', shortened(oneLine(entry.reason), 100)];
  const pid = pidOf(entry);
  const status = listedStatus(entry) + (pid === undefined ? '' : ` (pid ${pid})`);
  // The status says that it is parked. The code comes first: a long reason is cut.
  const about = entry.reason === undefined ? aboutWaits(entry) : `${entry.code ?? 'parked'}: ${entry.reason}`;
  const agent = oneLine(entry.meta.agentName);
  return [runId, status, agent, String(entry.iteration), ago(entry.updatedAt, now), shortened(oneLine(about), 60)];
}

/** What a run waits for, or what its last process lacked; else its prompt. */
function aboutWaits(entry: ReadableRun): string {
  const { waits = [], meta, setup } = entry;
  if (setup && isGivenBack(entry)) return `given back: a model, its key or a tool is missing (${setup.code})`;
  return waits.length === 0 ? meta.prompt : `waits for ${waits.map(nameOfWait).join(', ')}`;
}

function keptCells(run: KeptRun, now: number): string[] {
  const runId = oneLine(run.runId);
  if (run.status === 'quarantined') return [runId, 'unreadable', '', '', '', shortened(oneLine(run.reason), 100)];
  const { status, meta, iterations, endedAt } = run;
  const prompt = shortened(oneLine(meta.prompt), 60);
  return [runId, status, oneLine(meta.agentName), String(iterations), ago(endedAt, now), prompt];
}
