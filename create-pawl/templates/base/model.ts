import { callTool, reply, type ScriptedRequest, scriptedModel } from 'pawl/testing';

/**
 * Without a key a script plays the model. For a real one, `npm install @ai-sdk/openai@4` and:
 *
 *   import { openai } from '@ai-sdk/openai';
 *   export const model = openai('gpt-5');
 */
export const model = play();

/** The script: look up the order of the prompt, refund it, answer. A run that continues in another process gets the entry that comes next. */
export function play() {
  const script = [
    (request: ScriptedRequest) => callTool('look_up_order', { order: orderOf(request) }),
    (request: ScriptedRequest) => callTool('refund', { order: orderOf(request), cents: 4_200 }),
    (request: ScriptedRequest) => {
      const isPaid = JSON.stringify(request.messages.at(-1)).includes('paid 4200');
      return reply(`Order ${orderOf(request)} is ${isPaid ? 'refunded: 42.00 EUR' : 'not refunded'}.`);
    },
  ];
  return scriptedModel(script, { resumes: true });
}

function orderOf({ messages }: ScriptedRequest): string {
  return /order (\w+)/.exec(JSON.stringify(messages[0]))?.[1] ?? '7';
}
