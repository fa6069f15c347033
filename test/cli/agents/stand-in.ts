import { defineAgent } from 'pawl';
import { fail, reply, scriptedModel } from 'pawl/testing';

const named = (modelId: string, script: Parameters<typeof scriptedModel>[0]) =>
  Object.assign(scriptedModel(script), { provider: 'lab', modelId });
const overloaded = Object.assign(new Error('Overloaded'), { statusCode: 529 });

/** The first model of its list is overloaded, twice; the second one answers. */
export const models = {
  fast: [
    { model: named('first', [fail(overloaded), fail(overloaded)]), maxAttempts: 2 },
    named('second', [reply('Here I am.')]),
  ],
};
export default defineAgent({ id: 'stand-in', instructions: 'Answer.' });
