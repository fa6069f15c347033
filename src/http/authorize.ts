import type { Clock, Labels, Person } from '../index.ts';
import { isPerson } from '../run/command.ts';
import { labelsOf } from '../run/request.ts';
import { withDeadline } from '../values/deadline.ts';
import { hasCode, readProperty } from '../values/error-data.ts';
import { isObject } from '../values/json.ts';
import { RequestError } from './problem.ts';

/** What a request wants to do. `inspect`, `park` and `apply` come only from Studio. */
export type Action =
  | 'start'
  | 'read'
  | 'list'
  | 'answer'
  | 'steer'
  | 'send'
  | 'cancel'
  | 'retry'
  | 'delete'
  | 'inspect'
  | 'park'
  | 'apply';

/**
 * What a request wants to do, and with what. The ids are as the request names them: they may not exist. A body is read only
 * after a grant, so a request whose body names an agent or a thread is asked about twice: first without that id.
 */
export interface AuthorizeDetails {
  readonly action: Action;
  readonly runId?: string;
  readonly threadId?: string;
  readonly agentId?: string;
}

/** Who sends a request, and what that caller may see. */
export interface Grant {
  /** Owns the runs and threads that it starts, and sees no others. Not empty. */
  readonly callerId: string;
  /** The person who decides about approvals; absent = not known. */
  readonly by?: Person;
  /** The caller sees the runs and threads of all callers. */
  readonly all?: boolean;
  /** The labels of the runs that it starts. */
  readonly labels?: Labels;
}

/**
 * Decides about one request. Null refuses it with 401. A throw, no answer within 10 s, or any other value is 500; of an error
 * only the name and the code are logged. Read the method, the URL and the headers of the request, never its body.
 */
export type Authorize = (
  request: Request,
  details: AuthorizeDetails,
) => Grant | null | undefined | Promise<Grant | null | undefined>;

const AUTHORIZE_MS = 10_000;
const MAX_CALLER_CHARS = 512;

/**
 * Asks the host who sends a request.
 * @throws {RequestError} UNAUTHORIZED for null @throws what `authorize` throws, and an error for a grant that is none: both are 500
 */
export async function askHost(
  { authorize, clock }: { readonly authorize: Authorize; readonly clock: Clock },
  request: Request,
  details: AuthorizeDetails,
): Promise<Grant> {
  const asked = new Promise<unknown>((resolve) => resolve(authorize(request, details)));
  const given = await withDeadline(asked, { ms: AUTHORIZE_MS, clock, what: 'authorize' }).catch((cause: unknown) => {
    if (cause instanceof RequestError) throw cause;
    // The code of the host's error must not choose the status, and its message may quote the request's secret.
    throw new Error(`authorize failed: ${nameOf(cause)}; its message is not logged, because it may quote a secret`);
  });
  if (given === null) throw new RequestError('UNAUTHORIZED');
  return checkedGrant(given);
}

/** A name or a code, and nothing that an error may quote. */
function nameOf(error: unknown): string {
  if (hasCode(error, 'PORT_TIMEOUT')) return `no answer within ${AUTHORIZE_MS} ms`;
  const words = [readProperty(error, 'name'), readProperty(error, 'code')];
  const names = words.filter((word) => typeof word === 'string' && word.length <= 64 && /^[A-Za-z_]\w*$/.test(word));
  return names.join(' ') || 'an error without a name';
}

function checkedGrant(given: unknown): Grant {
  if (!isObject(given)) throw new Error('authorize must return a grant or null');
  const { callerId, by, all = false, labels } = given;
  const isCaller = typeof callerId === 'string' && callerId !== '' && callerId.length <= MAX_CALLER_CHARS;
  if (!isCaller || !callerId.isWellFormed())
    throw new Error(`authorize must return a callerId of 1 to ${MAX_CALLER_CHARS} characters of well-formed Unicode`);
  if (by !== undefined && !isPerson(by)) throw new Error('authorize: `by` must be { id, name? }');
  if (typeof all !== 'boolean') throw new Error('authorize: `all` must be true, or absent');
  return {
    callerId,
    all,
    ...(by === undefined ? {} : { by: { id: by.id, ...(by.name === undefined ? {} : { name: by.name }) } }),
    ...(labels === undefined ? {} : { labels: labelsOf(labels, 'authorize: labels') }),
  };
}
