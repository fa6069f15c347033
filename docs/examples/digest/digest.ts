/*
 * A digest of the day before, each weekday at seven in Berlin. Any number of these processes may run, on one host or, with a store in
 * PostgreSQL, on many: each morning has one digest.
 *
 *   pawl work docs/examples/digest/digest.ts --store runs.db     looks after the schedule, and works on its runs
 *   pawl schedules --store runs.db                               what is next, and what was missed
 */
import { writeFileSync } from 'node:fs';
import { defineAgent, defineTool, type Schedule } from 'pawl';
import { callTool, reply, type ScriptedRequest, scriptedModel } from 'pawl/testing';

/** For a try without waiting for the morning: DIGEST_EVERY=10s. */
const { DIGEST_EVERY, DIGEST_FOLDER = '.' } = process.env;
const times = DIGEST_EVERY ? { every: DIGEST_EVERY } : { cron: '0 7 * * 1-5', timeZone: 'Europe/Berlin' };

const day = { type: 'object', properties: { day: { type: 'string' } }, required: ['day'] } as const;

const orders = defineTool({
  name: 'orders',
  description: 'Returns the orders of a day.',
  input: day,
  effect: 'read',
  execute: () => [
    { order: 'A1', cents: 4_990 },
    { order: 'A2', cents: 1_200 },
  ],
});

const post = defineTool({
  name: 'post',
  description: 'Posts the digest of a day.',
  input: { ...day, properties: { ...day.properties, text: { type: 'string' } } },
  // The same file with the same text: a crash may repeat it.
  effect: 'idempotent',
  execute: ({ day, text }) => {
    writeFileSync(`${DIGEST_FOLDER}/digest-${String(day).slice(0, 10)}.txt`, `${text}\n`);
    return 'posted';
  },
});

const digest = defineAgent({
  id: 'digest',
  instructions: 'Read the orders of the day, sum them up in one sentence, and post it.',
  tools: [orders, post],
});
export default digest;

export const schedules: readonly Schedule[] = [
  {
    id: 'digest',
    ...times,
    start: (tick) => {
      const before = new Date(tick.getTime() - 86_400_000).toISOString().slice(0, 10);
      return { agent: digest, invocation: { prompt: `The day is ${before}.` } };
    },
  },
];

/** In place of a model. Without this export `pawl work` takes the one that the environment names. */
const next = ({ messages }: ScriptedRequest) => {
  const done = messages.filter(({ role }) => role === 'tool').length;
  const day = /\d{4}-\d\d-\d\d/.exec(JSON.stringify(messages))?.[0] ?? '';
  if (done === 0) return callTool('orders', { day });
  if (done === 1) return callTool('post', { day, text: `2 orders on ${day}, 61.90 in all.` });
  return reply('posted');
};
export const models = { fast: scriptedModel(Array.from({ length: 1_000 }, () => next)) };
