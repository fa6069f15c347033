import { type AuditTotal, createAudit } from '../../../index.ts';
import type { Command, CommandContext } from '../../command.ts';
import { openExistingStore, type RunStore } from '../../open/open-store.ts';
import { oneOf, sinceOf } from '../../option-values.ts';
import { exitCodes, oneLine } from '../../ui/failure.ts';
import { ago, dollars, duration, shortened } from '../../ui/format.ts';
import { PAWL } from '../../ui/shell-words.ts';
import { table } from '../../ui/table.ts';

/** Runs `pawl stats`: prints the totals of the runs that ended while an audit was on, or what fills the store. */
export const statsCommand: Command = async (context) => {
  const { args, output } = context;
  const by = oneOf('by', args.by, ['day', 'agent', 'caller']);
  const since = sinceOf(args.since, Date.now());
  const store = await openExistingStore(args.store);
  if (args.rows) return printRows(context, store);
  const totals = await createAudit({ store }).totals({ by, since });
  if (args.json) output.printJson({ store: store.path, by, totals }, 2);
  else if (totals.length === 0)
    output.say(
      `no run is counted in ${store.path}${since === undefined ? `; \`${PAWL} run --audit\` counts one` : ' since then'}`,
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

/** Prints what the store holds, by kind. */
async function printRows({ args, output }: CommandContext, store: RunStore): Promise<number> {
  const rows = await store.storedRows();
  if (args.json) output.printJson({ store: store.path, rows }, 2);
  else {
    const now = Date.now();
    const ages = rows.map(({ kind, rows, bytes, oldestAt, firstUntil, expired }) => [
      ...[kind, grouped.format(rows), bytes === undefined ? '-' : megabytes(bytes)],
      oldestAt === undefined ? '-' : ago(oldestAt, now),
      firstUntil === undefined ? '-' : firstUntil > now ? `in ${duration(firstUntil - now)}` : ago(firstUntil, now),
      grouped.format(expired),
    ]);
    const names = ['KIND', 'ROWS', 'SIZE', 'OLDEST', 'FIRST EXPIRES', 'TO PRUNE'];
    for (const line of table([names, ...ages])) output.print(line);
  }
  await store.close();
  return exitCodes.ok;
}

const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(bytes < 1e7 ? 2 : 0)} MB`;

const heads = ['RUNS', 'OK', 'FAILED', 'STEPS', 'TOKENS', 'USD', 'WORKED'];
const grouped = new Intl.NumberFormat('en-US');

/** Runs may have no caller. */
function nameOf({ key }: AuditTotal): string {
  return key === '' ? '-' : shortened(oneLine(key), 40);
}

function cells({ runs, statuses, usage, spend, iterations, elapsedMs }: AuditTotal): string[] {
  const { ok = 0 } = statuses;
  const counts = [runs, ok, runs - ok, iterations];
  const tokens = usage.inputTokens + usage.outputTokens;
  const usd = spend.usd === 0 ? '' : dollars(spend.usd);
  return [...counts.map((n) => grouped.format(n)), grouped.format(tokens), usd, duration(elapsedMs)];
}
