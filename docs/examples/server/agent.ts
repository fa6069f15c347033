// The agent of the example server. Its model is a small program that counts to what the prompt says, one tool call a step;
// put a model of the AI SDK in its place.
import { setTimeout as sleep } from 'node:timers/promises';
import { defineAgent, defineTool, type Message } from 'pawl';
import { callTool, reply, type ScriptedRequest, scriptedModel } from 'pawl/testing';

const count = defineTool({
  name: 'count',
  description: 'Counts one further.',
  effect: 'idempotent',
  input: { type: 'object', properties: { to: { type: 'integer' } }, required: ['to'] },
  execute: async ({ to }: { to: number }, { signal }) => {
    await sleep(Number(process.env.COUNT_MS ?? 200), undefined, { signal });
    return { counted: to };
  },
});

export const agent = defineAgent({ id: 'counter', instructions: 'Count.', tools: [count], maxIterations: 1_000 });

function turn({ messages }: ScriptedRequest) {
  const goal = Number(/\d+/.exec(textOf(messages[0]))?.[0] ?? 3);
  const counted = messages.filter((message) => message.role === 'tool').length;
  return counted < goal ? callTool('count', { to: counted + 1 }) : reply(`Counted to ${counted}.`);
}

function textOf(message: Message | undefined): string {
  return JSON.stringify(message?.content ?? '');
}

export const model = scriptedModel(Array.from({ length: 10_000 }, () => turn));
