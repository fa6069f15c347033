import * as pawl from 'pawl';
import { afterEach, describe, expect, test } from 'vitest';
import { inEngine, whyNo } from '../engines/engines.ts';
import type { ContractReport } from './check-contract.ts';
import { startWorkerd, type WorkerOptions } from './workerd.ts';

let stop = async () => {};
afterEach(() => stop());

async function answerOf<T>(entry: string, options?: WorkerOptions): Promise<T> {
  const server = await startWorkerd(entry, options);
  stop = server.stop;
  return (await (await server.ask('/')).json()) as T;
}

describe.skipIf(whyNo('workerd'))('a worker', () => {
  test(
    inEngine('workerd', "without nodejs_compat loads 'pawl', with all that Node finds in it (engine 35)"),
    async () => {
      const names = await answerOf('./bare-worker.ts', { nodejsCompat: false });
      expect(names).toEqual(Object.keys(pawl).sort());
    },
  );

  test(
    inEngine('workerd', 'with nodejs_compat keeps the store contract on the memory store (engine 35, 46)'),
    async () => {
      const report = await answerOf<ContractReport>('./contract-worker.ts');
      expect(report).toMatchObject({ runtime: 'Cloudflare-Workers', failed: [], skipped: 0 });
      expect(report.passed).toBeGreaterThan(150);
    },
  );

  test(
    inEngine(
      'workerd',
      'of docs/deploy ends a run when its cron is called, and again in the process after a kill (operations 32)',
    ),
    async () => {
      for (const _ of ['the first process', 'the process after it']) {
        expect(await answerOf('./cron-worker.ts', { cron: true })).toEqual({
          before: 'interrupted',
          cron: 'ok',
          output: 'done',
        });
        // By SIGKILL.
        await stop();
      }
    },
  );
});
