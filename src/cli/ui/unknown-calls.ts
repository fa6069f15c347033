import { oneLine } from './failure.ts';
import type { Output } from './output.ts';

/** Calls of `once` tools during which the process of their run died. */
export interface UnknownCalls {
  readonly runId: string;
  /** The name of each one's tool. */
  readonly tools: readonly string[];
}

/** The most names of tools in a line. */
const SHOWN_TOOLS = 5;

/** Says which outcomes are unknown, in one line. */
export function sayUnknown(output: Output, { runId, tools }: UnknownCalls): void {
  const more = tools.length > SHOWN_TOOLS ? ` and ${tools.length - SHOWN_TOOLS} more` : '';
  const names = `${tools.slice(0, SHOWN_TOOLS).join(', ')}${more}`;
  const [what, when] =
    tools.length === 1
      ? [`the outcome of ${names} is unknown`, 'its process died during the call']
      : [`the outcomes of ${names} are unknown`, 'their process died during the calls'];
  output.say(oneLine(`run ${runId}: ${what}: ${when}; check by hand`));
}
