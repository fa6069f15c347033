import { defineAgent, defineTool } from 'pawl';
import { callTool, callTools, reply, scriptedModel } from 'pawl/testing';

const refund = defineTool({
  name: 'refund',
  description: 'Pays money back.',
  input: { type: 'object', properties: { cents: { type: 'number' } }, required: ['cents'] },
  effect: 'once',
  needsApproval: true,
  approval: { prompt: ({ cents }) => `Pay ${cents} cents\u001b[31m?`, editable: true },
  execute: async ({ cents }) => `paid ${cents} cents`,
});

const pay = defineTool({
  name: 'pay',
  description: 'Pays.',
  input: { type: 'object', properties: { cents: { type: 'number' } }, required: ['cents'] },
  effect: 'once',
  needsApproval: true,
  execute: async ({ cents }) => `paid ${cents} cents`,
});

const transfer = defineTool({
  name: 'transfer',
  description: 'Pays, and its process dies.',
  input: { type: 'object' },
  effect: 'once',
  execute: () => process.kill(process.pid, 'SIGKILL'),
});

const which = defineTool({
  name: 'which',
  description: 'Asks which one.',
  input: { type: 'object' },
  execute: async (_, context) => `chosen: ${await context.ask({ question: 'Which one?', options: ['red', 'blue'] })}`,
});

const paid = defineTool({
  name: 'paid',
  description: 'Waits for a payment.',
  input: { type: 'object' },
  execute: async (_, context) => `got: ${JSON.stringify(await context.waitFor('payment', { key: 'order 7' }))}`,
});

/** Pays money back, waits for a payment, or asks which one; the answer of its model is the result of the call. */
const model = scriptedModel(
  Array.from({ length: 20 }, () => ({ messages }) => {
    const last = messages.at(-1);
    if (last?.role === 'tool') {
      const [part] = last.content;
      const output = part?.type === 'tool-result' ? part.output : undefined;
      return reply(JSON.stringify(output && 'value' in output ? output.value : output));
    }
    const asked = JSON.stringify(messages[0]);
    if (asked.includes('payment')) return callTool('paid', {});
    if (asked.includes('crash')) {
      const names = asked.includes('beside') ? ['transfer', 'refund'] : ['transfer'];
      return callTools(names.map((name) => ({ name, input: { cents: 700 } })));
    }
    if (asked.includes('both'))
      return callTools(['refund', 'pay'].map((name, i) => ({ name, input: { cents: 700 + i } })));
    if (asked.includes('exactly')) return callTool('pay', { cents: 700 });
    return asked.includes('which') ? callTool('which', {}) : callTool('refund', { cents: 700 });
  }),
);

export const models = { fast: model };
export const prompt = 'refund';
export default defineAgent({
  id: 'refunder',
  name: 'Refunder',
  instructions: 'Refund.',
  tools: [refund, pay, transfer, which, paid],
});
