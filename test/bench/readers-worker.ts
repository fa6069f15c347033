// The other end of the streams whose cost is measured: node readers-worker.ts read|ask <port> <runs>
// `read` opens streams, tells its parent when all of them have their large events, and ends. `ask` makes small requests until it gets a
// message, and answers with the times that they took, ms.
import { Agent, get, type IncomingMessage } from 'node:http';

const STREAMS = 50;
const [what = '', port = '', runs = '1'] = process.argv.slice(2);

function open(path: string, caller: string, agent?: Agent): Promise<IncomingMessage> {
  const headers = { authorization: caller };
  return new Promise((resolve, reject) => {
    get({ port, path, headers, ...(agent ? { agent } : {}) }, resolve).on('error', reject);
  });
}

/** Reads a stream until it has the large event. */
async function readLarge(path: string): Promise<void> {
  const stream = await open(path, 'many', new Agent());
  let bytes = 0;
  for await (const piece of stream) {
    bytes += (piece as Buffer).length;
    if (bytes > 8_000_000) break;
  }
}

async function ask(): Promise<void> {
  const agent = new Agent({ keepAlive: true });
  const tookMs: number[] = [];
  let isOver = false;
  process.once('message', () => {
    isOver = true;
  });
  while (!isOver) {
    const began = performance.now();
    const answer = await open('/runs/small', 'other', agent);
    answer.resume();
    await new Promise((resolve) => answer.once('end', resolve));
    tookMs.push(performance.now() - began);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  process.send?.(tookMs);
}

process.on('disconnect', () => process.exit());
if (what === 'ask') await ask();
else {
  const paths = Array.from({ length: STREAMS }, (_, i) => `/runs/large-${i % Number(runs)}/events`);
  await Promise.all(paths.map(readLarge));
  process.send?.('read');
}
