import { isObject } from '../values/json.ts';
import { enterMessage, type Message } from '../values/message.ts';
import { isPerson } from './command.ts';
import type { Person } from './waits/wait.ts';

/** Where a steered message comes from. */
export interface SteeredBy {
  /** The id under which it was sent to the thread of the run. */
  readonly messageId?: string | undefined;
  /** The person who sent it. */
  readonly by?: Person | undefined;
}

/**
 * Makes the message of a text that reaches a live run. One that was sent to the run's thread carries its id there, so that the
 * end of the run finds which messages it has delivered. Providers ignore options that are not theirs, so the person is named
 * there as well: for who reads the conversation, not for the model.
 */
export function steeredMessage(text: string, { messageId, by }: SteeredBy = {}): Message {
  const pawl = {
    ...(messageId === undefined ? {} : { messageId }),
    ...(by ? { by: { id: by.id, ...(by.name === undefined ? {} : { name: by.name }) } } : {}),
  };
  const named = messageId === undefined && !by ? {} : { providerOptions: { pawl } };
  return enterMessage({ role: 'user', content: [{ type: 'text', text }], ...named });
}

/** Returns the id under which a message was sent to the thread of a live run; undefined for any other message. */
export function messageIdOf({ providerOptions }: Message): string | undefined {
  const pawl = providerOptions?.pawl;
  return isObject(pawl) && typeof pawl.messageId === 'string' ? pawl.messageId : undefined;
}

/** Returns the person who steered a run with a message; undefined if it is not known, or the message is another one. */
export function steeredBy({ providerOptions }: Message): Person | undefined {
  const pawl = providerOptions?.pawl;
  return isObject(pawl) && isPerson(pawl.by) ? pawl.by : undefined;
}
