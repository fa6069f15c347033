import type { Message } from 'pawl';

export const said = (text: string): Message => ({ role: 'user', content: [{ type: 'text', text }] });
export const answered = (text: string): Message => ({ role: 'assistant', content: [{ type: 'text', text }] });

let count = 0;

/** One step: a turn with its calls, and what they gave. */
export function step(name: string, input: unknown, value: string, text = ''): Message[] {
  count += 1;
  const call = { toolCallId: `c${count}`, toolName: name };
  return [
    {
      role: 'assistant',
      content: [
        { type: 'reasoning', text: `thought ${count}`, providerOptions: { any: { signature: `s${count}==` } } },
        ...(text === '' ? [] : [{ type: 'text' as const, text }]),
        { type: 'tool-call', ...call, input },
      ],
    },
    { role: 'tool', content: [{ type: 'tool-result', ...call, output: { type: 'text', value } }] },
  ];
}

/** An opening and so many steps. */
export function history(steps: number, size = 400): Message[] {
  const work = Array.from({ length: steps }, (_, i) => step('look', { page: i }, `page ${i} ${'x'.repeat(size)}`));
  return [said('Read the book.'), ...work.flat()];
}

/** What is wrong with a history, or undefined: the rule of the contract, in words of its own. */
export function faultOf(messages: readonly Message[]): string | undefined {
  const waiting: string[] = [];
  for (const [i, { role, content }] of messages.entries()) {
    if (typeof content === 'string') continue;
    if (role !== 'tool' && waiting.length > 0) return `a call is not answered at ${i}`;
    for (const part of content) {
      if (part.type === 'tool-result' && waiting.shift() !== part.toolCallId) return `a stray result at ${i}`;
      if (part.type === 'tool-call') waiting.push(part.toolCallId);
    }
  }
  return waiting.length > 0 ? 'a call is not answered at the end' : undefined;
}
