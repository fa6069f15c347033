import { RequestError } from '../../http/problem.ts';
import type { Message, RunExplanation } from '../../index.ts';
import { steeredBy } from '../../run/command.ts';
import type { ToolOutput } from '../../values/message.ts';
import type { JsonValue, MessageView, RecordedMessagesPage } from '../wire.ts';
import { Shown } from './shown-value.ts';

/** Most parts of a message that are sent. */
const MESSAGE_PARTS = 200;
/** About how many bytes a page has: it ends after the message that reaches them. */
const PAGE_BYTES = 2 ** 20;

/**
 * Makes a page of the messages of a run.
 * @param seen with the messages from the first one of the page on
 * @param page.from how many messages come before it
 */
export function messagesPage(
  { record, messageCount: total = 0 }: Pick<RunExplanation, 'record' | 'messageCount'>,
  { from, limit }: { readonly from: number; readonly limit: number },
): RecordedMessagesPage {
  if (!record) return { items: [], total: 0, missing: '' };
  const items: MessageView[] = [];
  let bytes = 0;
  for (const [at, message] of record.messages.entries()) {
    if (items.length === limit || bytes >= PAGE_BYTES) break;
    const view = messageView(message, from + at);
    items.push(view);
    bytes += Buffer.byteLength(JSON.stringify(view));
  }
  const end = from + items.length;
  return { items, total, ...(end < total ? { next: String(end) } : {}) };
}

/** Reads the place of a page. @param after the `next` of the page before @throws {RequestError} BAD_REQUEST */
export function placeInMessages(after = '0'): number {
  if (/^\d{1,9}$/.test(after)) return Number(after);
  throw new RequestError('BAD_REQUEST', 'the query has an `after` that is not the `next` of a page');
}

type Parts = Exclude<Message['content'], string>;

function messageView(message: Message, index: number): MessageView {
  const { role } = message;
  const shown = new Shown();
  const at = (part: number) => `message=${index}&part=${part}`;
  if (typeof message.content === 'string') return { index, role, texts: [shown.text(message.content, at(0))] };
  const parts = message.content.slice(0, MESSAGE_PARTS) as Parts;
  const found: Found = { texts: [], reasoning: [], files: [], calls: [], results: [] };
  for (const [i, part] of parts.entries()) addPart(found, part, { shown, at: at(i) });
  const more = message.content.length - parts.length;
  const { texts, ...others } = found;
  const by = steeredBy(message);
  const given = Object.entries(others).filter(([, list]) => list.length > 0);
  return {
    index,
    role,
    ...(by ? { by } : {}),
    ...(isSummary(message) ? { isSummary: true } : {}),
    texts,
    ...Object.fromEntries(given),
    ...(more > 0 ? { more } : {}),
  };
}

type Found = {
  [Key in 'texts' | 'reasoning' | 'files' | 'calls' | 'results']: NonNullable<MessageView[Key]>[number][];
};

function addPart(
  found: Found,
  part: Parts[number],
  { shown, at }: { readonly shown: Shown; readonly at: string },
): void {
  switch (part.type) {
    case 'text':
      found.texts.push(shown.text(part.text, at));
      return;
    case 'reasoning':
      found.reasoning.push(shown.text(part.text, at));
      return;
    case 'file':
    case 'reasoning-file':
      found.files.push({ mediaType: part.mediaType, bytes: JSON.stringify(part.data).length });
      return;
    case 'tool-call': {
      const { toolCallId: callId, toolName: name, input } = part;
      found.calls.push({ callId, name, input: shown.value(input as JsonValue, at) });
      return;
    }
    case 'tool-result': {
      const { toolCallId: callId, toolName: name, output } = part;
      found.results.push({ callId, name, output: shown.value(outputValue(output), at), isError: isError(output) });
      return;
    }
    default:
  }
}

/** Returns what a tool returned: its text or its JSON. */
export function outputValue(output: ToolOutput): JsonValue {
  if (output.type === 'execution-denied') return output.reason ?? '';
  return output.value as JsonValue;
}

function isError({ type }: ToolOutput): boolean {
  return type === 'error-text' || type === 'error-json' || type === 'execution-denied';
}

/** The first line of a compactor's summary. */
function isSummary({ role, content }: Message): boolean {
  const [first] = content;
  if (role !== 'user' || typeof first !== 'object' || first.type !== 'text') return false;
  return /^\[Summary of \d{1,9} /.test(first.text);
}
