import { createExecutor, defineAgent, defineTool, memoryStore } from 'pawl';
import { httpHandler } from 'pawl/http';
import { callTool, reply, scriptedModel } from 'pawl/testing';

/** Below it the handler is mounted. */
const basePath = '/api/pawl';

/** A host whose first run waits until a request to `/open` has come. It imports nothing but the package. */
export function gatedHost(): (request: Request) => Promise<Response> {
  const gate = Promise.withResolvers<string>();
  const wait = defineTool({
    name: 'wait',
    description: 'Waits for the gate.',
    effect: 'read',
    input: { type: 'object' },
    execute: () => gate.promise,
  });
  const agent = defineAgent({ id: 'worker', instructions: 'Work.', tools: [wait] });
  const executor = createExecutor({
    models: { fast: scriptedModel([callTool('wait', {}), reply('done'), reply('more')]) },
    agents: [agent],
    store: memoryStore(),
    journal: { flushMs: 5 },
  });
  const handler = httpHandler(executor, {
    basePath,
    agents: { worker: agent },
    authorize: (request) => {
      const [, token = ''] = (request.headers.get('authorization') ?? '').split('Bearer ');
      return token === '' ? null : { callerId: token };
    },
  });
  return async (request) => {
    const { pathname } = new URL(request.url);
    if (pathname.startsWith(basePath)) return handler(request);
    if (pathname === '/open') gate.resolve('fine');
    return new Response(navigator.userAgent);
  };
}
