import { defineTool, type Tool } from 'pawl';
import { callTool, reply } from 'pawl/testing';
import { toolOf } from '../fixtures/host.ts';
import { unreadable, withoutJson } from './failures.ts';
import { type Port, type Scene, throwing } from './scene.ts';

const script = [callTool('work', { n: 1 }), reply('done')];
const jsonSchema = { type: 'object' };

function withTool(tool: Tool): Scene {
  return { script, tools: [tool] };
}

function withSchema(input: unknown): Scene {
  const tool = defineTool({ name: 'work', description: '', input, effect: 'read', execute: () => 'ok' });
  return withTool(tool as unknown as Tool);
}

function standard(parts: { validate?: () => unknown; input?: () => unknown }): unknown {
  const { validate = () => ({ value: {} }), input = () => jsonSchema } = parts;
  return { '~standard': { version: 1, vendor: 'test', validate, jsonSchema: { input } } };
}

const aiSdk = (validate: () => unknown, shape: object = jsonSchema) => ({
  [Symbol.for('vercel.ai.schema')]: true,
  jsonSchema: shape,
  validate,
});

/** A schema that is bad when the tool is defined is a TypeError there; the run is one whose tools are looked at late. */
const inRecord = (tool: object): Scene => ({ script, tools: { work: tool } });

const ok = { else: 'ok' } as const;

export const toolPorts: readonly Port[] = [
  { name: 'tool.execute (read)', scene: (act) => withTool(toolOf('work', 'read', act)), ends: ok },
  { name: 'tool.execute (once)', scene: (act) => withTool(toolOf('work', 'once', act)), ends: ok },
  {
    name: 'tool.execute, after its time',
    scene: (act) =>
      withTool(toolOf('work', 'read', () => new Promise((done) => setTimeout(done, 60)).then(act), { timeoutMs: 5 })),
    ends: ok,
  },
  ...(['progress', 'attachImages'] as const).map(
    (method): Port => ({
      name: `what a tool gives to context.${method}`,
      scene: (_, failure) =>
        withTool(
          toolOf('work', 'read', async (_input, context) => {
            const given = failure === 'gives what cannot be read' ? unreadable() : withoutJson();
            context[method]([given] as never);
            return 'ok';
          }),
        ),
      failures: ['gives what cannot be read', 'gives what has a throwing toJSON'],
      ends: ok,
    }),
  ),
  { name: 'Standard Schema validate', scene: (act) => withSchema(standard({ validate: act })), ends: ok },
  {
    // Others are read when the agent is defined.
    name: 'Standard Schema jsonSchema of a lazy schema, in a record of tools',
    scene: (act) => inRecord({ inputSchema: () => standard({ input: act }), execute: () => 'ok' }),
    ends: { 'gives what has a throwing toJSON': ['RUN_PANIC', 'NOT_JSON'], else: 'RUN_PANIC' },
  },
  { name: 'AI SDK schema validate', scene: (act) => withSchema(aiSdk(act)), ends: ok },
  {
    name: 'AI SDK schema jsonSchema of a lazy schema, in a record of tools',
    scene: (act) => ({
      ...inRecord({
        inputSchema: () =>
          Object.defineProperty(
            aiSdk(() => ({ success: true })),
            'jsonSchema',
            { get: act },
          ),
        execute: () => 'ok',
      }),
    }),
    ends: { else: 'RUN_PANIC' },
  },
  {
    name: 'AI SDK tool.execute',
    scene: (act) => inRecord({ inputSchema: aiSdk(() => ({ success: true, value: {} })), execute: act }),
    ends: ok,
  },
  {
    name: 'AI SDK tool.execute that yields',
    scene: (act) =>
      inRecord({
        inputSchema: jsonSchema,
        execute: () => ({ [Symbol.asyncIterator]: () => ({ next: act }) }),
      }),
    ends: ok,
  },
  {
    name: 'AI SDK tool.toModelOutput',
    scene: (act) => inRecord({ inputSchema: jsonSchema, execute: () => 'ok', toModelOutput: act }),
    ends: ok,
  },
  {
    name: "a getter in a tool's result",
    scene: (act) =>
      withTool(toolOf('work', 'read', () => Object.defineProperty({}, 'value', { enumerable: true, get: act }))),
    failures: throwing,
    ends: ok,
  },
  {
    name: "a getter in a tool record's tool with a lazy schema",
    scene: (act) => {
      const lazy = { inputSchema: () => aiSdk(() => ({ success: true, value: {} })) };
      return inRecord(Object.defineProperty(lazy, 'execute', { enumerable: true, get: act }));
    },
    failures: throwing,
    ends: { else: 'RUN_PANIC' },
  },
];
