// Stands in for a language model in the docs' examples: mails Ada, Grace and Edsger, one a turn, then answers.
// It decides by the transcript it is given, so that it behaves the same in each process.
import { appendFileSync } from 'node:fs';
import { callTool, hang, reply, scriptedModel } from 'pawl/testing';

const customers = ['ada', 'grace', 'edsger'];

function turn({ messages }: { readonly messages: readonly { readonly role: string }[] }) {
  const mailed = messages.filter((message) => message.role === 'tool').length;
  const name = `turn ${mailed + 1}`;
  appendFileSync('turns.log', `${name}\n`);
  if (process.env.HANG_AT === name) {
    process.stderr.write(name);
    return hang();
  }
  const next = customers[mailed];
  return next ? callTool('send_mail', { to: `${next}@example.com` }) : reply(`All greeted: ${mailed} mails.`);
}

export const model = scriptedModel([turn, turn, turn, turn]);

/** As the provider package: a missing key is found by the first call. */
export const openai = (_: string) => ({
  ...model,
  doStream: async (options: Parameters<typeof model.doStream>[0]) => {
    if (process.env.OPENAI_API_KEY) return model.doStream(options);
    throw Object.assign(new Error('OpenAI API key is missing.'), { name: 'AI_LoadAPIKeyError' });
  },
});
