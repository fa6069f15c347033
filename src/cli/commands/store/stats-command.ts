import { type AuditTotal, createAudit, type RunStats } from '../../../index.ts';
import type { ReadableRun } from '../../../record/interrupted.ts';
import { listedStatus } from '../../../record/listed-status.ts';
import type { CliCommand, CommandContext } from '../../command.ts';
import { controlExecutor } from '../../open/control-executor.ts';
import { openExistingStore, type RunStore } from '../../open/open-store.ts';
import { allRuns } from '../../open/stored-runs.ts';
import { oneOf, sinceOf } from '../../option-values.ts';
import { exitCodes, Failure, oneLine } from '../../ui/failure.ts';
import { ago, dollars, duration, grouped, shortened } from '../../ui/format.ts';
import { PAWL } from '../../ui/shell-words.ts';
import { table } from '../../ui/table.ts';

/**
 * Runs `pawl stats`: prints how many runs have not ended, and the totals of those that ended while an audit was on; or what fills the
 * store.
 */
export const statsCommand: CliCommand = async (context) => {
  const { args, output } = context;
  const by = oneOf('by', args.by, ['day', 'agent', 'caller']);
  const since = sinceOf(args.since, Date.now());
  const store = await openExistingStore(args.store);
  if (args.rows) return printRows(context, store);
  if (args.now !== undefined) return printNow(context, store, keyOf(args.now));
  const now = await controlExecutor(store).stats();
  const totals = await createAudit({ store }).totals({ by, since });
  if (!args.json) output.print(sentenceOf(now));
  if (args.json) output.printJson({ store: store.path, now, by, totals }, 2);
  else if (totals.length === 0)
    output.say(
      `no ended run is counted in ${store.path}${since === undefined ? `; \`${PAWL} run --audit\` counts one` : ' since then'}`,
    );
  else
    for (const line of table([
      [by.toUpperCase(), ...heads],
      ...totals.map((total) => [nameOf(total), ...cells(total)]),
    ]))
      output.print(line);
  await store.close();
  return exitCodes.ok;
};

/** Says what has not ended. @example sentenceOf(stats) // 'now: 2 live · 40 due, the oldest for 5 min · 3 waiting (3 approval) · 0 parked' */
function sentenceOf({ live, due, dueAgeMs, waiting, parked }: RunStats): string {
  const kinds = Object.entries(waiting).filter(([, waits]) => waits > 0);
  const all = kinds.reduce((sum, [, waits]) => sum + waits, 0);
  const which = kinds.map(([kind, waits]) => `${grouped(waits)} ${oneLine(kind)}`).join(', ');
  const parts = [
    `${grouped(live)} live`,
    `${grouped(due)} due${due === 0 ? '' : `, the oldest for ${duration(dueAgeMs)}`}`,
    `${grouped(all)} waiting${which && ` (${which})`}`,
    `${grouped(parked)} parked`,
  ];
  return `now: ${parts.join(' · ')}`;
}

type KeyOf = (run: ReadableRun) => string | undefined;

/** Returns what the runs are counted by. @throws {Failure} */
function keyOf(by: string): KeyOf {
  if (by === 'agent') return ({ meta }) => meta.agentId;
  if (by === 'caller') return ({ meta }) => meta.callerId;
  const label = by.startsWith('label:') ? by.slice('label:'.length) : '';
  if (label === '') throw new Failure(`--now ${JSON.stringify(oneLine(by))} is none of agent, caller, label:<name>`);
  return ({ labels = {} }) => (Object.hasOwn(labels, label) ? labels[label] : undefined);
}

const statuses = ['live', 'interrupted', 'waiting', 'parked', 'quarantined'] as const;

type Open = Record<(typeof statuses)[number], number> & {
  readonly key: string;
  readonly codes: Record<string, number>;
};

/** Prints how many runs have not ended, by what they are counted by: the most first. */
async function printNow({ args, output }: CommandContext, store: RunStore, key: KeyOf): Promise<number> {
  const found = new Map<string, Open>();
  for (const run of await allRuns(store)) {
    const of = (run.status === 'quarantined' ? undefined : key(run)) ?? '';
    const open = found.get(of) ?? { ...noRuns, key: of, codes: Object.create(null) };
    const status = listedStatus(run);
    open[status] += 1;
    if (status === 'parked' && 'code' in run && run.code) open.codes[run.code] = (open.codes[run.code] ?? 0) + 1;
    found.set(of, open);
  }
  const all = (open: Open) => statuses.reduce((sum, status) => sum + open[status], 0);
  const runs = [...found.values()].sort((a, b) => all(b) - all(a) || (a.key < b.key ? -1 : 1));
  if (args.json) output.printJson({ store: store.path, runs }, 2);
  else if (runs.length === 0) output.say(`each run of ${store.path} has ended`);
  else {
    const lines = runs.map((open) => [
      ...[nameOf(open), ...statuses.map((status) => grouped(open[status]))],
      Object.entries(open.codes)
        .map(([code, runs]) => `${grouped(runs)} ${oneLine(code)}`)
        .join(', '),
    ]);
    const names = [(args.now ?? '').toUpperCase(), ...statuses.map((status) => status.toUpperCase()), 'CODES'];
    for (const line of table([names.map(oneLine), ...lines])) output.print(line);
  }
  await store.close();
  return exitCodes.ok;
}

const noRuns = { live: 0, interrupted: 0, waiting: 0, parked: 0, quarantined: 0 };

/** Prints what the store holds, by kind. */
async function printRows({ args, output }: CommandContext, store: RunStore): Promise<number> {
  const rows = await store.storedRows();
  if (args.json) output.printJson({ store: store.path, rows }, 2);
  else {
    const now = Date.now();
    const ages = rows.map(({ kind, rows, bytes, oldestAt, firstUntil, expired }) => [
      ...[kind, grouped(rows), bytes === undefined ? '-' : megabytes(bytes)],
      oldestAt === undefined ? '-' : ago(oldestAt, now),
      firstUntil === undefined ? '-' : firstUntil > now ? `in ${duration(firstUntil - now)}` : ago(firstUntil, now),
      grouped(expired),
    ]);
    const names = ['KIND', 'ROWS', 'SIZE', 'OLDEST', 'FIRST EXPIRES', 'TO PRUNE'];
    for (const line of table([names, ...ages])) output.print(line);
  }
  await store.close();
  return exitCodes.ok;
}

const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(bytes < 1e7 ? 2 : 0)} MB`;

const heads = ['RUNS', 'OK', 'FAILED', 'STEPS', 'TOKENS', 'USD', 'WORKED'];

/** Runs may have no caller. */
function nameOf({ key }: Pick<AuditTotal, 'key'>): string {
  return key === '' ? '-' : shortened(oneLine(key), 40);
}

function cells({ runs, statuses, usage, spend, iterations, elapsedMs }: AuditTotal): string[] {
  const { ok = 0 } = statuses;
  const counts = [runs, ok, runs - ok, iterations];
  const tokens = usage.inputTokens + usage.outputTokens;
  const usd = spend.usd === 0 ? '' : dollars(spend.usd);
  return [...counts.map(grouped), grouped(tokens), usd, duration(elapsedMs)];
}
