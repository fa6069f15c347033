import type { Logger } from '../../index.ts';
import { toErrorData } from '../../values/error-data.ts';
import { oneLine } from './control-characters.ts';
import type { Output } from './output.ts';

/** Returns a logger whose warnings are lines of a command on stderr. @param own a message that the command prints itself */
export function loggerOf(output: Output, own?: string): Logger {
  return {
    warn: (message, { error }) => {
      if (message === own) return;
      const why = error === undefined ? '' : `: ${typeof error === 'string' ? error : toErrorData(error).message}`;
      output.say(oneLine(`pawl: warning: ${message}${why}`));
    },
  };
}
