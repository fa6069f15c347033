import type { InterruptedRun } from '../index.ts';
import type { Command } from './command.ts';
import { exitCodes, oneLine } from './failure.ts';
import { ago, shortened } from './figures.ts';
import { openExistingStore, pidOf, statusOf } from './run-store.ts';

/** `pawl list`: the runs that have not ended. */
export const listCommand: Command = async ({ args, output }) => {
  const store = await openExistingStore(args.store);
  const entries = await store.listInterrupted();
  if (args.json) output.print(JSON.stringify({ store: store.path, runs: entries.map(plain) }, null, 2));
  else if (entries.length === 0) output.say(`no runs are waiting in ${store.path}`);
  else output.print(table([heads, ...entries.map((entry) => cells(entry, Date.now()))]));
  await store.close();
  return exitCodes.ok;
};

function plain(entry: InterruptedRun) {
  const pid = pidOf(entry);
  return { ...entry, status: statusOf(entry), ...(pid === undefined ? {} : { pid }) };
}

const heads = ['RUN', 'STATUS', 'AGENT', 'STEPS', 'RECORDED', 'PROMPT'];

function cells(entry: InterruptedRun, now: number): string[] {
  const runId = oneLine(entry.runId);
  if (entry.status === 'quarantined') return [runId, 'unreadable', '', '', '', shortened(oneLine(entry.reason), 100)];
  const pid = pidOf(entry);
  const status = statusOf(entry) + (pid === undefined ? '' : ` (pid ${pid})`);
  const about = entry.reason === undefined ? entry.meta.prompt : `parked: ${entry.reason}`;
  const agent = oneLine(entry.meta.agentName);
  return [runId, status, agent, String(entry.iteration), ago(entry.updatedAt, now), shortened(oneLine(about), 60)];
}

function table(rows: readonly (readonly string[])[]): string {
  const widths = heads.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const line = (row: readonly string[]) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ');
  return rows.map((row) => line(row).trimEnd()).join('\n');
}
