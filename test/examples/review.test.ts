import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { AuditedTree } from 'pawl';
import { beforeAll, describe, expect, test } from 'vitest';
import { planner } from '../../docs/examples/review/planner.ts';
import { emptyFolder, jsonLines, pawl } from '../cli/pawl.ts';
import {
  begin,
  callLines,
  endedRuns,
  type Remains,
  remainsOf,
  resultIn,
  resume,
  reviewers,
  texts,
  underWay,
  until,
} from './review-trial.ts';

const report = `# Review of texts

19 files in 4 parts, 6 findings.

## birds: 1 to look at, most of all: unfinished work

Swallows fly south | far.

2 files read.

| File | Line | What |
| --- | ---: | --- |
| birds/README.md | 5 | unfinished work |

## .: 1 to look at, most of all: space at the end of a line

Three folders of texts.

1 file read.

| File | Line | What |
| --- | ---: | --- |
| notes.txt | 1 | space at the end of a line |

## stars: 1 to look at, most of all: long line

The star 10 shines.

14 files read.

| File | Line | What |
| --- | ---: | --- |
| stars/23.txt | 1 | long line |

## trees: 3 to look at, most of all: empty file

Tells of elms.

2 files read.

| File | Line | What |
| --- | ---: | --- |
| trees/elm.ts | 2 | space at the end of a line |
| trees/elm.ts | 3 | unfinished work |
| trees/empty.txt | 1 | empty file |
`;

interface Undisturbed extends Remains {
  readonly result: ReturnType<typeof resultIn>;
}

let undisturbed: Undisturbed;
beforeAll(async () => {
  const cwd = texts();
  const { code, stdout, stderr } = await begin(cwd).ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  undisturbed = { result: resultIn(stdout), ...(await remainsOf(cwd)) };
});

/** A tree of runs, by their agents. */
const agentsOf = ({ run, children }: AuditedTree): unknown => [run.agentId, run.status, ...children.map(agentsOf)];
const statusesOf = ({ run, children }: AuditedTree): string[] => [run.status, ...children.flatMap(statusesOf)];

describe('a review', () => {
  test('publishes what was found, part by part', () => {
    expect(undisturbed.report).toBe(report);
    expect(Object.values(undisturbed.findings)).toHaveLength(6);
  });

  test('answers with data of the form that its agent names', () => {
    const { status, data, output } = undisturbed.result;
    expect(status).toBe('ok');
    expect(data).toEqual({ files: 19, findings: 6, report: expect.stringMatching(/out\/r\/report\.md$/) });
    expect(JSON.parse(output)).toEqual(data);
  });

  test('goes through three phases, and threads their outputs', () => {
    const [survey, review, published] = undisturbed.result.phases;
    expect([survey?.name, review?.name, published?.name]).toEqual(['survey', 'review', 'report']);
    expect(JSON.parse(survey?.output ?? '').parts).toHaveLength(4);
    expect(JSON.parse(review?.output ?? '').reviews).toHaveLength(4);
  });

  test('is in the audit with its reviewers and what they put to work', () => {
    const reviewer = ['reviewer', 'ok', ['skill:title', 'ok']];
    expect(undisturbed.tree && agentsOf(undisturbed.tree)).toEqual(['review', 'ok', ...Array(4).fill(reviewer)]);
  });

  test('is counted by the budget, each run with what it used', () => {
    const { result, spent, tree } = undisturbed;
    const { inputTokens, outputTokens } = result.usage;
    expect(result.spend).toMatchObject({
      tokens: inputTokens + outputTokens,
      usd: expect.closeTo(inputTokens / 1e6 + outputTokens / 2e5, 6),
    });
    const runs = tree
      ? [tree.run, ...tree.children.flatMap(({ run, children }) => [run, ...children.map((each) => each.run)])]
      : [];
    expect(runs).toHaveLength(9);
    expect(runs.reduce((sum, run) => sum + (run.spend?.tokens ?? 0), 0)).toBe(spent.tokens);
    expect(tree?.run.usage).toEqual(result.usage);
  });

  test('has a critic that lets a reviewer of many files have more steps', () => {
    const steps = undisturbed.tree?.children.map(({ run }) => run.iterations);
    expect(steps).toEqual([4, 4, 7, 4]);
  });
});

/** Where the first process is killed: calls that wait, and how many reviewers are done by then. */
const places = [
  { at: 'in the survey, while it reads', hold: 'before read_file stars/', held: 1, done: 0 },
  { at: 'with none of four reviewers done', hold: 'before add_finding', held: 4, done: 0 },
  {
    at: 'with one of four reviewers done',
    hold: 'before add_finding birds/, after add_finding stars/, before add_finding trees/',
    held: 3,
    done: 1,
  },
  {
    at: 'with two of four reviewers done',
    hold: 'before add_finding stars/, after add_finding trees/elm',
    held: 2,
    done: 2,
  },
  { at: 'with three of four reviewers done', hold: 'after add_finding stars/', held: 1, done: 3 },
  { at: 'before the report is written', hold: 'before publish_report', held: 1, done: 4 },
  { at: 'when the report is written, and nobody knows', hold: 'after publish_report', held: 1, done: 4 },
] as const;

/** Waits for the place, kills, and says which runs had ended by then. */
async function killedAt(
  process: ReturnType<typeof begin>,
  cwd: string,
  place: (typeof places)[number],
): Promise<string[]> {
  const { hold, held, done } = place;
  const isHeld = () => {
    const heldTools = hold.split(', ').map((each) => each.split(' ')[1]);
    return (
      underWay(cwd).filter(({ pid, tool }) => pid === process.child.pid && heldTools.includes(tool)).length >= held
    );
  };
  await until(isHeld, process);
  await until(async () => (await endedRuns(cwd, reviewers)).length >= done, process);
  process.child.kill('SIGKILL');
  expect((await process.ended).code).toBeNull();
  const ended = await endedRuns(cwd, [...reviewers, ...reviewers.map((id) => `${id}~call-3-1`)]);
  expect(ended.filter((id) => reviewers.includes(id))).toHaveLength(done);
  return ended;
}

describe.concurrent('a review that is killed and resumed', () => {
  test.for(places)('$at comes to the same report', async (place) => {
    const cwd = texts();
    const ended = await killedAt(begin(cwd, place.hold), cwd, place);
    const second = resume(cwd);
    const { code, stdout, stderr } = await second.ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });

    const { tree, spent, ...remains } = await remainsOf(cwd);
    expect(remains).toEqual({ report: undisturbed.report, findings: undisturbed.findings });
    expect(tree && statusesOf(tree)).toEqual(Array(9).fill('ok'));
    expect(tree?.run.resumes).toBe(1);
    expect(resultIn(stdout)).toMatchObject({ status: 'ok', data: { files: 19, findings: 6 } });
    // What had ended was not begun again: neither a call of its tools nor a turn of its model.
    const calls = callLines(cwd);
    expect(calls.filter(({ pid, runId }) => pid === second.child.pid && ended.includes(runId))).toEqual([]);
    expect(
      jsonLines(stdout).filter(({ type, runId }) => type === 'step.done' && ended.includes(String(runId))),
    ).toEqual([]);
    expect(
      calls.filter(({ tool, event }) => tool === 'publish_report' && event === 'finished').length,
    ).toBeLessThanOrEqual(1);
    if (place.hold.includes('publish_report')) return;
    const { usage, iterations } = undisturbed.result;
    expect(resultIn(stdout)).toMatchObject({ usage, iterations });
    expect(spent).toEqual(undisturbed.spent);
  });
});
