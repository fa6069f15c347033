// The loop on Restate's SDK: restate.mjs <folder> <steps> <program of the server>. Prints JSON.
import http2 from 'node:http2';
import { join } from 'node:path';
import { createEndpointHandler, service } from '@restatedev/restate-sdk';
import { RestateServer } from '../../../docs/examples/restate/restate-server.ts';
import { callMessage, resultMessage } from '../workload.ts';
import { costOf } from './cost.mjs';

const [folder, count, program] = process.argv.slice(2);
const steps = Number(count);
const server = new RestateServer(program, join(folder, 'restate'));
// The bench kills this process after 60 s, and the server would stay.
const limit = setTimeout(() => void server.kill().finally(() => process.exit(1)), 50_000);
await server.start();
try {
  const loop = service({
    name: 'loop',
    handlers: {
      run: async (ctx) => {
        const messages = [];
        for (let step = 0; step < steps; step++) {
          messages.push(await ctx.run('model', () => callMessage(step)));
          messages.push(await ctx.run('tool', () => resultMessage(step)));
        }
        return messages.length;
      },
    },
  });
  const served = http2.createServer(createEndpointHandler({ services: [loop], logger: () => {} }));
  await new Promise((resolve) => served.listen(0, '127.0.0.1', resolve));
  await server.register(`http://127.0.0.1:${served.address().port}`);
  const cost = await costOf(steps, async () => {
    const answer = await fetch(`${server.ingress}/loop/run`, { method: 'POST' });
    const text = await answer.text();
    if (Number(text) !== 2 * steps) throw new Error(`${answer.status} ${text}`);
  });
  const durable =
    "an entry of the server's log after the model and one after the tool, each acknowledged before the next step; synced as the server's defaults have it";
  process.stdout.write(JSON.stringify({ ...cost, durable }));
} finally {
  clearTimeout(limit);
  await server.kill();
}
process.exit();
