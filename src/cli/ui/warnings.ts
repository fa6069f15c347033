import type { Logger } from '../../index.ts';
import { toErrorData } from '../../values/error-data.ts';
import { oneLine } from './control-characters.ts';
import type { Output } from './output.ts';

/** Returns a logger whose lines are those of a command on stderr. @param unsaid the events of lines that it does not print */
export function loggerOf(output: Output, ...unsaid: readonly string[]): Logger {
  return {
    warn: (message, { event, error }) => {
      if (unsaid.includes(String(event))) return;
      const why = error === undefined ? '' : `: ${typeof error === 'string' ? error : toErrorData(error).message}`;
      output.say(oneLine(`pawl: warning: ${message}${why}`));
    },
  };
}
