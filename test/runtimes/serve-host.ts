// The handler on the server that Bun or Deno brings; it prints its port.
import { gatedHost } from './gated-host.ts';

type Handler = (request: Request) => Promise<Response>;
const { Bun, Deno } = globalThis as unknown as {
  readonly Bun?: {
    serve(options: { port: number; hostname: string; idleTimeout: number; fetch: Handler }): { readonly port: number };
  };
  readonly Deno?: {
    serve(options: { port: number; hostname: string; onListen(at: { port: number }): void }, handler: Handler): unknown;
  };
};
const place = { port: 0, hostname: '127.0.0.1' };
const listening = (port: number) => console.log(JSON.stringify({ port }));

if (Bun) listening(Bun.serve({ ...place, idleTimeout: 0, fetch: gatedHost() }).port);
else Deno?.serve({ ...place, onListen: ({ port }) => listening(port) }, gatedHost());
