import { memoryStore } from 'pawl';
import { callTool, callTools, hang, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { createActor } from 'xstate';
import { hostOf, toolOf, until } from '../fixtures/host.ts';
import { hostMachine, outputOf } from '../fixtures/host-machine.ts';
import { afterCrash } from '../fixtures/watched-store.ts';
import { found, inspector } from './frames.ts';

const tools = [toolOf('look'), toolOf('send', 'once')];
const twoTools = callTools([
  { name: 'look', input: {} },
  { name: 'send', input: {} },
]);

describe('an inspector', () => {
  test.for(['executor', 'run'])(
    'given to the %s sees the actors of a run by the names of what they do (architecture 9)',
    async (where) => {
      const seen = inspector();
      const host = hostOf({ script: [twoTools, reply('done')], tools, ...(where === 'executor' ? seen : {}) });
      await host.run({ runId: 'r' }, where === 'run' ? seen : {});
      expect(seen.actors).toEqual(['run:r', 'resolve', 'model.1', 'tool.1.0', 'tool.1.1', 'model.2', 'settle']);
    },
  );

  test('sees the same of a run that is resumed, numbered as before (architecture 9)', async () => {
    const store = memoryStore();
    const first = hostOf({ script: [twoTools, hang()], tools, checkpoints: store });
    await first.start({ runId: 'r' });
    await until(async () => first.model.calls.length === 2 && (await store.load('r'))?.iteration === 1);
    const seen = inspector();
    const next = hostOf({
      script: [callTool('look'), reply('done')],
      tools,
      checkpoints: await afterCrash(store),
      ...seen,
    });
    await next.run({ runId: 'r' });
    expect(seen.actors).toEqual(['run:r', 'resolve', 'model.2', 'tool.2.0', 'model.3', 'settle']);
  });

  test('of the executor and one of the run both see every event', async () => {
    const [ofExecutor, ofRun] = [inspector(), inspector()];
    const host = hostOf({ script: [twoTools, reply('done')], tools, inspect: ofExecutor.inspect });
    await host.run({}, { inspect: ofRun.inspect });
    expect(ofRun.events.length).toBeGreaterThan(20);
    expect(ofExecutor.events).toEqual(ofRun.events);
  });

  test('sees the states that a run goes through, and its chart with all descriptions', async () => {
    const seen = inspector();
    await hostOf({ script: [callTool('look'), reply('done')], tools, inspect: seen.inspect }).run({ runId: 'r' });
    const parsed = seen.frames.map((frame) => JSON.parse(frame));
    const ofRun = parsed.filter(({ id, type }) => id === 'run:r' && type === '@xstate.snapshot');
    const states = ofRun.map(({ snapshot }) => JSON.stringify(snapshot.value));
    expect(new Set(states)).toEqual(
      new Set([
        '"resolving"',
        '{"running":"calling-model"}',
        '{"running":"calling-tools"}',
        '"completing"',
        '"settled"',
      ]),
    );
    const { definition } = parsed.find(({ id, type }) => id === 'run:r' && type === '@xstate.actor');
    expect(Object.keys(JSON.parse(definition).states)).toContain('leaving-running');
  });

  test("of a host's own machine sees the run's actors under the id that the host gave it (architecture 8)", async () => {
    const seen = inspector();
    const { executor, agent } = hostOf({ script: [callTool('look'), reply('done')], tools });
    const host = createActor(hostMachine(executor, agent), { inspect: seen.inspect }).start();
    await outputOf(host as never);
    expect(seen.actors.slice(1)).toEqual(['run', 'resolve', 'model.1', 'tool.1.0', 'model.2', 'settle']);
  });
});

describe('the frames of an inspector', () => {
  const chatter = 'x'.repeat(2_000);
  const talking = (steps: number) => {
    const script = Array.from({ length: steps }, (_, n) => callTool('look', { n }));
    const talkative = [toolOf('look', 'read', async ({ n }) => `${n} ${chatter}`)];
    return hostOf({ script: [...script, reply('done')], tools: talkative, agent: { maxIterations: steps + 1 } });
  };
  const framesOf = async (steps: number) => {
    const seen = inspector();
    await talking(steps).run({}, seen);
    return seen.frames;
  };

  test('have a summary of two fields for the transcript, in each of them (architecture 3)', async () => {
    const transcripts = (await framesOf(3)).flatMap((frame) => found(JSON.parse(frame), 'transcript'));
    expect(transcripts.length).toBeGreaterThan(10);
    for (const transcript of transcripts) {
      expect(transcript).toEqual({ messages: expect.any(Number), size: expect.any(Number) });
    }
  });

  test('do not grow with the run: at 40 steps as large as at 5 (architecture 5)', async () => {
    const largest = async (steps: number) => Math.max(...(await framesOf(steps)).map(({ length }) => length));
    const [few, many] = [await largest(5), await largest(40)];
    expect(many).toBeLessThan(few + 1_000);
  });

  test('tell a result of a tool in its own step and in no later one (architecture 5)', async () => {
    const frames = await framesOf(6);
    const first = frames.map((frame, at) => (frame.includes(`"0 ${chatter}`) ? at : -1)).filter((at) => at >= 0);
    const second = frames.findIndex((frame) => JSON.parse(frame).id === 'tool.2.0');
    expect(first.length).toBeGreaterThan(0);
    expect(Math.max(...first)).toBeLessThan(second);
  });
});
