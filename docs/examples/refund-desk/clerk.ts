import { callTools, reply, type ScriptedRequest, scriptedModel } from 'pawl/testing';

/** An order and its sum in a prompt, for example `A1 for 49.90`. */
const REFUND = /(\w{1,20}) for (\d{1,6})\.(\d\d)/g;

/**
 * Takes the place of a language model, so that the example runs without a key: it refunds each order that the prompt names, and
 * then reports. Like a real model it sees nothing but the conversation.
 */
export function clerk() {
  return scriptedModel(Array.from({ length: 1_000 }, () => answer));
}

function answer({ system, messages }: ScriptedRequest) {
  const results = messages.filter(({ role }) => role === 'tool');
  if (results.length > 0) return reply(`Done: ${JSON.stringify(results.at(-1)?.content)}`);
  const orders = [...JSON.stringify(messages).matchAll(REFUND)];
  return callTools(
    orders.map(([, order = '', euros, cents], i) => ({
      name: 'refund',
      // It does what its instructions say: see replay.ts.
      input: { order, cents: Number(euros) * 100 + (system.includes('whole euros') ? 0 : Number(cents)) },
      callId: `refund-${i}`,
    })),
  );
}
