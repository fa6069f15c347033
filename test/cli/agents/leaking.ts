// Its provider quotes the request in an error.
import { defineAgent } from 'pawl';
import { fail, scriptedModel } from 'pawl/testing';

export default defineAgent({ id: 'leaking', instructions: 'Fail.' });
export const models = {
  fast: scriptedModel([
    fail(Object.assign(new Error(`the token ${process.env.MY_SERVICE_TOKEN} is not valid`), { statusCode: 400 })),
  ]),
};
