import { type AuditTotal, createAudit, type RunStats } from '../../../index.ts';
import type { CliCommand, CommandContext } from '../../command.ts';
import { controlExecutor } from '../../open/control-executor.ts';
import { openExistingStore, type RunStore } from '../../open/open-store.ts';
import { oneOf, sinceOf } from '../../option-values.ts';
import { exitCodes, oneLine } from '../../ui/failure.ts';
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
function nameOf({ key }: AuditTotal): string {
  return key === '' ? '-' : shortened(oneLine(key), 40);
}

function cells({ runs, statuses, usage, spend, iterations, elapsedMs }: AuditTotal): string[] {
  const { ok = 0 } = statuses;
  const counts = [runs, ok, runs - ok, iterations];
  const tokens = usage.inputTokens + usage.outputTokens;
  const usd = spend.usd === 0 ? '' : dollars(spend.usd);
  return [...counts.map(grouped), grouped(tokens), usd, duration(elapsedMs)];
}
