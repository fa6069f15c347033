// Counts to three with a tool, one number a step. HOLD names a file: the second number is not said before it exists.
import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { defineAgent, defineTool } from 'pawl';
import { callTool, reply, type ScriptedRequest, scriptedModel } from 'pawl/testing';

const { HOLD } = process.env;

const count = defineTool({
  name: 'count',
  description: 'Says a number.',
  input: { type: 'object', properties: { n: { type: 'number' } } },
  effect: 'read',
  execute: async ({ n }, { signal }) => {
    if (n === 2 && HOLD !== undefined) console.error('holding');
    while (n === 2 && HOLD !== undefined && !existsSync(HOLD)) await sleep(10, undefined, { signal });
    return `number ${n}`;
  },
});

/** What comes next stands in the transcript, as with a real model: a process that goes on finds it there. */
const next = ({ messages }: ScriptedRequest) => {
  const counted = messages.filter(({ role }) => role === 'tool').length;
  return counted < 3 ? callTool('count', { n: counted + 1 }) : reply(`counted to ${counted}`);
};

export default defineAgent({ id: 'counter', name: 'Counter', instructions: 'Count to three.', tools: [count] });
// `pawl resume` may have several runs of it going at once.
export const models = { fast: scriptedModel(Array.from({ length: 100 }, () => next)) };
export const prompt = 'count, please';
