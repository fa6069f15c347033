/*
 * A process that is killed in the middle of a step: `node writing-child.ts <root> <path> <the calls of the step as JSON>`.
 * Of its own tools `hold` never ends, and `send` has effects.
 */

import { defineTool } from 'pawl';
import { fanOut } from 'pawl/fan-out';
import { callTools, scriptedModel } from 'pawl/testing';

const [root = '', path = '', calls = ''] = process.argv.slice(2);
const any = { type: 'object' } as const;
const say = (value: unknown) => process.stdout.write(`${JSON.stringify(value)}\n`);

const hold = defineTool({
  name: 'hold',
  description: 'Never ends.',
  effect: 'read',
  input: any,
  execute: () => {
    say('held');
    return new Promise<string>(() => {});
  },
});
const send = defineTool({
  name: 'send',
  description: 'Sends.',
  effect: 'once',
  input: any,
  execute: () => 'it is sent',
});

const models = { a: scriptedModel([callTools(JSON.parse(calls))]) };
await fanOut({ prompt: 'Which?', models, tools: [hold, send], path, root });
