import { callTool, reply, scriptedModel } from 'pawl/testing';

/**
 * Without a key a script plays the model. For a real one: npm install @ai-sdk/openai, and
 *
 *   import { openai } from '@ai-sdk/openai';
 *   export const model = openai('gpt-5');
 */
export const model = play();

/** The script: look up the order, refund it, answer. A run that continues in another process gets the entry that comes next. */
export function play() {
  const script = [
    callTool('look_up_order', { order: '7' }),
    callTool('refund', { order: '7', cents: 4_200 }),
    reply('Order 7 is refunded: 42.00 EUR.'),
  ];
  return scriptedModel(script, { resumes: true });
}
