// Its model is down.
import { defineAgent } from 'pawl';
import { fail, scriptedModel } from 'pawl/testing';

export default defineAgent({ id: 'failing', instructions: 'Try.' });
export const models = {
  fast: scriptedModel([fail(Object.assign(new Error('the model\nis down'), { statusCode: 400 }))]),
};
