import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineAgent, defineTool } from 'pawl';
import { callTool, fail, reply, scriptedModel } from 'pawl/testing';

/** Notes each payment in a file. With FLAKY set its model refuses after the payment: its request, or with `key` its account. */
const pay = defineTool({
  name: 'pay',
  description: 'Pays.',
  input: { type: 'object' },
  effect: 'once',
  execute: (_, { invocation }) => {
    appendFileSync(join(String(invocation.inputs.cwd), 'paid.txt'), 'paid\n');
    return 'paid';
  },
});

const statusCode = process.env.FLAKY === 'key' ? 401 : 400;
const refusal = fail(Object.assign(new Error('the account is closed'), { statusCode }));
const mended = [callTool('pay'), reply('all is paid')];

export const models = {
  fast: scriptedModel(process.env.FLAKY ? [callTool('pay'), refusal] : mended, { resumes: true }),
};
export default defineAgent({ id: 'flaky', instructions: 'Pay.', tools: [pay] });
