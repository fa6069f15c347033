import http2 from 'node:http2';
import type { AddressInfo } from 'node:net';
import { type Context, createEndpointHandler, service } from '@restatedev/restate-sdk';
import type { Executor } from 'pawl';
import { type RestateRuns, type RestateRunsOptions, restateRuns } from 'pawl/restate';
import type { RestateServer } from '../../docs/examples/restate/restate-server.ts';
import { type HostOptions, hostOf } from '../fixtures/host.ts';

let names = 0;

/** An invocation, as Restate's own table has it. */
export interface InvocationLine {
  readonly id: string;
  readonly target: string;
  readonly status: string;
  readonly scheduled_start_at?: string;
}

export interface RestateHostOptions extends HostOptions {
  readonly restate?: Partial<RestateRunsOptions>;
}

/** A host whose runs Restate drives: an executor, its virtual object, and the server of that. All in this process. */
export async function restateHost(server: RestateServer, { restate = {}, ...options }: RestateHostOptions = {}) {
  names += 1;
  const name = restate.name ?? `pawl${names}`;
  const host = hostOf({
    onDue: (runId, at) => runs.onDue(runId, at),
    defaults: { waitLingerMs: 20 },
    ...options,
  });
  const executor: Executor = host.executor;
  const runs: RestateRuns = restateRuns(executor, { ingress: server.ingress, name, ...restate });
  const waiter = service({
    name: `${name}Waiter`,
    handlers: {
      outcome: async (ctx: Context, runId: string) => {
        const { id, promise } = ctx.awakeable<unknown>();
        ctx.objectSendClient<typeof runs.object>({ name }, runId).attach({ awakeableId: id });
        return promise;
      },
    },
  });
  const sessions = new Set<http2.ServerHttp2Session>();
  const served = http2.createServer(createEndpointHandler({ services: [runs.object, waiter], logger: () => {} }));
  served.on('session', (session) => sessions.add(session));
  await new Promise<void>((resolve) => served.listen(0, '127.0.0.1', resolve));
  const { port } = served.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  const deployment = await server.register(url);

  const post = (runId: string, handler: string, input?: unknown) =>
    fetch(`${server.ingress}/${name}/${encodeURIComponent(runId)}/${handler}`, {
      method: 'POST',
      ...(input === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(input) }),
    });
  return {
    ...host,
    runs,
    name,
    url,
    deployment,
    /** Calls a handler of the object by the ingress. @throws what it answered, if that is an error */
    call: async (runId: string, handler: string, input?: unknown): Promise<unknown> => {
      const answer = await post(runId, handler, input);
      const text = await answer.text();
      if (!answer.ok) throw new Error(`${answer.status} ${text}`);
      return text === '' ? undefined : JSON.parse(text);
    },
    /** Sends a message to a handler. @returns the id of the invocation */
    send: async (runId: string, handler: string, input?: unknown): Promise<string> => {
      const answer = await post(runId, `${handler}/send`, input);
      return ((await answer.json()) as { invocationId: string }).invocationId;
    },
    /** The invocations of the object that Restate has not forgotten. */
    invocations: async (): Promise<readonly InvocationLine[]> =>
      (await server.query(
        `select id, target, status, scheduled_start_at from sys_invocation where target_service_name = '${name}'`,
      )) as unknown as readonly InvocationLine[],
    /** Breaks all connections of Restate to this host. */
    breakConnections: () => {
      for (const session of sessions) session.destroy();
    },
    /** Waits for the outcome of a run as another service of Restate does: with an awakeable. */
    outcome: async (runId: string): Promise<unknown> => {
      const headers = { 'content-type': 'application/json' };
      const answer = await fetch(`${server.ingress}/${name}Waiter/outcome`, {
        method: 'POST',
        headers,
        body: JSON.stringify(runId),
      });
      return answer.json();
    },
    /** Ends the server and the executor. */
    close: async () => {
      for (const session of sessions) session.destroy();
      await new Promise((resolve) => served.close(resolve));
      await executor.shutdown({ drainMs: 1_000 });
    },
  };
}

export type RestateHost = Awaited<ReturnType<typeof restateHost>>;
