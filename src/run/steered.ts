import { isObject } from '../values/json.ts';
import { enterMessage, type Message } from '../values/message.ts';

/**
 * Makes the message of a text that reaches a live run. One that was sent to the run's thread carries its id there, so that the
 * end of the run finds which messages it has delivered. Providers ignore options that are not theirs.
 */
export function steeredMessage(text: string, messageId: string | undefined): Message {
  const named = messageId === undefined ? {} : { providerOptions: { pawl: { messageId } } };
  return enterMessage({ role: 'user', content: [{ type: 'text', text }], ...named });
}

/** Returns the id under which a message was sent to the thread of a live run; undefined for any other message. */
export function messageIdOf({ providerOptions }: Message): string | undefined {
  const pawl = providerOptions?.pawl;
  return isObject(pawl) && typeof pawl.messageId === 'string' ? pawl.messageId : undefined;
}
