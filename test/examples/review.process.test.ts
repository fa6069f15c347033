import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type AuditedRun, type AuditedTree, createBudget } from 'pawl';
import { sqliteBudget } from 'pawl/stores/sqlite';
import { beforeAll, describe, expect, test } from 'vitest';
import { emptyFolder } from '../cli/pawl.ts';
import { kill, places, workOn } from './review-kill.ts';
import { begin, callLines, type Remains, remainsOf, resultIn, resume, texts } from './review-trial.ts';

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
}, 180_000);

/** A tree of runs, by their agents. */
const agentsOf = ({ run, children }: AuditedTree): unknown => [run.agentId, run.status, ...children.map(agentsOf)];
const runsOf = ({ run, children }: AuditedTree): AuditedRun[] => [run, ...children.flatMap(runsOf)];

describe('a review', () => {
  test('publishes what was found, part by part', () => {
    expect(undisturbed.report).toBe(report);
    expect(undisturbed.findings).toHaveLength(6);
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

  test('is counted by the budget, each of its runs with what it used', () => {
    const { result, spent, tree } = undisturbed;
    const { inputTokens, outputTokens } = result.usage;
    const usd = expect.closeTo((inputTokens + 5 * outputTokens) / 1e6, 6);
    expect(result.spend).toMatchObject({ tokens: inputTokens + outputTokens, usd });
    const runs = tree ? runsOf(tree) : [];
    expect(runs).toHaveLength(9);
    expect(runs.reduce((sum, run) => sum + (run.spend?.tokens ?? 0), 0)).toBe(spent.tokens);
    expect(runs[0]).toMatchObject({ usage: result.usage, iterations: result.iterations });
  });

  test('has a critic that lets a reviewer of many files have more steps', () => {
    const steps = undisturbed.tree?.children.map(({ run }) => run.iterations);
    expect(steps).toEqual([4, 4, 7, 4]);
  });

  test('is refused when the budget of the week is used up: no call of a model, nothing to resume', async () => {
    const cwd = texts();
    {
      await using store = sqliteBudget({ path: join(cwd, 'out/budget.db') });
      const budget = createBudget({ tokens: 5_000_000, store });
      const call = { key: 'k:1', runId: 'k', modelTier: 'fast', model: 'm/m', inputTokens: 1 };
      const usage = {
        inputTokens: 5_000_000,
        outputTokens: 0,
        reasoningTokens: 0,
        cacheReadTokens: 0,
        cacheWriteTokens: 0,
      };
      await budget.commit(await budget.reserve('', call), { usage, seconds: 1 });
    }
    const { code, stdout } = await begin(cwd).ended;
    expect(code).toBe(1);
    expect(resultIn(stdout)).toMatchObject({ status: 'error', iterations: 0, error: { code: 'BUDGET_EXCEEDED' } });
    expect(await resume(cwd).ended).toMatchObject({ code: 2 });
  });

  test('of a folder that is not there fails, and says so', async () => {
    const { code, stdout, stderr } = await begin(emptyFolder()).ended;
    expect({ code, status: resultIn(stdout).status }).toEqual({ code: 1, status: 'error' });
    expect(stderr).toMatch(/there is no folder .*texts/);
  });

  test('of an empty folder has nothing to say', async () => {
    const cwd = emptyFolder();
    mkdirSync(join(cwd, 'texts'));
    const { code, stdout } = await begin(cwd).ended;
    expect(code).toBe(0);
    expect(resultIn(stdout).data).toMatchObject({ files: 0, findings: 0 });
  });
});

describe.concurrent('a review that is killed and resumed', { timeout: 180_000 }, () => {
  test.for(places)('$at comes to the same end, and does nothing again', async (place) => {
    const cwd = texts();
    const ended = await kill(begin(cwd, place.hold.join()), 1, { cwd, place });
    const second = resume(cwd);
    const { code, stdout, stderr } = await second.ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });

    const { report, findings, spent, tree, resumes } = await remainsOf(cwd);
    expect({ report, findings }).toEqual({ report: undisturbed.report, findings: undisturbed.findings });
    expect(resultIn(stdout)).toMatchObject({ status: 'ok', data: { files: 19, findings: 6 } });
    expect(workOn(ended, stdout, { cwd, pid: second.child.pid })).toEqual([]);
    expect(tree && agentsOf(tree)).toEqual(undisturbed.tree && agentsOf(undisturbed.tree));
    expect(resumes).toBe(1);
    if (place.published) {
      // Nobody knows what became of the call: the next process looks, which is a turn more, and publishes if it must.
      const calls = callLines(cwd).filter(({ event, tool }) => event === 'begun' && tool.endsWith('_report'));
      const again = place.published === 'again' ? ['publish_report'] : [];
      expect(calls.map(({ tool }) => tool)).toEqual(['publish_report', 'find_report', ...again]);
      return;
    }
    expect(tree && runsOf(tree).map(({ usage, iterations }) => ({ usage, iterations }))).toEqual(
      undisturbed.tree && runsOf(undisturbed.tree).map(({ usage, iterations }) => ({ usage, iterations })),
    );
    expect(spent).toEqual(undisturbed.spent);
  });

  test('again and again, in each phase, comes to the same end', async () => {
    const cwd = texts();
    const often = ['survey', 'none', 'two', 'before'].flatMap((word) => places.filter(({ at }) => at.includes(word)));
    for (const [i, place] of often.entries()) {
      const hold = place.hold.join();
      await kill(i === 0 ? begin(cwd, hold) : resume(cwd, hold), i + 1, { cwd, place });
    }
    const { code, stderr } = await resume(cwd).ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const { report, findings, tree, resumes } = await remainsOf(cwd);
    expect({ report, findings }).toEqual({ report: undisturbed.report, findings: undisturbed.findings });
    expect(tree?.run.status).toBe('ok');
    expect(resumes).toBe(often.length);
  });
});
