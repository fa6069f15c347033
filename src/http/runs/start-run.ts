import type { Agent, ImageInput, Invocation } from '../../index.ts';
import { nodeCrypto } from '../../values/digest.ts';
import type { JsonObject } from '../../values/json.ts';
import type { Grant } from '../authorize.ts';
import { jsonAnswer, RequestError, refusedAnswer } from '../problem.ts';
import type { GrantedCall, Served } from '../route.ts';
import { endOfView } from './run-view.ts';

const MAX_KEY = 256;

/**
 * Returns the id of a run that a request starts: with an `Idempotency-Key` the same for each repetition of the caller, else a
 * new one. No other caller can make it.
 * @throws {RequestError} BAD_REQUEST for a key that is too long
 */
function runIdFor({ headers }: Request, { callerId }: Pick<Grant, 'callerId'>, route: string): string {
  const key = headers.get('idempotency-key');
  if (key === null) return crypto.randomUUID();
  if (key === '' || key.length > MAX_KEY)
    throw new RequestError('BAD_REQUEST', `an Idempotency-Key has 1 to ${MAX_KEY} characters`);
  return nodeCrypto().hash('sha256', JSON.stringify([callerId, route, key]), 'hex');
}

/** Returns an agent that requests may start. @throws {RequestError} BAD_REQUEST */
export function agentNamed({ agents }: Pick<Served, 'agents'>, id: unknown): Agent {
  const found = typeof id === 'string' ? agents.get(id) : undefined;
  if (found) return found;
  throw new RequestError('BAD_REQUEST', 'there is no agent of this id');
}

/**
 * Refuses files by URL: the model's provider, or a model server in this network, would fetch what any page names.
 * @throws {RequestError} BAD_REQUEST
 */
export function refuseUrls(files: readonly { readonly data?: unknown }[] = []): void {
  // Base64 has no colon.
  if (files.some(({ data }) => typeof data === 'string' && data.includes(':')))
    throw new RequestError('BAD_REQUEST', 'a file must come as its base64, not as a URL');
}

interface StartBody {
  readonly agent: string;
  readonly prompt: string;
  readonly inputs?: JsonObject;
  readonly images?: readonly ImageInput[];
}

/** Starts a run, or finds the one of this key. */
export async function startRunRoute({ request, body, grant, served }: GrantedCall): Promise<Response> {
  const { agent: agentId, prompt, inputs, images } = body as unknown as StartBody;
  const agent = agentNamed(served, agentId);
  if (prompt.trim() === '' && !images?.length) throw new RequestError('BAD_REQUEST', 'the body needs a prompt');
  refuseUrls(images);
  const runId = runIdFor(request, grant, 'POST /runs');
  const invocation: Invocation = {
    prompt,
    runId,
    callerId: grant.callerId,
    ...(inputs ? { inputs } : {}),
    ...(images ? { images } : {}),
    ...(grant.labels ? { labels: grant.labels } : {}),
  };
  const run = await served.executor.start(agent, invocation).catch((error: unknown) => {
    // A wrong call: the agent and the ids are the server's, so the rest is wrong.
    throw error instanceof TypeError
      ? new RequestError('BAD_REQUEST', 'the inputs or the images are not valid')
      : error;
  });
  const { accepted, error } = run;
  if (accepted === 'refused') {
    served.web.warn('http.start.refused', { runId, error });
    return refusedAnswer(error?.code ?? 'INTERNAL');
  }
  const headers = { location: `${served.web.basePath}/runs/${encodeURIComponent(runId)}` };
  if (accepted !== 'ended') return jsonAnswer({ runId, accepted }, 202, headers);
  const { messages: _, ...ended } = await run.result;
  return jsonAnswer({ runId, accepted, result: endOfView(ended) }, 200, headers);
}
