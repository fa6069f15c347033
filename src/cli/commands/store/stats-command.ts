import type { AuditTotal } from '../../../index.ts';
import type { Command } from '../../command.ts';
import { auditToAsk, noAudit, pathBeside } from '../../open/audit-file.ts';
import { oneOf, sinceOf } from '../../option-values.ts';
import { exitCodes, oneLine } from '../../ui/failure.ts';
import { dollars, duration, shortened } from '../../ui/format.ts';
import { table } from '../../ui/table.ts';

/** Runs `pawl stats`: prints the totals of the runs in an audit. */
export const statsCommand: Command = async (context) => {
  const { args, output } = context;
  const by = oneOf('by', args.by, ['day', 'agent', 'caller']);
  const since = sinceOf(args.since, Date.now());
  const audit = auditToAsk(context);
  if (!audit) throw noAudit(pathBeside(args.store));
  const totals = await audit.totals({ by, since });
  if (args.json) output.printJson({ audit: audit.path, by, totals }, 2);
  else if (totals.length === 0)
    output.say(`no runs are known in ${audit.path}${since === undefined ? '' : ' since then'}`);
  else
    for (const line of table([
      [by.toUpperCase(), ...heads],
      ...totals.map((total) => [nameOf(total), ...cells(total)]),
    ]))
      output.print(line);
  await audit.close();
  return exitCodes.ok;
};

const heads = ['RUNS', 'OK', 'FAILED', 'OPEN', 'STEPS', 'TOKENS', 'USD', 'WORKED'];
const grouped = new Intl.NumberFormat('en-US');

/** Runs may have no caller. */
function nameOf({ key }: AuditTotal): string {
  return key === '' ? '-' : shortened(oneLine(key), 40);
}

function cells({ runs, statuses, usage, spend, iterations, elapsedMs }: AuditTotal): string[] {
  const { ok = 0, open = 0, interrupted = 0 } = statuses;
  const counts = [runs, ok, runs - ok - open - interrupted, open + interrupted, iterations];
  const tokens = usage.inputTokens + usage.outputTokens;
  const usd = spend.usd === 0 ? '' : dollars(spend.usd);
  return [...counts.map((n) => grouped.format(n)), grouped.format(tokens), usd, duration(elapsedMs)];
}
