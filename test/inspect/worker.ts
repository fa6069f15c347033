// A host with an inspector's client and no global handlers: node -C pawl-source worker.ts <url> <ends|exits>
import { once } from 'node:events';
import { createWebSocketInspector } from '@statelyai/inspect';
import { memoryStore } from 'pawl';
import { callTool, reply } from 'pawl/testing';
import { hostOf, toolOf } from '../fixtures/host.ts';

/** What the host says when its run is over. */
export interface Told {
  readonly status: string;
  readonly iterations: number;
  readonly warnings: readonly string[];
  /** Bytes that the viewer has not taken. */
  readonly waiting: number;
}

const [url = '', how = ''] = process.argv.slice(2);
const client = createWebSocketInspector({ url });
// Far more than the system's own buffers take for a viewer that does not read.
const chatter = 'x'.repeat(300_000);

/** In the middle of the run the host waits for a word, so that whatever happens to the viewer does so before it. */
const look = toolOf('look', 'read', async ({ n }) => {
  if (n === 10) await once(process.stdin, 'data');
  // Frames are sent in timers: they get their turn.
  await new Promise((resolve) => setTimeout(resolve, 1));
  return `${n} ${chatter}`;
});
const host = hostOf({
  script: [...Array.from({ length: 30 }, (_, n) => callTool('look', { n })), reply('done')],
  tools: [look],
  agent: { maxSteps: 31 },
  store: memoryStore(),
  inspect: (event) => client.inspect.next?.(event),
});

const { status, iterations } = await host.run({ runId: 'r' });
await host.executor.shutdown();
process.stdin.destroy();
const { ws } = client.adapter as unknown as { ws: { bufferedAmount: number } };
const told: Told = { status, iterations, warnings: host.warnings, waiting: ws.bufferedAmount };
process.stdout.write(`${JSON.stringify(told)}\n`);
if (how === 'exits') process.exit();
// After the timers in which the last frames are sent.
setTimeout(() => client.stop(), 0);
