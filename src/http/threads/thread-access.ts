import { defineAgent, type Thread, type ThreadOptions } from '../../index.ts';
import { hasCode } from '../../values/error-data.ts';
import { RequestError } from '../problem.ts';
import type { GrantedCall } from '../route.ts';

/** The parameter by which a caller who sees everything names the caller of a thread. */
export const callerQuery = {
  caller: {
    description: 'The caller of the thread, if it is another one: for a grant that sees everything.',
    schema: { type: 'string' },
  },
} as const;

/**
 * Returns the caller whose threads a request is about: its own, or the one that a grant for everything names.
 * @throws {RequestError} NOT_FOUND for the threads of another caller
 */
function threadCaller({ grant, query }: GrantedCall): string {
  const { caller: [named = grant.callerId] = [] } = query;
  if (named === grant.callerId || grant.all) return named;
  throw new RequestError('NOT_FOUND');
}

/** Returns the thread of the path, which may not exist. @throws {RequestError} NOT_FOUND for an id that is none */
export function threadIn(call: GrantedCall, options: Partial<ThreadOptions> = {}): Thread {
  const { served, params } = call;
  const { threadId = '' } = params;
  const [agent = reader] = served.agents.values();
  const callerId = threadCaller(call);
  try {
    return served.executor.thread(threadId, { agent, callerId, ...options });
  } catch (error) {
    if (hasCode(error, 'INVALID_THREAD_ID')) throw new RequestError('NOT_FOUND');
    throw error;
  }
}

/** Reading a thread needs no agent of its own: a server may know none. */
const reader = defineAgent({ id: 'reader', name: 'Reader', instructions: '' });

/** Returns the thread of the path. @throws {RequestError} NOT_FOUND if no message was sent to it */
export async function existingThread(call: GrantedCall): Promise<Thread> {
  const thread = threadIn(call);
  const [newest] = await thread.turns({ limit: 1 });
  if (newest) return thread;
  throw new RequestError('NOT_FOUND');
}
