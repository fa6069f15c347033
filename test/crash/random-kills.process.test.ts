import { describe, test } from 'vitest';
import { seed } from './random.ts';
import { RandomKills } from './random-kills.ts';

const job = { runId: 'run-1', agent: 'twelve-tools' } as const;

describe(`a run of twelve tools, killed with SIGKILL at random moments (seed ${seed})`, () => {
  const trials = RandomKills.of(job, { kills: 25 });

  test('continues each time and ends as if nothing had happened (recovery 5, executor 13)', () => {
    trials.expectUnbroken();
  });

  test('was really killed, and often enough in the middle of its work (recovery 9)', () => {
    trials.expectKilled();
  });
});
