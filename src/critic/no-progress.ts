import { canonicalJson, type JsonValue } from '../values/json.ts';
import { type Message, textOf, toolCallsOf, toolResultsOf } from '../values/message.ts';

/** One turn of the model and what its tools answered, reduced to what can be compared. */
interface Turn {
  readonly text: string;
  readonly calls: string;
  /** The tools, whatever they were given, and what came of it. */
  readonly results: string;
}

/**
 * Whether the last turns were all alike: the same text, the same calls, or the same tools with the same results.
 * @param steps how many turns are compared; with fewer in sight nothing can be said
 */
export function isWithoutProgress(tail: readonly Message[], steps: number): boolean {
  const turns = turnsOf(tail).slice(-steps);
  if (turns.length < steps) return false;
  return (['text', 'calls', 'results'] as const).some((aspect) => {
    const [first] = turns;
    return first?.[aspect] !== '' && turns.every((turn) => turn[aspect] === first?.[aspect]);
  });
}

function turnsOf(tail: readonly Message[]): Turn[] {
  return tail.flatMap((message, i) => {
    if (message.role !== 'assistant') return [];
    const calls = toolCallsOf(message);
    const next = tail[i + 1];
    const results = next ? toolResultsOf(next) : [];
    return {
      text: textOf(message).trim(),
      calls: calls.map(({ toolName, input }) => `${toolName} ${canonicalJson(input as JsonValue)}`).join('\n'),
      results: results.map(({ toolName, output }) => `${toolName} ${canonicalJson(output as JsonValue)}`).join('\n'),
    };
  });
}
