import { RequestError } from '../../http/problem.ts';
import type { GrantedCall, Query } from '../../http/route.ts';
import type { Message, RunExplanation } from '../../index.ts';
import { toolCallsOf, toolResultsOf } from '../../values/message.ts';
import { partOfWait } from '../waits.ts';
import type { ValuePage } from '../wire.ts';
import { outputValue } from './messages.ts';
import { rawOf } from './record-facts.ts';
import { type Inspected, inspect, readInspected } from './record-view.ts';
import { jsonOf } from './shown-value.ts';

/** The length of a piece, in UTF-16 units. */
const PIECE = 262_144;

/** How many of the last messages are searched first for a call, and how many times more each further search has. */
const SEARCHED = 50;
const MORE = 4;

/**
 * Returns a piece of a long value of a run.
 * @throws {RequestError} NOT_FOUND if there is no such value (any more), BAD_REQUEST
 */
export function valuePage(value: unknown, query: Query): ValuePage {
  if (value === undefined) throw new RequestError('NOT_FOUND');
  const kind = typeof value === 'string' ? 'text' : 'json';
  const whole = typeof value === 'string' ? value : jsonOf(value, 2);
  if (whole === undefined) throw new RequestError('NOT_FOUND');
  const [given = '0'] = query.from ?? [];
  if (!/^\d{1,12}$/.test(given)) throw new RequestError('BAD_REQUEST', 'the query needs a number as `from`');
  const from = Number(given);
  const to = from + PIECE;
  const rest = to < whole.length ? { next: String(to) } : {};
  return { kind, text: whole.slice(from, to), chars: whole.length, ...rest };
}

/** Finds a value of the run of a request: undefined if there is none. Of a long record it reads a part, the newest first. */
export async function valueIn(call: GrantedCall, query: Query): Promise<unknown> {
  const { message: [given] = [], call: [callId] = [], wait: [waitId] = [], part: [part] = [] } = query;
  const index = Number(given);
  if (given !== undefined) {
    if (!Number.isSafeInteger(index) || index < 0) return undefined;
    const { seen } = await readInspected(call, { messages: { from: index, to: index + 1 } });
    return partOf(seen.record?.messages[0], Number(part ?? 0));
  }
  if (part === 'raw' && callId === undefined && waitId === undefined)
    return call.grant.all ? rawIn(await readInspected(call)) : undefined;
  const { seen } = await readInspected(call, { messages: { from: 0, to: 0 } });
  const { record, messageCount = 0 } = seen;
  if (callId !== undefined)
    return ofOpenCall(seen, callId, part) ?? searchValue(call, { callId, part, to: messageCount });
  if (waitId !== undefined) return record && partOfWait(record, waitId, part);
  return part === 'critic' ? record?.critic : undefined;
}

function rawIn({ seen: { record } }: Inspected): unknown {
  return record && rawOf(record);
}

/** Searches a call in the messages before an index, from the last one back. */
async function searchValue(
  call: GrantedCall,
  { callId, part, to: end }: { readonly callId: string; readonly part: string | undefined; readonly to: number },
): Promise<unknown> {
  for (let [to, most] = [end, SEARCHED]; to > 0; to -= most, most *= MORE) {
    const { record } = await inspect(call, { messages: { from: Math.max(0, to - most), to } });
    const found = record && ofCall(record.messages, callId, part);
    if (found !== undefined) return found;
  }
  return undefined;
}

function partOf(message: Message | undefined, at: number): unknown {
  if (!message) return undefined;
  if (typeof message.content === 'string') return message.content;
  const part = message.content[at];
  switch (part?.type) {
    case 'text':
    case 'reasoning':
      return part.text;
    case 'tool-call':
      return part.input;
    case 'tool-result':
      return outputValue(part.output);
    default:
      return undefined;
  }
}

function ofOpenCall({ record }: RunExplanation, callId: string, part = 'input'): unknown {
  const open = record?.openStep?.calls.find((each) => each.callId === callId);
  if (part === 'input') return open?.allowed?.input ?? open?.input;
  return part === 'output' && open?.result ? outputValue(open.result) : undefined;
}

function ofCall(messages: readonly Message[], callId: string, part = 'input'): unknown {
  if (part === 'input') return messages.flatMap(toolCallsOf).findLast((each) => each.toolCallId === callId)?.input;
  if (part !== 'output') return undefined;
  const result = messages.flatMap(toolResultsOf).findLast((each) => each.toolCallId === callId);
  return result && outputValue(result.output);
}
