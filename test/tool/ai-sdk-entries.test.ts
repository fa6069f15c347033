import { defineAgent, defineTool, memoryStore } from 'pawl';
import { callTool, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { toolboxOf } from '../../src/tool/toolbox.ts';
import { gate, hostOf } from '../fixtures/host.ts';

const weather = (execute: () => unknown = () => 'sunny') => ({
  description: 'The weather.',
  inputSchema: z.object({ city: z.string() }),
  execute,
});
const define = (entry: object) => () => defineAgent({ id: 'a', instructions: '', tools: { weather: entry as never } });
const toolsOf = (entry: object) => [...toolboxOf(define(entry)().tools, []).tools.values()];

describe('an AI SDK tool in a record may say what the AI SDK has no word for', () => {
  test('effect, timeoutMs and concurrency of its entry are those of the tool', () => {
    const entry = { tool: weather(), effect: 'read', timeoutMs: 5, concurrency: 2 };
    expect(toolsOf(entry)).toMatchObject([{ name: 'weather', effect: 'read', timeoutMs: 5, concurrency: 2 }]);
    expect(toolsOf({ tool: weather() })).toMatchObject([{ name: 'weather', effect: 'once' }]);
    expect(toolsOf(weather())).toMatchObject([{ name: 'weather', effect: 'once' }]);
  });

  test('one tool may stand under two entries with different effects', () => {
    const tool = weather();
    expect([toolsOf({ tool, effect: 'read' }), toolsOf({ tool, effect: 'idempotent' }), toolsOf(tool)]).toMatchObject([
      [{ effect: 'read' }],
      [{ effect: 'idempotent' }],
      [{ effect: 'once' }],
    ]);
  });

  test('an idempotent tool of the AI SDK is called again after a crash, and one without an effect is not', async () => {
    const callsAfterACrash = async (effect: object) => {
      const [store, left] = [memoryStore(), gate()];
      const tools = (execute: () => unknown) => ({ weather: { tool: weather(execute), ...effect } });
      const script = [callTool('weather', { city: 'Bonn' })];
      const first = hostOf({ store, agent: { tools: tools(() => left.pass()) }, script });
      await first.start({ runId: 'r' });
      await left.reached;
      const record = await store.load('r');
      if (!record) throw new Error('no record');
      const other = memoryStore();
      await other.save(record);
      let calls = 0;
      const again = tools(() => {
        calls += 1;
        return 'sunny';
      });
      const next = hostOf({ store: other, agent: { tools: again }, script: [reply('done')] });
      await next.run({ runId: 'r' });
      left.open();
      return calls;
    };
    expect(await callsAfterACrash({ effect: 'idempotent' })).toBe(1);
    expect(await callsAfterACrash({})).toBe(0);
  });

  test.for<[string, object, string]>([
    ['an unknown effect', { tool: weather(), effect: 'reed' }, 'tool "weather": effect must be'],
    [
      'an unknown key',
      { tool: weather(), timeout: 5 },
      'tool "weather": unknown option timeout; did you mean timeoutMs?',
    ],
    ['a limit that is none', { tool: weather(), timeoutMs: -1 }, 'tool "weather": timeoutMs must be a number above 0'],
    [
      'an effect beside the fields of the tool, which would not be read,',
      { ...weather(), effect: 'read' },
      "tools.weather: effect is among the tool's own fields and is not read; write { tool: …, effect: … }",
    ],
    ['a tool that is none', { tool: 'weather', effect: 'read' }, 'tools.weather.tool is not a tool'],
    [
      'a tool of defineTool, which says its effect itself',
      {
        tool: defineTool({ name: 'weather', description: '', input: z.object({}), execute: () => '' }),
        effect: 'read',
      },
      'tools.weather.tool was made with defineTool and has its own effect and limits: pass it without an entry',
    ],
  ])('%s is refused when the agent is defined', ([, entry, message]) => {
    expect(define(entry)).toThrow(TypeError);
    expect(define(entry)).toThrow(message);
  });

  test('a name that no tool may have is refused when the agent is defined', () => {
    const tools = { 'my tool': weather() as never };
    expect(() => defineAgent({ id: 'a', instructions: '', tools })).toThrow(
      /a tool's name is 1 to 64 .*, not "my tool"/,
    );
  });
});
