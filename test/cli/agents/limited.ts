import { defineAgent } from 'pawl';
import { reply, scriptedModel } from 'pawl/testing';

/** One request a minute, and one at once. */
export const limits = [{ by: 'model', requestsPerMinute: 1 }];
export const models = { fast: scriptedModel([reply('done')], { resumes: true }) };
export default defineAgent({ id: 'limited', instructions: 'Work.' });
