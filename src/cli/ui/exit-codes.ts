import { readProperty } from '../../values/error-data.ts';

/** What a supervisor reads of the end of a command. Help and the page of operations are made of it. */
export const exitCodeTable = {
  ok: { code: 0, means: 'done; `work`: drained after a signal', supervisor: 'it does not restart' },
  failed: {
    ...{ code: 1, means: 'the run failed, something needs a person, or not all runs were left in time' },
    supervisor: 'it restarts',
  },
  badInput: {
    ...{ code: 2, means: 'usage or setup, and nothing was done: only a person can mend it' },
    supervisor: '`RestartPreventExitStatus=2`',
  },
  unavailable: { code: 69, means: 'the store does not answer', supervisor: 'it restarts' },
  waiting: {
    ...{ code: 75, means: 'the run waits, is parked, or was left for the next process' },
    supervisor: 'it restarts; a Job counts it as not done',
  },
  interrupted: { code: 130, means: 'left at Ctrl-C; after another signal 128 + its number', supervisor: '' },
} as const;

type ExitName = keyof typeof exitCodeTable;

/** The exit codes of the command. */
export const exitCodes: { readonly [Name in ExitName]: (typeof exitCodeTable)[Name]['code'] } = {
  ok: exitCodeTable.ok.code,
  failed: exitCodeTable.failed.code,
  badInput: exitCodeTable.badInput.code,
  unavailable: exitCodeTable.unavailable.code,
  waiting: exitCodeTable.waiting.code,
  interrupted: exitCodeTable.interrupted.code,
};

/** Errors of the system, and of drivers, that pass when a server is there again. */
const passing: ReadonlySet<unknown> = new Set([
  ...['ECONNREFUSED', 'ECONNRESET', 'ETIMEDOUT', 'EPIPE', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND', 'EAI_AGAIN'],
  'PORT_TIMEOUT',
]);
/** Classes of SQLSTATE: connections, resources of the server, its start and stop. */
const passingStates = ['08', '53', '57P'];
/** SQLite: another process holds its lock. */
const BUSY: readonly unknown[] = [5, 6];
/** How deep causes are looked for. */
const CAUSES = 5;

/** Returns whether an error says that a store does not answer now: later it may. A wrong password or address is none. */
export function isAway(error: unknown): boolean {
  for (let each = error, depth = 0; depth < CAUSES && each; depth++) {
    const code = readProperty(each, 'code');
    const isState =
      typeof code === 'string' && code.length === 5 && passingStates.some((start) => code.startsWith(start));
    if (passing.has(code) || isState || BUSY.includes(readProperty(each, 'errcode')) || isTimeout(each)) return true;
    const [first] = (readProperty(each, 'errors') ?? []) as readonly unknown[];
    each = readProperty(each, 'cause') ?? first;
  }
  return false;
}

/** The pool of `pg`, and the store over it, have no code for a server that does not answer. */
function isTimeout(error: unknown): boolean {
  const message = String(readProperty(error, 'message'));
  return message.includes('timeout exceeded when trying to connect') || message.includes('Connection terminated');
}
