import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { packageFlags } from '../toolchain/programs.ts';
import { type Row, rowsOf } from './rows.ts';
import { endsAs } from './scene.ts';
import type { Seen } from './worker.ts';

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
/** A worker that has said everything must end by itself. */
const LAST_WORDS_MS = 15_000;
/** A worker that says nothing for so long is in an endless loop: it has less patience with anything that it waits for. */
const SILENCE_MS = 40_000;
/** After so many deaths the rest of a group is not played: enough is known. */
const MAX_DEATHS = 40;

type Said = { begins: number } | { index: number; seen: Seen } | { done: true };

export interface Outcome {
  readonly row: Row;
  readonly seen: Seen;
}

/** Plays all rows of a group. A worker that a row kills is followed by another one, which begins with the next row. */
export async function play(group: string): Promise<Outcome[]> {
  const rows = rowsOf(group);
  const outcomes: Outcome[] = [];
  let from = 0;
  for (let deaths = 0; from < rows.length && deaths < MAX_DEATHS; deaths++) {
    const { seen, last, death } = await work(group, from);
    for (const [index, each] of seen) outcomes.push({ row: rows[index] as Row, seen: each });
    if (death !== undefined && last < rows.length) {
      outcomes.push({ row: rows[last] as Row, seen: { ...seen.get(last), trouble: death } });
    }
    from = Math.max(last, from) + 1;
  }
  return outcomes;
}

interface Work {
  readonly seen: Map<number, Seen>;
  /** The row that was being played when the worker ended. */
  readonly last: number;
  readonly death: string | undefined;
}

async function work(group: string, from: number): Promise<Work> {
  const args = [...packageFlags, here('worker.ts'), group, String(from)];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let complaint = '';
  child.stderr.on('data', (text) => {
    complaint += text;
  });
  const seen = new Map<number, Seen>();
  let last = from;
  let isDone = false;
  const kill = () => child.kill('SIGKILL');
  let killer = setTimeout(kill, SILENCE_MS);
  const exited = new Promise<number | null>((resolve) => child.once('close', resolve));
  for await (const line of createInterface({ input: child.stdout })) {
    const said = JSON.parse(line) as Said;
    clearTimeout(killer);
    killer = setTimeout(kill, 'done' in said ? LAST_WORDS_MS : SILENCE_MS);
    if ('begins' in said) last = said.begins;
    else if ('seen' in said) seen.set(said.index, said.seen);
    else isDone = true;
  }
  const code = await exited;
  clearTimeout(killer);
  if (code === 0 && isDone) return { seen, last, death: undefined };
  const why = isDone ? 'the process did not end by itself' : `the process died (exit ${code}): ${essence(complaint)}`;
  return { seen, last, death: why };
}

/** The lines of a stack that say where in the project it happened. */
function essence(complaint: string): string {
  const lines = complaint.split('\n').filter((line) => /^\S*Error|cannot be read|\/(src|machines)\//.test(line));
  return lines
    .slice(0, 5)
    .map((line) => line.trim().replaceAll(/file:\/\/\S*\/(?=src|machines|test)/g, ''))
    .join(' < ');
}

/** What is wrong with an outcome; undefined = it is as it should be. */
export function findingOf({ row, seen }: Outcome): string | undefined {
  const { port, failure, mode } = row;
  const title = `${port.name} ${failure} (${mode})`;
  if (seen.trouble) return `${title}: ${seen.trouble}`;
  const expected = endsAs(port, failure);
  const ending = seen.status === 'ok' ? 'ok' : (seen.code ?? `${seen.status} without a code`);
  if (!expected.includes(ending)) return `${title}: ended as ${ending}, not as ${expected.join(' or ')}`;
  return (seen.ended ?? 1) === 1 ? undefined : `${title}: its events said ${seen.ended} times that it ended`;
}

/** One line a port and mode, one column a failure. */
export function printed(outcomes: readonly Outcome[]): string {
  const lines = new Map<string, string[]>();
  for (const outcome of outcomes) {
    const { row, seen } = outcome;
    const key = `${row.port.name} (${row.mode})`;
    const mark = findingOf(outcome) ? '!' : '';
    const cell = `${mark}${row.failure}: ${seen.trouble ?? seen.code ?? seen.status}`;
    lines.set(key, [...(lines.get(key) ?? []), cell]);
  }
  return [...lines].map(([key, cells]) => `${key}\n    ${cells.join('\n    ')}`).join('\n');
}
