import { callTool, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { hostOf, toolOf } from '../fixtures/host.ts';
import { startClient } from './client.ts';
import { found } from './search.ts';

const chatter = 'x'.repeat(2_000);
const prompt = 'Look at everything.';

/** A run of so many steps whose model and tool talk a lot, as the client of an inspector tells of it. */
async function talked(steps: number) {
  const client = await startClient();
  const script = Array.from({ length: steps }, (_, n) => callTool('look', { n, why: `why ${n} ${chatter}` }));
  const host = hostOf({
    script: [...script, reply('done')],
    tools: [toolOf('look', 'read', async ({ n }) => `result ${n} ${chatter}`)],
    agent: { maxSteps: steps + 1 },
    inspect: client.inspect,
  });
  expect(await host.run({ runId: 'r', prompt })).toMatchObject({ status: 'ok', iterations: steps + 1 });
  await client.arrived();
  return client.frames;
}

/** The frames from the beginning of a step's model call to that of the next one. */
function ofStep(frames: readonly string[], step: number): string[] {
  const beginOf = (number: number) => frames.findIndex((frame) => JSON.parse(frame).name === `model.${number}`);
  const [begin, end] = [beginOf(step), beginOf(step + 1)];
  expect(Math.min(begin, end - begin)).toBeGreaterThan(0);
  return frames.slice(begin, end);
}

describe('the frames of the inspector’s client', () => {
  test('have a summary of two fields for the transcript, in each of them (architecture 3)', async () => {
    const frames = await talked(3);
    const transcripts = frames.flatMap((frame) => found(JSON.parse(frame), 'transcript'));
    expect(transcripts.length).toBeGreaterThan(20);
    for (const transcript of transcripts) {
      expect(transcript).toEqual({ messages: expect.any(Number), size: expect.any(Number) });
    }
    expect(frames.flatMap((frame) => found(JSON.parse(frame), 'messages')).filter(Array.isArray)).toEqual([]);
  });

  test('do not grow with the run: those of step 40 are as many and as large as those of step 2 (architecture 5)', async () => {
    const frames = await talked(41);
    const [early, late] = [ofStep(frames, 2), ofStep(frames, 40)];
    const largest = (some: readonly string[]) => Math.max(...some.map(({ length }) => length));
    expect(late).toHaveLength(early.length);
    expect(largest(early)).toBeGreaterThan(chatter.length);
    expect(largest(late)).toBeLessThan(1.05 * largest(early));
    const inAll = (some: readonly string[]) => some.join('').length;
    expect(inAll(late)).toBeLessThan(1.05 * inAll(early));
  });

  test('tell what the model asked and the tool answered in their own step and in no later one (architecture 5)', async () => {
    const frames = await talked(6);
    for (const said of ['why 1 ', 'result 1 ']) {
      const at = frames.flatMap((frame, index) => (frame.includes(said) ? [index] : []));
      const next = frames.findIndex((frame) => JSON.parse(frame).name === 'tool.3.0');
      expect(at.length).toBeGreaterThan(0);
      expect(Math.max(...at)).toBeLessThan(next);
    }
  });
});
