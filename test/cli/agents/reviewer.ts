// Says on stderr when its model is asked.
import { defineAgent } from 'pawl';
import { reply, scriptedModel } from 'pawl/testing';

const asked = () => {
  console.error('a model was asked');
  return reply('It is fine.');
};

export default defineAgent({ id: 'reviewer', instructions: 'Review.' });
export const models = { fast: scriptedModel([asked, asked, asked]) };
