import { type AuditTotal, createAudit } from '../../../index.ts';
import type { Command } from '../../command.ts';
import { openExistingStore } from '../../open/open-store.ts';
import { oneOf, sinceOf } from '../../option-values.ts';
import { exitCodes, oneLine } from '../../ui/failure.ts';
import { dollars, duration, shortened } from '../../ui/format.ts';
import { PAWL } from '../../ui/shell-words.ts';
import { table } from '../../ui/table.ts';

/** Runs `pawl stats`: prints the totals of the runs that ended while an audit was on. */
export const statsCommand: Command = async (context) => {
  const { args, output } = context;
  const by = oneOf('by', args.by, ['day', 'agent', 'caller']);
  const since = sinceOf(args.since, Date.now());
  const store = await openExistingStore(args.store);
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
