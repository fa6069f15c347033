import type { LogFields, Logger } from '../../index.ts';
import { toErrorData } from '../../values/error-data.ts';
import { oneLine } from './control-characters.ts';
import { count } from './format.ts';
import type { Output } from './output.ts';

/** The most characters of an id in a line. */
const ID_CHARS = 200;

/** Returns a logger whose lines are those of a command on stderr. @param unsaid the events of lines that it does not print */
export function loggerOf(output: Pick<Output, 'say'>, ...unsaid: readonly string[]): Logger {
  return {
    warn: (message, fields) => {
      const { event, error } = fields;
      if (unsaid.includes(String(event))) return;
      const facts = factsIn(message, fields);
      const about = facts.length === 0 ? '' : ` (${facts.join(', ')})`;
      const why = error === undefined ? '' : `: ${typeof error === 'string' ? error : toErrorData(error).message}`;
      output.say(oneLine(`pawl: warning: ${message}${about}${why}`));
    },
  };
}

/** What a line is about, by its ids and its numbers. A run says enough of its agent. */
function factsIn(
  message: string,
  { schedule, runId, agentId, callId, ticks, runs, count: times }: LogFields,
): string[] {
  const id = (what: string, given: unknown) =>
    typeof given === 'string' && given !== '' ? [`${what} ${given.slice(0, ID_CHARS).toWellFormed()}`] : [];
  const number = (given: unknown, one: string) => (typeof given === 'number' ? [count(given, one)] : []);
  return [
    ...id('schedule', schedule),
    ...id('run', runId),
    ...(runId === undefined ? id('agent', agentId) : []),
    ...id('call', callId),
    ...number(ticks, 'tick'),
    ...number(runs, 'run'),
    // The sentence of a line may have it as a number of its own.
    ...(message.includes(String(times)) ? [] : number(times, 'time')),
  ];
}
