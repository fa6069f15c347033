import { defineTool, type Message, memoryStore, type RunEvent } from 'pawl';
import { callTool, callTools, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { hostOf, toolOf } from '../fixtures/host.ts';

const OSC_52 = '\u001b]52;c;ZXZpbA==\u0007';
const hostileNames = [
  ['an OSC 52 sequence', OSC_52, 'lookup\\u001b'],
  ['a workflow command of a CI', '\n::error::owned', '\\u000a::error::owned'],
  ['a bidi override', '\u202egnp.exe', '\\u202egnp.exe'],
  ['129 characters', 'x'.repeat(123), `${'x'.repeat(58)}...`],
  ['a megabyte', 'é'.repeat(1_000_000), '\\u00e9'],
] as const;

const resultsIn = (message: Message | undefined) =>
  ((message?.content ?? []) as unknown as { toolName: string; output: { type: string; value: string } }[]).map(
    ({ toolName, output }) => ({ toolName, ...output }),
  );

describe('a call of a name outside the allowed form', () => {
  test.for(hostileNames)(
    'with %s is an error result: control characters and what is longer than 200 reach no event, record or request (edges 9)',
    async ([, ending, shown]) => {
      const name = `lookup${ending}`;
      const recorded = name.slice(0, 200).replace(/[\p{Cc}\u202e]/gu, '\ufffd');
      const records: string[] = [];
      const store = memoryStore();
      const checkpoints = {
        ...store,
        save: async (...all: Parameters<typeof store.save>) => {
          records.push(JSON.stringify(all[0]));
          return store.save(...all);
        },
        append: async (...all: Parameters<typeof store.append>) => {
          records.push(JSON.stringify(all[0]));
          return store.append(...all);
        },
      };
      const host = hostOf({
        script: [callTool(name, { id: 7 }), reply('end')],
        tools: [toolOf('lookup')],
        store: checkpoints,
      });
      const run = await host.start({ runId: 'r' });
      const events: RunEvent[] = [];
      const watching = (async () => {
        for await (const event of run.events()) events.push(event);
      })();
      const result = await run.result;
      await watching;
      expect(result.status).toBe('ok');
      const [output] = resultsIn(host.model.calls[1]?.messages.at(-1));
      expect(output).toMatchObject({ type: 'error-text' });
      expect(output?.toolName).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
      expect(output?.value).toContain(shown);
      expect(output?.value).toMatch(/^"[\x20-\x7e]{1,500}" is not a tool name: it takes 1 to 128 of the characters/);
      expect(events.filter(({ type }) => type === 'tool.started')).toMatchObject([{ name: recorded }]);
      expect(resultsIn(result.messages[2])).toMatchObject([{ toolName: recorded }]);
      const everything = [events, result, host.model.calls.map(({ messages }) => messages)].map((each) =>
        JSON.stringify(each),
      );
      expect(records.length).toBeGreaterThan(0);
      for (const text of [...everything, ...records]) {
        if (recorded !== name) expect(text).not.toContain(JSON.stringify(name).slice(1, -1));
        expect(text).not.toMatch(/"[^"\\]*lookup\\u001b]|"lookup\\n|lookup\u202e|é{200}/);
      }
    },
  );

  test.for(['search.v2', 'mcp:files-read', 'a'.repeat(128), 'A_b-9'])(
    'is not what %s is: it is an unknown tool, recorded under its own name and sent under one that providers take (edges 9)',
    async (name) => {
      const host = hostOf({ script: [callTool(name), reply('end')] });
      const { messages } = await host.run();
      const answer = { type: 'error-text', value: `there is no tool named "${name}"` };
      expect(resultsIn(messages[2])).toEqual([{ toolName: name, ...answer }]);
      const sent = name.replace(/[.:]/g, '_').slice(0, 64);
      expect(resultsIn(host.model.calls[1]?.messages.at(-1))).toEqual([{ toolName: sent, ...answer }]);
    },
  );

  test('counts as a failed call: a run that makes nothing else ends as a tool loop', async () => {
    const script = [1, 2, 3, 4].map((n) => callTool(`look up ${n}`));
    const { status, error } = await hostOf({ script, tools: [toolOf('lookup')] }).run();
    expect([status, error?.code]).toEqual(['error', 'TOOL_LOOP']);
  });

  test('leaves its siblings alone', async () => {
    const script = [
      callTools([
        { name: 'lookup', input: {} },
        { name: 'look up', input: {} },
        { name: 'lookup', input: { again: true } },
      ]),
      reply('end'),
    ];
    const host = hostOf({ script, tools: [toolOf('lookup')] });
    await host.run();
    const types = resultsIn(host.model.calls[1]?.messages.at(-1)).map(({ type }) => type);
    expect(types).toEqual(['text', 'error-text', 'text']);
  });
});

describe('an input with a key by which code reaches a prototype', () => {
  const inputs = [
    ['__proto__ at the top', '{"__proto__":{"isAdmin":true}}', '__proto__'],
    ['__proto__ in a list in an object', '{"a":[1,{"b":{"__proto__":1}}]}', '__proto__'],
    ['constructor.prototype', '{"constructor":{"prototype":{"x":1}}}', 'constructor.prototype'],
    ['constructor.prototype below', '{"list":[[{"constructor":{"prototype":null}}]]}', 'constructor.prototype'],
  ] as const;
  const seen: unknown[] = [];
  const execute = (input: unknown) => {
    seen.push(input);
    return 'ran';
  };
  const kinds = {
    'a JSON Schema': toolOf('merge', 'once', execute),
    'a Standard Schema': defineTool({ name: 'merge', description: '', input: z.looseObject({}), execute }),
    'an AI SDK tool': { description: '', inputSchema: z.looseObject({}), execute },
  };

  test.for(
    Object.entries(kinds).flatMap(([kind, tool]) =>
      inputs.map(([what, json, key]) => ({ kind, what, json, key, tool })),
    ),
  )('never reaches a tool with $kind: $what is an error result that names it', async ({ json, key, tool }) => {
    seen.length = 0;
    const tools = ('name' in tool ? [tool] : { merge: tool }) as never;
    const host = hostOf({ script: [callTool('merge', JSON.parse(json)), reply('end')], agent: { tools } });
    expect((await host.run()).status).toBe('ok');
    expect(seen).toEqual([]);
    const [output] = resultsIn(host.model.calls[1]?.messages.at(-1));
    expect(output?.type).toBe('error-text');
    expect(output?.value).toContain(`it holds the key ${key}, which no tool takes`);
  });

  test('counts as a failed call: a run that sends nothing else ends as a tool loop', async () => {
    const script = [1, 2, 3, 4].map((n) => callTool('merge', JSON.parse(`{"n":${n},"__proto__":{}}`)));
    const { error } = await hostOf({ script, tools: [toolOf('merge')] }).run();
    expect(error?.code).toBe('TOOL_LOOP');
  });

  test.for(['{"constructor":"Renzo Piano"}', '{"prototype":{"a":1}}', '{"constructor":{"name":"A"}}'])(
    'is not what harmless keys are: %s reaches the tool',
    async (json) => {
      seen.length = 0;
      const tool = toolOf('merge', 'once', execute);
      await hostOf({ script: [callTool('merge', JSON.parse(json)), reply('end')], tools: [tool] }).run();
      expect(seen).toEqual([JSON.parse(json)]);
    },
  );

  test('in an answer with an output schema is a problem that the model is asked to repair', async () => {
    const output = z.looseObject({});
    const host = hostOf({ script: [reply('{"__proto__":{"a":1}}'), reply('{"a":1}')], agent: { output } });
    const { status, data } = await host.run();
    expect([status, data]).toEqual(['ok', { a: 1 }]);
    expect(JSON.stringify(host.model.calls[1]?.messages.at(-1))).toContain('__proto__');
  });
});
