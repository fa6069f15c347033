import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineAgent, defineTool } from 'pawl';
import { callTool, fail, reply, scriptedModel } from 'pawl/testing';

/** Notes each payment in a file. With FLAKY set its model refuses after the payment: its request, with `key` its account; with `setup` it has no key. */
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
const keyless = Object.assign(new Error('OPENAI_API_KEY is missing'), { name: 'AI_LoadAPIKeyError' });
const refused = Object.assign(new Error('the account is closed'), { statusCode });
const refusal = fail(process.env.FLAKY === 'setup' ? keyless : refused);
const mended = [callTool('pay'), reply('all is paid')];

export const models = {
  fast: scriptedModel(process.env.FLAKY ? [callTool('pay'), refusal] : mended, { resumes: true }),
};
export default defineAgent({ id: 'flaky', instructions: 'Pay.', tools: [pay] });
