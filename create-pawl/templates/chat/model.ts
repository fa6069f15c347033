import { callTool, reply, type ScriptedRequest, scriptedModel } from 'pawl/testing';

/**
 * Without a key a script plays the model. For a real one, `npm install @ai-sdk/openai@4` and:
 *
 *   import { openai } from '@ai-sdk/openai';
 *   export const model = openai('gpt-5');
 */
export const model = play();

/** The script: for each message of a chat it looks up the order, refunds it, and answers. */
export function play() {
  return scriptedModel(
    Array.from({ length: 1_000 }, () => next),
    { resumes: true },
  );
}

function next({ messages }: ScriptedRequest) {
  const asked = messages.findLastIndex(({ role }) => role === 'user');
  const order = /\d+/.exec(JSON.stringify(messages[asked]?.content))?.[0] ?? '7';
  const [, looked, paid] = [messages[asked], ...messages.slice(asked + 1).filter(({ role }) => role === 'tool')];
  if (!looked) return callTool('look_up_order', { order });
  if (!paid) return callTool('refund', { order, cents: 4_200 });
  const isPaid = JSON.stringify(paid.content).includes('paid 4200 cents');
  return reply(isPaid ? `Order ${order} is refunded: 42.00 EUR.` : `Order ${order} is not refunded.`);
}
