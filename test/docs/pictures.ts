// npm run pictures: the pictures of Studio in the docs, taken in a real browser of real runs.
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { createExecutor } from 'pawl';
import { localOnly, toNodeListener } from 'pawl/http';
import { sqliteStore } from 'pawl/stores/sqlite';
import { studioHandler } from 'pawl/studio';
import { startChromium, whyNoChromium } from '../fixtures/chromium.ts';
import { World } from '../studio/browser/world.ts';
import { order } from './pictured-workflow.ts';

const folder = fileURLToPath(new URL('../../docs/pictures/', import.meta.url));

const pictures = [
  ['runs', '/runs'],
  ['run', '/run/refund-4417'],
  ['inbox', '/inbox'],
  ['machine', '/run/order-7/chart'],
] as const;

if (whyNoChromium !== undefined) {
  console.error(`pictures: ${whyNoChromium}`);
  process.exit(1);
}

const world = new World();
await world.work();
const pay = (to: string, cents: number) => `pay ${JSON.stringify({ to, cents, memo: 'The parcel came broken' })}`;
await world.start({ runId: 'survey-41', prompt: 'hello' });
await world.start({ runId: 'ticket-88', prompt: 'fail' });
await world.start({ runId: 'nightly-47', prompt: 'slow' });
await world.start({ runId: 'review-7', prompt: `child ${JSON.stringify({ prompt: pay('Edsger Dijkstra', 1_250) })}` });
await sleep(1_000);
// A process dies, another one continues: that is a row of its own in the timeline.
await world.crash();
await world.work();
await world.start({ runId: 'invoice-12', prompt: 'event {"key":"88"}' });
await world.start({ runId: 'digest-47', prompt: 'sleep' });
await world.start({ runId: 'line-3', prompt: 'work', agent: 'line' });
await world.start({ runId: 'refund-4417', prompt: pay('Ada Lovelace', 4_200) });
const desk = createExecutor({ store: sqliteStore({ path: world.path }), workflows: [order], journal: true });
await desk.start(order, { runId: 'order-7', input: undefined });
await sleep(1_000);
for (const type of ['pause', 'resume'] as const) await desk.control(order, 'order-7').send({ type });
await sleep(2_000);

const store = sqliteStore({ path: world.path, readOnly: true });
const executor = createExecutor({ models: () => undefined, store, workflows: [order], journal: true });
const studio = studioHandler(executor, {
  authorize: localOnly({ callerId: 'ada' }),
  write: true,
  place: '.pawl/runs.db',
});
const server = createServer(toNodeListener(studio));
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
const browser = await startChromium();
for (const [name, view] of pictures) {
  const page = await browser.newPage({ viewport: { width: 1_440, height: 900 }, colorScheme: 'light' });
  await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/#${view}`);
  await sleep(2_000);
  // The package has them: as WebP they are a third as large as PNG, and every browser and forge shows it.
  const devTools = await page.context().newCDPSession(page);
  const { data } = await devTools.send('Page.captureScreenshot', { format: 'webp', quality: 85 });
  await writeFile(`${folder}${name}.webp`, Buffer.from(data, 'base64'));
  await page.close();
  console.log(`docs/pictures/${name}.webp`);
}
await browser.close();
server.closeAllConnections();
server.close();
await executor.shutdown();
await desk.shutdown();
await store.close();
await world.end();
