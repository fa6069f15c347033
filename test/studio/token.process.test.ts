import { once } from 'node:events';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { expect, test } from 'vitest';
import { studioToken } from '../../src/cli/studio/token.ts';
import { emptyFolder } from '../cli/pawl.ts';
import { packageFlags } from '../toolchain/programs.ts';

const [threads, stores] = [2, 50];

test('first starts at the same moment get one token for each store, and leave nothing but its file (studio 22)', async () => {
  const home = emptyFolder();
  const gate = new SharedArrayBuffer(4);
  const workers = Array.from(
    { length: threads },
    () =>
      new Worker(new URL('token-worker.ts', import.meta.url), {
        workerData: { home, stores, threads, gate },
        execArgv: [...packageFlags],
      }),
  );
  const [first, second] = await Promise.all(workers.map(async (worker) => (await once(worker, 'message'))[0]));
  expect(second).toEqual(first);
  expect(new Set(first).size).toBe(stores);
  expect(first).toEqual(first.map((_: string, store: number) => studioToken(`store ${store}`, { isNew: false, home })));
  expect(readdirSync(join(home, 'studio-tokens'))).toHaveLength(stores);
});

test('a damaged file of a token is replaced, and the new token stays (studio 22)', () => {
  const home = emptyFolder();
  const first = studioToken('s', { isNew: false, home });
  const [name = ''] = readdirSync(join(home, 'studio-tokens'));
  writeFileSync(join(home, 'studio-tokens', name), '{');
  const second = studioToken('s', { isNew: false, home });
  expect(second).not.toBe(first);
  expect(studioToken('s', { isNew: false, home })).toBe(second);
});
