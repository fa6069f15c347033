import { appendFileSync } from 'node:fs';
import { type Agent, defineAgent, defineTool } from 'pawl';

const text = { type: 'string', minLength: 1 };

/** An agent that writes mails, and asks a person before one leaves. @param outbox the file that stands for the mail server */
export function mailAgent(outbox: string): Agent {
  const sendMail = defineTool({
    name: 'send_mail',
    description: 'Sends a mail.',
    effect: 'once',
    input: {
      type: 'object',
      properties: { to: text, subject: text, body: text },
      required: ['to', 'subject', 'body'],
      additionalProperties: false,
    },
    needsApproval: true,
    approval: { prompt: ({ to }) => `Send this mail to ${to}?`, editable: true },
    execute: ({ to, subject, body }, { idempotencyKey }) => {
      appendFileSync(outbox, `${JSON.stringify({ key: idempotencyKey, to, subject, body })}\n`);
      return `the mail was sent to ${to}`;
    },
  });
  return defineAgent({ id: 'mails', instructions: 'You write mails. Ask before you send one.', tools: [sendMail] });
}
