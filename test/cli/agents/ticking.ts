/** An agent with a schedule: `pawl work` begins a run of it each second. */
import { defineAgent, type Schedule } from 'pawl';
import { reply, scriptedModel } from 'pawl/testing';

const agent = defineAgent({ id: 'ticking', instructions: 'Tick.' });
export default agent;
export const models = { fast: scriptedModel(Array.from({ length: 100 }, () => reply('ticked'))) };
export const schedules: readonly Schedule[] = [
  { id: 'tick', every: '1s', start: () => ({ agent, invocation: { prompt: 'Tick.' } }) },
];
