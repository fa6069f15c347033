import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { InterruptedRun } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { beforeAll, describe, expect, test } from 'vitest';
import { packageFlags } from '../toolchain/programs.ts';
import { readJsonLines } from './json-lines.ts';
import { randomFrom, seed, torture } from './random.ts';
import type { SignalJob } from './signals-worker.ts';

const RUNS = 200;
const ROUNDS = torture === 1 ? 1 : 2 * torture;
/** Longer than a busy machine needs for it. */
const DRAIN_MS = 30_000;
/** So many boots of a round are told to end; then it may go on to its end. Forced ones count as starts of a run, of which it has three. */
const BOOTS = 4;
const MAX_FORCED = 2;
/** A boot that has everything before it counts 8 for each run. */
const EVENTS = 8 * RUNS;

const worker = fileURLToPath(new URL('./signals-worker.ts', import.meta.url));

interface Boot {
  readonly code: number | null;
  readonly signal: string | null;
  /** From the first signal to the end of the process, ms; undefined when no signal came. */
  readonly tookMs: number | undefined;
  readonly complaints: string;
}

interface Round {
  readonly boots: readonly Boot[];
  readonly accepted: readonly string[];
  readonly outcomes: readonly { readonly runId: string; readonly outcomeId: string; readonly status: string }[];
  readonly calls: readonly { readonly effect: string; readonly key: string }[];
  /** How many runs were live at each first signal. */
  readonly liveAt: readonly number[];
  readonly left: readonly InterruptedRun[];
}

describe(`${RUNS} runs in a host that gets a SIGTERM at random moments, and again while it drains (seed ${seed})`, () => {
  let rounds: readonly Round[] = [];

  beforeAll(async () => {
    const random = randomFrom(seed);
    const plans = Array.from({ length: ROUNDS }, () => planOf(random));
    const done: Round[] = [];
    for (const plan of plans) done.push(await roundOf(plan));
    // Where a first signal comes so late that all has ended by the second, none was forced: moments are drawn again.
    const isForced = () => done.some((round) => round.boots.some(({ code }) => code === 143));
    for (let more = 0; more < 3 && !isForced(); more++) done.push(await roundOf(planOf(random)));
    rounds = done;
    const boots = rounds.flatMap((round) => round.boots);
    const forced = boots.filter(({ code }) => code === 143).length;
    const live = rounds.flatMap((round) => round.liveAt).filter((count) => count > 0).length;
    console.log(
      `seed ${seed}: ${rounds.length} rounds, ${boots.length} boots, ${live} signals with runs live, ${forced} forced`,
    );
  }, 240_000 * torture);

  test('each run that was accepted has one terminal outcome in the end, and nothing is left (faults 21)', () => {
    for (const { accepted, outcomes, left } of rounds) {
      expect(new Set(accepted).size).toBe(RUNS);
      expect(left, `PAWL_SEED=${seed}`).toEqual([]);
      const ids = new Map<string, Set<string>>();
      for (const { runId, outcomeId } of outcomes) ids.set(runId, (ids.get(runId) ?? new Set()).add(outcomeId));
      expect(accepted.filter((runId) => ids.get(runId)?.size !== 1)).toEqual([]);
      expect(outcomes.filter(({ status }) => status !== 'ok')).toEqual([]);
    }
  });

  test('no `once` call began twice (faults 21, 23)', () => {
    for (const { calls } of rounds) {
      const keys = calls.filter(({ effect }) => effect === 'once').map(({ key }) => key);
      expect(keys.length).toBeGreaterThan(0);
      expect(
        keys.filter((key, i) => keys.indexOf(key) !== i),
        `PAWL_SEED=${seed}`,
      ).toEqual([]);
    }
  });

  test('the process ends with 75 or 0 within the drain, or at once with 143 at the second signal (faults 21, 23)', () => {
    const boots = rounds.flatMap((round) => round.boots);
    expect(boots.filter(({ code }) => code !== 0 && code !== 75 && code !== 143)).toEqual([]);
    expect(boots.filter(({ tookMs = 0 }) => tookMs > DRAIN_MS)).toEqual([]);
    expect(boots.filter(({ complaints }) => complaints !== '')).toEqual([]);
  });

  test('signals came while runs were live, some of them twice', () => {
    expect(rounds.flatMap((round) => round.liveAt).filter((live) => live > RUNS / 10).length).toBeGreaterThanOrEqual(
      ROUNDS,
    );
    expect(rounds.flatMap((round) => round.boots).filter(({ code }) => code === 143).length).toBeGreaterThan(0);
  });

  test('Ctrl-C ends the process with 130; one that does not listen is ended by the signal itself', async () => {
    const few = { at: 5, runs: 2 };
    const [interrupted, deaf] = await Promise.all([
      roundOf([{ ...few, signal: 'SIGINT' }]),
      roundOf([{ ...few, isDeaf: true }]),
    ]);
    expect(interrupted.boots.map(({ code }) => code)).toEqual([130, 0]);
    expect(deaf.boots[0]).toMatchObject({ code: null, signal: 'SIGTERM' });
  });
});

type Plan = Pick<SignalJob, 'at'> & Partial<SignalJob>;

function planOf(random: () => number): Plan[] {
  return Array.from({ length: BOOTS }, (_, i) => {
    const at = 1 + Math.floor((random() * EVENTS) / 2.5);
    // Less than 100 ms after the first it would count as the same.
    const againAfterMs = 101 + 50 * random();
    return i % 2 === 0 && i < 2 * MAX_FORCED ? { at, againAfterMs } : { at };
  });
}

async function roundOf(plan: readonly Plan[]): Promise<Round> {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-signals-'));
  try {
    const boots: Boot[] = [];
    for (const step of plan) boots.push(await boot({ folder, runs: RUNS, drainMs: DRAIN_MS, ...step }));
    boots.push(await boot({ folder, runs: plan[0]?.runs ?? RUNS, drainMs: DRAIN_MS, at: 0 }));
    const store = sqliteStore({ path: join(folder, 'runs.db') });
    const left = await store.listInterrupted();
    await store.close();
    return {
      boots,
      accepted: linesOf<{ runId: string }>(folder, 'accepted').map(({ runId }) => runId),
      outcomes: linesOf(folder, 'outcomes'),
      calls: linesOf(folder, 'calls'),
      liveAt: linesOf<{ live: number }>(folder, 'signals').map(({ live }) => live),
      left,
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function boot(job: SignalJob): Promise<Boot> {
  const before = linesOf(job.folder, 'signals').length;
  const child = spawn(process.execPath, [...packageFlags, worker, JSON.stringify(job)], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, NODE_NO_WARNINGS: '1' },
  });
  let complaints = '';
  child.stderr.on('data', (text) => {
    complaints += text;
  });
  const [code, signal] = await new Promise<[number | null, string | null]>((resolve) =>
    child.once('close', (...end) => resolve(end)),
  );
  const endedAt = Date.now();
  const [told] = linesOf<{ at: number }>(job.folder, 'signals').slice(before);
  return { code, signal, tookMs: told && endedAt - told.at, complaints };
}

function linesOf<T>(folder: string, name: string): T[] {
  return readJsonLines(join(folder, `${name}.jsonl`));
}
