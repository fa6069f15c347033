import { describe, expect, test } from 'vitest';
import { brokenPromises } from './promises.ts';
import { seed, torture } from './random.ts';
import { RandomKills } from './random-kills.ts';
import { judgeNotes, plantFolder } from './survey-agent.ts';
import { runTrial, type Stop } from './trial.ts';

const job = { runId: 'run-1', agent: 'survey' } as const;
const around = { prepare: plantFolder, judge: judgeNotes };

describe(`the survey of docs/examples, killed with SIGKILL (seed ${seed})`, () => {
  const trials = RandomKills.of(job, { kills: torture > 1 ? 25 : 12, around });

  test('at random moments: the report, the notes and the answer are those of an undisturbed survey', () => {
    trials.expectUnbroken();
  });

  test('was really killed, and often enough in the middle of its work (recovery 9)', () => {
    trials.expectKilled();
  });

  test.for(['before', 'within', 'after'] as const)(
    '%s the publishing: it is published at most once, and the answer says what is known',
    { timeout: 180_000 },
    async (side) => {
      const stop: Stop = { failpoint: { name: `${side} a call with effect once`, nth: 1 } };
      const trial = await runTrial(job, [stop], around);
      expect(trial.deaths).toHaveLength(1);
      expect(brokenPromises(trial, trials.undisturbed.result)).toEqual([]);
      expect(trial.result?.output).toContain('Whether the report was published is not known');
    },
  );
});
