import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type AuditedTree, type AuditQueries, createAudit, createBudget, type RunResult } from 'pawl';
import { sqliteBudget, sqliteStore } from 'pawl/stores/sqlite';
import type { CallLine } from '../../docs/examples/review/run-folder.ts';
import { emptyFolder, jsonLines, Pawl } from '../cli/pawl.ts';

export const agent = fileURLToPath(new URL('../../docs/examples/review/agent.ts', import.meta.url));

/** A folder with four parts, in each of them something to find; one is too large for the steps of a reviewer. */
export function texts(): string {
  const cwd = emptyFolder();
  const write = (file: string, content: string | Buffer) => writeFileSync(join(cwd, 'texts', file), content);
  for (const part of ['birds', 'stars', 'trees']) mkdirSync(join(cwd, 'texts', part), { recursive: true });
  write('notes.txt', 'Three folders of texts. \n');
  write('birds/README.md', '# Birds\n\nSwallows fly south | far. They return.\n\nFIX-ME: when?\n');
  write('birds/nests.md', '# Nests\n\nThey build nests.\n');
  write('trees/elm.ts', '// Tells of elms.\nexport const elm = 1; \n// FIX-ME: and oaks?\n');
  write('trees/empty.txt', '');
  write('trees/picture.bin', Buffer.from([1, 0, 2, 0]));
  for (let i = 10; i < 24; i++) write(`stars/${i}.txt`, `The star ${i} shines.\n`);
  write('stars/23.txt', `The star 23 shines.${' It shines on.'.repeat(10)}\n`);
  return cwd;
}

/** @param hold what REVIEW_HOLD says: which calls wait */
const settings = (cwd: string, hold = '') => ({ cwd, env: { REVIEW_OUT: 'out', REVIEW_HOLD: hold } });

/** The command at work on the review `r` of the folder `texts`. */
export function begin(cwd: string, hold?: string): Pawl {
  return new Pawl(['run', agent, 'texts', '--run-id', 'r', '--json'], settings(cwd, hold));
}

export function resume(cwd: string, hold?: string): Pawl {
  return new Pawl(['resume', 'r', '--json'], settings(cwd, hold));
}

/** The tool calls of the review, of all its processes. */
export function callLines(cwd: string): CallLine[] {
  try {
    return jsonLines(readFileSync(join(cwd, 'out/r/calls.jsonl'), 'utf8')) as unknown as CallLine[];
  } catch {
    return [];
  }
}

/** The runs among these that have ended, for whoever asks the store. */
export async function endedRuns(cwd: string, runIds: readonly string[]): Promise<string[]> {
  const store = sqliteStore({ path: join(cwd, '.pawl/runs.db') });
  try {
    const outcomes = await Promise.all(runIds.map((runId) => store.outcomes.find(runId)));
    return runIds.filter((_, i) => outcomes[i]);
  } finally {
    await store.close();
  }
}

/** What the audit has by now: how many processes were at the review, its reviewers, and which of them have ended. */
export async function audited(cwd: string) {
  await using store = sqliteStore({ path: join(cwd, '.pawl/runs.db') });
  const audit = createAudit({ store });
  const tree = await audit.tree('r', { depth: 1 });
  const reviewers = (tree?.children ?? []).map(({ run }) => run);
  const ended = reviewers.filter(({ endedAt }) => endedAt !== undefined);
  const idsOf = (runs: typeof reviewers) => runs.map(({ runId }) => runId);
  const processes = tree ? (await resumesOf(audit)) + 1 : 0;
  return { processes, reviewers: idsOf(reviewers), ended: idsOf(ended) };
}

/** How often a process has continued the review. */
async function resumesOf(audit: AuditQueries): Promise<number> {
  const review = await audit.run('r');
  return review?.events.filter(({ type }) => type === 'run.resumed').length ?? 0;
}

/** What a review left behind, without what depends on the clock. */
export interface Remains {
  readonly report: string;
  /** In a fixed order: their files are named by keys of calls, which differ between two lives of a run. */
  readonly findings: readonly unknown[];
  readonly spent: { readonly tokens: number; readonly usd: number };
  readonly tree: AuditedTree | null;
  readonly resumes: number;
}

export async function remainsOf(cwd: string): Promise<Remains> {
  const folder = join(cwd, 'out/r/findings');
  const texts = readdirSync(folder).map((name) => readFileSync(join(folder, name), 'utf8'));
  const findings = texts.sort().map((text) => JSON.parse(text) as unknown);
  await using books = sqliteBudget({ path: join(cwd, 'out/budget.db') });
  const { spent, reserved } = await createBudget({ tokens: 1, store: books }).standing('');
  if (reserved.tokens > 0) throw new Error(`${reserved.tokens} tokens are still held`);
  await using store = sqliteStore({ path: join(cwd, '.pawl/runs.db') });
  const audit = createAudit({ store });
  return {
    report: readFileSync(join(cwd, 'out/r/report.md'), 'utf8'),
    findings,
    spent: { tokens: spent.tokens, usd: spent.usd },
    tree: await audit.tree('r'),
    resumes: await resumesOf(audit),
  };
}

/** The result that the command printed. */
export function resultIn(stdout: string): RunResult & { readonly type: string } {
  return jsonLines(stdout).at(-1) as unknown as RunResult & { type: string };
}

/** Waits until it is so. @throws when the process ends before */
export async function until(isSo: () => boolean | Promise<boolean>, { child, stderr }: Pawl): Promise<void> {
  while (!(await isSo())) {
    if (child.exitCode !== null) throw new Error(`it ended too early: ${stderr}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
