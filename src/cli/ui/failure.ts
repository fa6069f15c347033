import { NO_CODEC, pageOfCode, UNKNOWN_KEY } from '../../values/error-codes.ts';
import { hasCode, readProperty, toErrorData } from '../../values/error-data.ts';
import { oneLine } from './control-characters.ts';
import { exitCodes, isAway } from './exit-codes.ts';
import { PAWL } from './shell-words.ts';

export { oneLine } from './control-characters.ts';
export { exitCodes } from './exit-codes.ts';

/** The error that ends a command: one line that says what is wrong and what to do, and an exit code. */
export class Failure extends Error {
  readonly exitCode: number;

  constructor(message: string, options: { exitCode?: number; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    this.name = 'Failure';
    this.exitCode = options.exitCode ?? (isAway(options.cause) ? exitCodes.unavailable : exitCodes.badInput);
  }
}

/** Advice for errors whose messages are also for hosts, and so cannot mention the command line. */
const advice: Readonly<Record<string, string>> = {
  AGENT_NOT_FOUND: 'name its module with --agent',
  CHECKPOINT_CORRUPT: `its bytes are kept: restore the store from a copy, or remove it with \`${PAWL} prune --quarantined\``,
  FAN_OUT_CONFLICT: `continue with \`${PAWL} ask --continue\``,
  DEADLINE_EXCEEDED: "raise the agent's maxRuntimeMs",
  MODEL_OUTAGE: `start it again with \`${PAWL} run\`, or with \`${PAWL} unpark\` if it was parked`,
  MODEL_STALLED: `start it again with \`${PAWL} run\``,
  RUN_ID_CONFLICT: '--run-id gives the id; the request is the agent, the prompt and the folder',
  RUN_OWNED_ELSEWHERE: 'wait for that process, or end it and then resume the run',
  RUN_PARKED: `\`${PAWL} show\` shows its progress; \`${PAWL} unpark\` releases it and resets its attempts, \`${PAWL} cancel\` ends it`,
  STEP_LIMIT: "raise the agent's maxSteps, or give it less to do",
  UNKNOWN_TIER:
    'give the agent a model, export one of this name from its module (`models`), or set PAWL_MODEL=provider/model',
  UNKNOWN_TOOL: 'export it from the agent module (`tools`); a record of the run is kept',
};

/** Errors after which nothing has changed: the run was not started, or its record is unchanged. */
const refusals: readonly string[] = [
  'AGENT_NOT_FOUND',
  'CHECKPOINT_CORRUPT',
  'RUN_NOT_FOUND',
  'CHECKPOINT_TOO_NEW',
  'FAN_OUT_CONFLICT',
  'FAN_OUT_OWNED_ELSEWHERE',
  'INVALID_RUN_ID',
  'KEY_MISMATCH',
  'NOT_DURABLE',
  'NOT_JSON',
  'RUN_ID_CONFLICT',
  'RUN_OWNED_ELSEWHERE',
  'STORE_FULL',
  'STORE_UNAVAILABLE',
  'UNKNOWN_TIER',
  'UNKNOWN_TOOL',
  'WRITE_CONFLICT',
  'WRITE_OUTSIDE_ROOT',
];

/** Returns the exit code of the command for an error. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof Failure) return error.exitCode;
  if (hasCode(error, 'STORE_UNAVAILABLE') && isAway(error)) return exitCodes.unavailable;
  const isRefusal = error instanceof TypeError || refusals.some((code) => hasCode(error, code));
  return isRefusal ? exitCodes.badInput : exitCodes.failed;
}

/** Returns what a user can do about an error of this code; undefined if its message already says it. */
export function adviceFor(code: string, message: string): string | undefined {
  return code === 'KEY_MISMATCH' ? keyAdvice(message) : advice[code];
}

/** The codec may be missing, or lack this key. For an unencrypted record, the message contains the advice. */
function keyAdvice(message: string): string | undefined {
  if (message.includes(UNKNOWN_KEY)) {
    return 'add it to the `keys` of the codec, which comes from the agent module or from the module that PAWL_CODEC names';
  }
  return message.includes(NO_CODEC) ? 'name the module that exports it in PAWL_CODEC' : undefined;
}

/** Formats an error as one line: what happened, and what to do if that is known. */
export function lineOf(error: unknown): string {
  const { message, code, cause } = toErrorData(error);
  const why = code === 'NOT_DURABLE' && cause ? `${message}: ${cause.message}` : message;
  const todo = error instanceof Failure ? undefined : adviceFor(code, message);
  return oneLine(todo === undefined ? why : `${why}; ${todo}`);
}

/** Returns where an error of Pawl is explained; undefined for another one. */
export function pageOfFailure(error: unknown): string | undefined {
  return pageOfCode(readProperty(error instanceof Failure ? error.cause : error, 'code'));
}

/** Returns the stack of an error, if PAWL_DEBUG asks for it. */
export function stackOf(error: unknown): string {
  return String(readProperty(error, 'stack') ?? error);
}
