import type { AuditedRun, InterruptedRun } from '../../index.ts';
import type { ReadableRun } from '../../record/interrupted.ts';
import { listedStatus } from '../../record/listed-status.ts';
import { nameOfWait } from '../../run/waits/wait.ts';
import type { Command, CommandContext } from '../command.ts';
import { type AuditFile, auditToAsk, pathBeside } from '../open/audit-file.ts';
import { isStoreThere, openExistingStore, type RunStore } from '../open/open-store.ts';
import { allRuns, pidOf } from '../open/stored-runs.ts';
import { limitOf, sinceOf } from '../option-values.ts';
import { exitCodes, Failure, oneLine } from '../ui/failure.ts';
import { ago, shortened } from '../ui/format.ts';
import { table } from '../ui/table.ts';

/** How many runs of an audit are listed by default. */
const USUAL_LIMIT = 50;

/** Runs `pawl list`: prints the runs that have not ended; with `--all` also the ended ones of an audit. */
export const listCommand: Command = async (context) => {
  const { args, output } = context;
  const audited = args.all ? await auditedRuns(context) : undefined;
  if (!args.all) refuseBounds(context);
  // An audit is useful even if the store no longer exists.
  const store = audited && !isStoreThere(args.store) ? undefined : await openExistingStore(args.store);
  const waiting = store ? await allRuns(store) : [];
  const known = new Set(waiting.map(({ runId }) => runId));
  const others = (audited?.runs ?? []).filter(({ runId }) => !known.has(runId));
  if (args.json) output.printJson(document({ store, waiting, audited, others }), 2);
  else print(context, { store, waiting, audited, others });
  await audited?.audit.close();
  await store?.close();
  return exitCodes.ok;
};

interface Listed {
  readonly store: RunStore | undefined;
  readonly waiting: readonly InterruptedRun[];
  readonly audited: { readonly audit: AuditFile } | undefined;
  /** Runs of the audit that have no record. */
  readonly others: readonly AuditedRun[];
}

function refuseBounds({ args }: CommandContext): void {
  if (args.since === undefined && args.limit === undefined) return;
  throw new Failure('--since and --limit are for runs of an audit; add --all');
}

async function auditedRuns(context: CommandContext) {
  const { since, limit, store } = context.args;
  const filter = { since: sinceOf(since, Date.now()), limit: limitOf(limit, USUAL_LIMIT) };
  const audit = auditToAsk(context);
  if (audit) return { audit, runs: await audit.runs(filter) };
  context.output.say(`pawl: there is no audit ${pathBeside(store)}; ended runs are not listed`);
  return undefined;
}

function document({ store, waiting, audited, others }: Listed) {
  const runs = waiting.map(plain);
  const all = audited ? { audit: audited.audit.path, audited: others } : {};
  return { store: store?.path ?? null, runs, ...all };
}

function plain(entry: InterruptedRun) {
  const pid = pidOf(entry);
  return { ...entry, status: listedStatus(entry), ...(pid === undefined ? {} : { pid }) };
}

function print({ output }: CommandContext, { store, waiting, audited, others }: Listed): void {
  const now = Date.now();
  const rows = [...waiting.map((entry) => cells(entry, now)), ...others.map((run) => auditedCells(run, now))];
  const nowhere = audited ? ` or are known in ${audited.audit.path}` : '';
  if (rows.length > 0) for (const line of table([heads, ...rows])) output.print(line);
  else output.say(`no runs are waiting in ${store?.path ?? 'any store'}${nowhere}`);
}

const heads = ['RUN', 'STATUS', 'AGENT', 'STEPS', 'RECORDED', 'PROMPT'];

function cells(entry: InterruptedRun, now: number): string[] {
  const runId = oneLine(entry.runId);
  if (entry.status === 'quarantined') return [runId, 'unreadable', '', '', '', shortened(oneLine(entry.reason), 100)];
  const pid = pidOf(entry);
  const status = listedStatus(entry) + (pid === undefined ? '' : ` (pid ${pid})`);
  const about = entry.reason === undefined ? aboutWaits(entry) : `parked: ${entry.reason}`;
  const agent = oneLine(entry.meta.agentName);
  return [runId, status, agent, String(entry.iteration), ago(entry.updatedAt, now), shortened(oneLine(about), 60)];
}

/** What a run waits for; else its prompt. */
function aboutWaits({ waits = [], meta }: ReadableRun): string {
  return waits.length === 0 ? meta.prompt : `waits for ${waits.map(nameOfWait).join(', ')}`;
}

function auditedCells(run: AuditedRun, now: number): string[] {
  const status = run.endedAt === undefined ? `${run.status}, no record` : run.status;
  const { runId, agentName, iterations, seenAt, prompt } = run;
  return [
    oneLine(runId),
    status,
    oneLine(agentName),
    String(iterations),
    ago(seenAt, now),
    shortened(oneLine(prompt), 60),
  ];
}
