import { memoryStore } from 'pawl';
import { callTool, hang, reply, type ScriptedEntry, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { hostOf, toolOf, until } from '../fixtures/host.ts';
import { notingCritic } from '../fixtures/noting-ports.ts';
import { afterCrash } from '../fixtures/watched-store.ts';

const tools = [toolOf('look')];
const look = (n: number) => callTool('look', { n });
const never: ScriptedEntry = () => new Promise(() => {});

/** A critic that allows so many more steps each time that they are used up, up to so many times. */
const granting = (by: number, times = 1) => {
  let left = times;
  return notingCritic((run) => ({
    onOutOfSteps: async () => {
      if (left-- > 0) run.raiseSteps(by);
    },
  }));
};

describe('a step limit under a critic', () => {
  test('of 1, raised to 5 by the critic, lets two tool steps and the answer happen (supervision 2)', async () => {
    const critic = granting(4);
    const host = hostOf({
      script: [look(1), look(2), reply('end')],
      tools,
      agent: { maxSteps: 1 },
      ports: { critic },
    });
    expect(await host.run()).toMatchObject({ status: 'ok', output: 'end', iterations: 3 });
    expect(critic.watched[0]?.tallies().maxIterations).toBe(5);
  });

  test('may be raised beforehand, at any sign of life (supervision 2)', async () => {
    const critic = notingCritic((run) => ({ onActivity: ({ type }) => void (type === 'tool' && run.raiseSteps(2)) }));
    const host = hostOf({
      script: [look(1), look(2), reply('end')],
      tools,
      agent: { maxSteps: 1 },
      ports: { critic },
    });
    expect(await host.run()).toMatchObject({ status: 'ok', iterations: 3 });
  });

  test.for([
    ['that is not asked', notingCritic(() => ({}))],
    ['that is asked and raises nothing', granting(0)],
    ['that raises by what is no number of steps', granting(1.5)],
    [
      'that throws when it is asked',
      notingCritic(() => ({
        onOutOfSteps: () => {
          throw new Error('no idea');
        },
      })),
    ],
    ['that rejects', notingCritic(() => ({ onOutOfSteps: () => Promise.reject(new Error('no idea')) }))],
  ] as const)('stands under one %s: STEP_LIMIT, with the limit in the message (executor 16)', async ([, critic]) => {
    const host = hostOf({
      script: [look(1), look(2), reply('never')],
      tools,
      agent: { maxSteps: 2 },
      ports: { critic },
    });
    const result = await host.run();
    expect(result).toMatchObject({ status: 'error', error: { code: 'STEP_LIMIT' }, iterations: 2 });
    expect(result.error?.message).toContain('2 steps');
    expect(host.model.calls).toHaveLength(2);
  });

  test('stands when the critic takes longer than portMs to think (supervision 3)', async () => {
    const clock = testClock();
    const critic = notingCritic(() => ({ onOutOfSteps: () => new Promise(() => {}) }));
    const host = hostOf({ script: [look(1)], tools, clock, agent: { maxSteps: 1 }, ports: { critic } });
    const run = await host.start();
    await until(() => JSON.stringify(run.actor.getSnapshot().value).includes('asking-critic'));
    await clock.advance(29_999);
    expect(run.actor.getSnapshot().status).toBe('active');
    await clock.advance(1);
    expect((await run.result).error?.code).toBe('STEP_LIMIT');
  });

  test('that is raised is asked about again when it is reached again (supervision 2)', async () => {
    const script = [1, 2, 3, 4].map(look);
    const host = hostOf({ script, tools, agent: { maxSteps: 1 }, ports: { critic: granting(1, 3) } });
    const result = await host.run();
    expect(result).toMatchObject({ error: { code: 'STEP_LIMIT' }, iterations: 4 });
    expect(result.error?.message).toContain('4 steps');
  });

  test('can end in a kill instead (supervision 2)', async () => {
    const critic = notingCritic((run) => ({ onOutOfSteps: async () => run.kill('it goes in circles') }));
    const host = hostOf({ script: [look(1)], tools, agent: { maxSteps: 1 }, ports: { critic } });
    expect(await host.run()).toMatchObject({ status: 'killed', error: { message: 'it goes in circles' } });
  });

  test('lets a nudge in before the step that it allows (supervision 2)', async () => {
    const critic = notingCritic((run) => ({
      onOutOfSteps: async () => {
        run.nudge('Come to an end.');
        run.raiseSteps(1);
      },
    }));
    const host = hostOf({ script: [look(1), reply('end')], tools, agent: { maxSteps: 1 }, ports: { critic } });
    await host.run();
    expect(JSON.stringify(host.model.calls[1]?.messages)).toContain('Come to an end.');
  });

  test('of a phase stays what it is: the critic is not asked, and what it allows is no phase’s (pipeline 10)', async () => {
    let asked = 0;
    const critic = notingCritic((run) => ({
      onActivity: ({ type }) => void (type === 'step' && run.raiseSteps(10)),
      onOutOfSteps: async () => {
        asked += 1;
        run.raiseSteps(10);
      },
    }));
    const phases = [
      { name: 'a', instructions: 'A', maxSteps: 2 },
      { name: 'b', instructions: 'B', maxSteps: 1 },
    ];
    const host = hostOf({ script: [look(1), look(2), reply('end')], tools, agent: { phases }, ports: { critic } });
    expect(await host.run()).toMatchObject({ status: 'ok', output: 'end', iterations: 3 });
    expect(host.model.calls.map(({ system }) => system)).toEqual(['A', 'A', 'B']);
    expect(asked).toBe(0);
  });
});

describe('what a critic granted', () => {
  test('is in the record, and holds in the next process without asking it again (supervision 3)', async () => {
    const store = memoryStore();
    const agent = { maxSteps: 1 };
    const first = hostOf({
      script: [look(1), look(2), never],
      tools,
      agent,
      store,
      ports: { critic: granting(2) },
    });
    await first.start({ runId: 'r' });
    await until(async () => (await store.load('r'))?.iteration === 2);
    expect((await store.load('r'))?.raisedSteps).toBe(2);
    const critic = granting(9);
    const next = hostOf({
      script: [look(3), look(4), hang()],
      tools,
      agent,
      store: await afterCrash(store),
      ports: { critic },
    });
    const run = await next.start({ runId: 'r' });
    await until(() => next.model.calls.length === 3);
    expect(critic.watched[0]?.tallies().maxIterations).toBe(12);
    await run.cancel();
  });

  test('holds without a critic too: it is the run’s own (supervision 3)', async () => {
    const store = memoryStore();
    const agent = { maxSteps: 1 };
    const first = hostOf({
      script: [look(1), look(2), never],
      tools,
      agent,
      store,
      ports: { critic: granting(2) },
    });
    await first.start({ runId: 'r' });
    await until(async () => (await store.load('r'))?.iteration === 2);
    const next = hostOf({ script: [look(3), look(4)], tools, agent, store: await afterCrash(store) });
    expect(await next.run({ runId: 'r' })).toMatchObject({ error: { code: 'STEP_LIMIT' }, iterations: 3 });
  });

  test('and what it remembers comes back as `saved`, as it was at the last save (supervision 3)', async () => {
    const store = memoryStore();
    const remembering = (seen: unknown[]) =>
      notingCritic((run) => {
        let steps = Number(run.saved?.steps ?? 0);
        seen.push(run.saved);
        return {
          onActivity: ({ type }) => {
            if (type === 'step') steps += 1;
          },
          state: () => ({ steps, words: ['plain', 'JSON'] }),
        };
      });
    const first: unknown[] = [];
    const host = hostOf({
      script: [look(1), look(2), look(3), never],
      tools,
      store,
      ports: { critic: remembering(first) },
    });
    await host.start({ runId: 'r' });
    await until(async () => (await store.load('r'))?.iteration === 3);
    const second: unknown[] = [];
    const left = await afterCrash(store);
    await hostOf({ tools, store: left, ports: { critic: remembering(second) } }).run({ runId: 'r' });
    expect(first).toEqual([undefined]);
    // What it does in answer to a step stands in the save after the one of that step.
    expect(second).toEqual([{ steps: 2, words: ['plain', 'JSON'] }]);
    expect(Object.isFrozen(second[0])).toBe(false);
  });

  test('stays as it was said last, when it cannot be said or is no plain JSON (supervision 3)', async () => {
    const store = memoryStore();
    let calls = 0;
    const answers = [
      () => ({ n: 1 }),
      () => JSON.parse('{'),
      () => ({ when: new Date() }),
      () => Promise.reject(new Error('no')),
    ];
    const critic = notingCritic(() => ({ state: () => (answers[Math.min(calls++, 3)] as () => never)() }));
    const host = hostOf({
      script: [look(1), look(2), look(3), look(4), never],
      tools,
      store,
      ports: { critic },
    });
    await host.start({ runId: 'r' });
    await until(async () => (await store.load('r'))?.iteration === 4);
    expect(calls).toBeGreaterThan(3);
    expect((await store.load('r'))?.critic).toEqual({ n: 1 });
  });
});
