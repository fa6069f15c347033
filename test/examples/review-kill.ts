import { expect } from 'vitest';
import type { CallLine } from '../../docs/examples/review/run-folder.ts';
import { jsonLines, type Pawl } from '../cli/pawl.ts';
import { audited, callLines, endedRuns, until } from './review-trial.ts';

/** A place in a review at which its process can be killed. */
interface Place {
  readonly at: string;
  /** For REVIEW_HOLD. */
  readonly hold: readonly string[];
  /** How many calls wait there. */
  readonly held: number;
  /** How many reviewers have ended by then. */
  readonly done: number;
  /** What a later process finds when it looks for the report: nothing, so that it is published again; or the report. */
  readonly published?: 'again' | 'already';
}

/** With four reviewers. */
export const places: readonly Place[] = [
  { at: 'in the survey, while it reads', hold: ['before read_file stars/'], held: 1, done: 0 },
  { at: 'with none of four reviewers done', hold: ['before add_finding'], held: 4, done: 0 },
  {
    at: 'with one of four reviewers done',
    hold: ['before add_finding birds/', 'after add_finding stars/', 'before add_finding trees/'],
    held: 3,
    done: 1,
  },
  {
    at: 'with two of four reviewers done',
    hold: ['before add_finding stars/', 'after add_finding trees/elm'],
    held: 2,
    done: 2,
  },
  { at: 'with three of four reviewers done', hold: ['after add_finding stars/'], held: 1, done: 3 },
  { at: 'before the report is written', hold: ['before publish_report'], held: 1, done: 4, published: 'again' },
  { at: 'when the report is written', hold: ['after publish_report'], held: 1, done: 4, published: 'already' },
];

interface Scene {
  readonly cwd: string;
  readonly place: Place;
}

/** Waits for the place and kills the nth process. @returns the reviewers that had ended by then */
export async function kill(process: Pawl, nth: number, { cwd, place }: Scene): Promise<string[]> {
  const { held, done } = place;
  const isHeld = ({ event, pid }: CallLine) => event === 'held' && pid === process.child.pid;
  await until(() => callLines(cwd).filter(isHeld).length >= held, process);
  const endedReviewers = async () => endedRuns(cwd, (await audited(cwd)).reviewers);
  await until(async () => (await endedReviewers()).length >= done, process);
  // An event that no save waits for is published a little later: of a killed process it may be missing.
  await until(async () => {
    const { ended, processes } = await audited(cwd);
    return ended.length >= done && processes >= nth;
  }, process);
  process.child.kill('SIGKILL');
  expect((await process.ended).code).toBeNull();
  const ended = await endedReviewers();
  expect(ended).toHaveLength(done);
  return ended;
}

/** What a process did for these runs: calls of their tools, turns of their models. */
export function workOn(
  runIds: readonly string[],
  stdout: string,
  { cwd, pid }: { cwd: string; pid: number | undefined },
) {
  const turns = jsonLines(stdout).filter(({ type, runId }) => type === 'step.done' && runIds.includes(String(runId)));
  return [...callLines(cwd).filter((call) => call.pid === pid && runIds.includes(call.runId)), ...turns];
}
