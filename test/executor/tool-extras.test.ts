import { createExecutor, defineAgent, defineTool, memoryStore, type RunEvent } from 'pawl';
import { callTool, reply, scriptedModel } from 'pawl/testing';
import { describe, expect, test } from 'vitest';

const input = { type: 'object' };
const png = { mediaType: 'image/png', data: new Uint8Array([1, 2, 3]) };
const files = (value: unknown) => JSON.stringify(value).split('"type":"file"').length - 1;

function runOf(
  tool: ReturnType<typeof defineTool>,
  script = [callTool('look', {}), callTool('look', { again: 1 }), reply('done')],
) {
  const model = scriptedModel(script);
  const executor = createExecutor({ models: { fast: model }, store: memoryStore() });
  const agent = defineAgent({ id: 'viewer', instructions: 'Look.', tools: [tool] });
  return { model, start: () => executor.start(agent, { prompt: 'Look.' }) };
}

describe('a tool that attaches an image', () => {
  test('shows it to the model in the next turn, once: as part of its result (executor 18)', async () => {
    let calls = 0;
    const tool = defineTool({
      name: 'look',
      description: 'Looks.',
      effect: 'read',
      input,
      execute: async (_, { attachImages }) => {
        calls += 1;
        if (calls === 1) attachImages([png]);
        return { seen: calls };
      },
    });
    const { model, start } = runOf(tool as never);
    const { messages } = await (await start()).result;
    expect(model.calls.map((call) => files(call.messages))).toEqual([0, 1, 1]);
    expect(messages[2]).toMatchObject({
      role: 'tool',
      content: [
        {
          output: {
            type: 'content',
            value: [
              { type: 'text', text: '{"seen":1}' },
              { type: 'file', mediaType: 'image/png', data: { type: 'data', data: 'AQID' } },
            ],
          },
        },
      ],
    });
  });

  test('and then throws shows nothing: an error result carries no images', async () => {
    const tool = defineTool({
      name: 'look',
      description: 'Looks.',
      effect: 'read',
      input,
      execute: async (_, { attachImages }) => {
        attachImages([png]);
        throw new Error('the lens is dirty');
      },
    });
    const { messages } = await (await runOf(tool as never, [callTool('look', {}), reply('done')]).start()).result;
    expect(files(messages)).toBe(0);
    expect(JSON.stringify(messages[2])).toContain('the lens is dirty');
  });
});

test('a tool’s progress is an event of the run, in order, and nothing of it is in the transcript', async () => {
  const tool = defineTool({
    name: 'look',
    description: 'Looks.',
    effect: 'read',
    input,
    execute: async (_, { progress }) => {
      progress({ percent: 50 });
      progress(() => 'not JSON: dropped');
      return 'seen';
    },
  });
  const run = await runOf(tool as never, [callTool('look', {}), reply('done')]).start();
  const events: RunEvent[] = [];
  for await (const event of run.events()) events.push(event);
  const ofTool = events.filter(({ type }) => type.startsWith('tool.'));
  expect(ofTool.map(({ type }) => type)).toEqual(['tool.started', 'tool.progress', 'tool.done']);
  expect(ofTool[1]).toMatchObject({ name: 'look', progress: { percent: 50 } });
  expect(JSON.stringify((await run.result).messages)).not.toContain('percent');
});

test('what an AI SDK tool yields before its last value is progress', async () => {
  async function* execute() {
    yield { at: 1 };
    yield { at: 2 };
    yield 'end';
  }
  const executor = createExecutor({ models: { fast: scriptedModel([callTool('look', {}), reply('done')]) } });
  const agent = defineAgent({
    id: 'viewer',
    instructions: 'Look.',
    tools: { look: { description: 'Looks.', inputSchema: input, execute } },
  });
  const run = await executor.start(agent, { prompt: 'Look.' });
  const progress: unknown[] = [];
  for await (const event of run.events()) if (event.type === 'tool.progress') progress.push(event.progress);
  expect(progress).toEqual([{ at: 1 }, { at: 2 }]);
});
