import { RequestError } from '../../http/problem.ts';
import type { Query } from '../../http/route.ts';
import type { Message, RunInspection } from '../../index.ts';
import { toolCallsOf, toolResultsOf } from '../../values/message.ts';
import { partOfWait } from '../waits.ts';
import type { ValuePage } from '../wire.ts';
import { outputValue } from './messages.ts';
import { rawOf } from './record-facts.ts';
import { jsonOf } from './shown-value.ts';

/** The length of a piece, in UTF-16 units. */
const PIECE = 262_144;

/**
 * Returns a piece of a long value of a run.
 * @param all whether the reader sees the runs of all
 * @throws {RequestError} NOT_FOUND if there is no such value (any more), BAD_REQUEST
 */
export function valuePage(seen: RunInspection, query: Query, all: boolean): ValuePage {
  const value = valueIn(seen, query, all);
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

function valueIn({ record }: RunInspection, query: Query, all: boolean): unknown {
  if (!record) return undefined;
  const { message: [index] = [], call: [callId] = [], wait: [waitId] = [], part: [part] = [] } = query;
  if (index !== undefined) return partOf(record.messages[Number(index)], Number(part ?? 0));
  if (callId !== undefined) return ofCall(record, callId, part);
  if (waitId !== undefined) return partOfWait(record, waitId, part);
  if (part === 'critic') return record.critic;
  return part === 'raw' && all ? rawOf(record) : undefined;
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

/** A call of the open step, or of any message. */
function ofCall({ openStep, messages }: NonNullable<RunInspection['record']>, callId: string, part = 'input'): unknown {
  const open = openStep?.calls.find((call) => call.callId === callId);
  if (part === 'input') {
    const calls = messages.flatMap(toolCallsOf);
    return open?.allowed?.input ?? open?.input ?? calls.findLast(({ toolCallId }) => toolCallId === callId)?.input;
  }
  if (part !== 'output') return undefined;
  const results = messages.flatMap(toolResultsOf);
  const output = open?.result ?? results.findLast(({ toolCallId }) => toolCallId === callId)?.output;
  return output && outputValue(output);
}
