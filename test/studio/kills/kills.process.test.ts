import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { randomFrom, seed, torture } from '../../crash/random.ts';
import { Meddling, type Moment, momentsOf, whyNoStrace } from '../../crash/system-calls.ts';
import { inTurn } from '../../crash/trial.ts';
import { packageFlags } from '../../toolchain/programs.ts';
import type { Job } from './act.ts';
import { actHere, actions } from './actions.ts';
import { World } from './world.ts';

const worker = fileURLToPath(new URL('studio-worker.ts', import.meta.url));

/** Does an action in a process of its own. @returns its complaints */
async function run(job: Job, [command = process.execPath, ...rest]: readonly string[] = []): Promise<string> {
  const node = command === process.execPath ? [] : [process.execPath];
  const child = spawn(command, [...rest, ...node, ...packageFlags, worker, JSON.stringify(job)], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let complaints = '';
  child.stderr.on('data', (text) => {
    complaints += text;
  });
  await once(child, 'close');
  return complaints;
}

interface Trial {
  readonly isKilled: boolean;
  readonly wrongs: readonly string[];
}

/** Kills a Studio at a moment of an action; then the action is there once, or not at all, and can be done. */
async function killedAt(template: World, name: string, moment: Moment): Promise<Trial> {
  const world = template.copy();
  try {
    const { requestFor, count, wrongs } = actions[name] ?? fail(name);
    const request = await requestFor(world);
    const meddling = new Meddling(moment, 'signal=SIGKILL');
    await run({ store: world.store, root: world.root, ...request }, meddling.under);
    const isKilled = meddling.fired();
    const there = await count(world);
    const found = [
      ...(there === 0 || there === 1 ? [] : [`it is there ${there} times`]),
      ...(await wrongs(world, () => actHere(world, request))),
    ];
    return { isKilled, wrongs: found.map((wrong) => `${name}, ${moment.call} ${moment.nth}: ${wrong}`) };
  } finally {
    world.remove();
  }
}

function fail(name: string): never {
  throw new Error(`there is no action ${name}`);
}

describe.skipIf(whyNoStrace)(`a Studio on SQLite that is killed in the middle of an action (seed ${seed})`, () => {
  let template: World;
  beforeAll(async () => {
    template = await World.made();
  });
  afterAll(() => template?.remove());

  /** All moments at which an action changes a file. */
  async function allMoments(action: string): Promise<readonly Moment[]> {
    const world = template.copy();
    try {
      const request = await (actions[action] ?? fail(action)).requestFor(world);
      return await momentsOf(world.root, async (under) => {
        await run({ store: world.store, root: world.root, ...request }, under);
      });
    } finally {
      world.remove();
    }
  }

  test.concurrent.for(Object.keys(actions))(
    'leaves %s there once or not at all, and it can be done again (studio 26)',
    { timeout: 1_800_000 },
    async (action) => {
      const moments = torture > 1 ? await allMoments(action) : [draw(action)];
      const trials = await Promise.all(moments.map((moment) => inTurn(() => killedAt(template, action, moment))));
      expect(
        trials.flatMap(({ wrongs }) => wrongs),
        `PAWL_SEED=${seed}`,
      ).toEqual([]);
      const killed = trials.filter(({ isKilled }) => isKilled).length;
      if (torture > 1) console.log(`${action}: ${killed} of ${trials.length} were killed`);
      expect(killed).toBeGreaterThanOrEqual(torture > 1 ? trials.length * 0.6 : 1);
    },
  );
});

/** A moment that each run of the action has, drawn anew each time. All of them come with PAWL_TORTURE. */
function draw(action: string): Moment {
  const [call, count] = action === 'apply' ? (['fsync', 4] as const) : (['pwrite64', 8] as const);
  return { call, nth: 1 + Math.floor(randomFrom(seed + Object.keys(actions).indexOf(action))() * count) };
}
