import type { UIMessage } from 'ai';
import type { ChatOfPage } from './use-chat.ts';

/** The open approval of the newest message. */
export function openCard({ messages }: ChatOfPage): { readonly approval: { readonly id: string } } | undefined {
  const isOpen = (part: object) => 'state' in part && part.state === 'approval-requested';
  return messages.at(-1)?.parts.find(isOpen) as { readonly approval: { readonly id: string } } | undefined;
}

/** The texts of a message. */
export function textOf(message: UIMessage | undefined): string {
  return message?.parts.flatMap((part) => (part.type === 'text' ? part.text : [])).join('|') ?? '';
}

/** Messages without times, and with waits numbered in the order in which they come: two runs of the same story are equal. */
export function told(messages: readonly UIMessage[]): unknown {
  const waits: string[] = [];
  for (const part of messages.flatMap(({ parts }) => parts))
    if (part.type === 'data-pawl-wait') waits.push(part.id ?? '');
  const text = JSON.stringify(messages, (key, value) => (['createdAt', 'dueAt', 'wakeAt'].includes(key) ? 0 : value));
  return JSON.parse(waits.reduce((all, id, i) => all.replaceAll(id, `wait ${i}`), text));
}
