// For workerd: a Durable Object whose requests all belong together, so a run outlives the request that started it.
import { gatedHost } from './gated-host.ts';

interface Environment {
  readonly HOST: {
    idFromName(name: string): unknown;
    get(id: unknown): { fetch(request: Request): Promise<Response> };
  };
}

export class Host {
  readonly fetch = gatedHost();
}

export default {
  fetch: (request: Request, { HOST }: Environment) => HOST.get(HOST.idFromName('one')).fetch(request),
};
