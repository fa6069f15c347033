import { type Critic, type CriticOptions, createCritic, type EscalatorDecision, type EscalatorState } from 'pawl';
import { type TestClock, testClock } from 'pawl/testing';
import type { CriticHandle, SupervisedRun } from '../../src/critic/port.ts';
import type { RunInfo } from '../../src/run/request.ts';
import type { JsonObject } from '../../src/values/json.ts';
import type { Message } from '../../src/values/message.ts';

export const usage = {
  inputTokens: 7,
  outputTokens: 3,
  reasoningTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
};

export const info = { runId: 'r', subjectId: 'worker', name: 'Worker', maxIterations: 5 } as RunInfo;

/** A run as a critic sees it, played by the test; what the critic does to it is written down. */
export interface PlayedRun extends SupervisedRun {
  readonly clock: TestClock;
  readonly done: string[];
  iteration: number;
  messages: readonly Message[];
}

export interface Play {
  readonly clock?: TestClock;
  readonly softLimitMs?: number;
  /** Working time of earlier processes. */
  readonly before?: number;
  readonly saved?: JsonObject;
}

export function playedRun({
  clock = testClock(1_000_000),
  softLimitMs = 100,
  before = 0,
  saved,
}: Play = {}): PlayedRun {
  const begun = clock.monotonic();
  const done: string[] = [];
  let raised = 0;
  const run: PlayedRun = {
    clock,
    softLimitMs,
    ...(saved ? { saved } : {}),
    done,
    iteration: 0,
    messages: [],
    elapsedMs: () => before + clock.monotonic() - begun,
    tallies: () => ({ iteration: run.iteration, maxIterations: info.maxIterations + raised, usage }),
    tail: (count = 6) => run.messages.slice(-count),
    nudge: (text) => void done.push(`nudge: ${text}`),
    raiseSteps: (by) => {
      raised += by;
      done.push(`raise: ${by}`);
    },
    kill: (reason) => void done.push(`kill: ${reason}`),
  };
  return run;
}

/** A critic with short times at work on a played run; what its escalator was shown is written down. */
export function watched(
  answer: (state: EscalatorState) => unknown,
  play: Play & { readonly options?: Partial<CriticOptions>; readonly run?: PlayedRun } = {},
): { run: PlayedRun; handle: Required<CriticHandle>; shown: EscalatorState[]; critic: Critic } {
  const run = play.run ?? playedRun(play);
  const shown: EscalatorState[] = [];
  const escalator = (state: EscalatorState) => {
    shown.push(state);
    return answer(state) as EscalatorDecision;
  };
  const critic = createCritic({ escalator, idleMs: 20, backstopMs: 10_000, askTimeoutMs: 50, ...play.options });
  const handle = critic.monitor(info, run) as Required<CriticHandle>;
  return { run, handle, shown, critic };
}
