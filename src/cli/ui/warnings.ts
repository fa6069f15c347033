import type { Logger } from '../../index.ts';
import { toErrorData } from '../../values/error-data.ts';
import { oneLine } from './control-characters.ts';
import type { Output } from './output.ts';

/** Returns a logger whose lines are those of a command on stderr. @param own the event of a line that the command prints itself */
export function loggerOf(output: Output, own?: string): Logger {
  return {
    warn: (message, { event, error }) => {
      if (event === own) return;
      const why = error === undefined ? '' : `: ${typeof error === 'string' ? error : toErrorData(error).message}`;
      output.say(oneLine(`pawl: warning: ${message}${why}`));
    },
  };
}
