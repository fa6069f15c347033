import { createExecutor } from 'pawl';
import { reply, scriptedModel } from 'pawl/testing';
import { expect, test } from 'vitest';
import { hostOf } from '../fixtures/host.ts';

test('an agent that throws when it is read gives its run a result, and does no harm to others (executor 1)', async () => {
  const warnings: string[] = [];
  const executor = createExecutor({
    models: { fast: scriptedModel([reply('fine')]) },
    logger: { warn: (message) => void warnings.push(message) },
  });
  const { agent } = hostOf();
  const hostile = Object.defineProperty({ ...agent }, 'modelTier', {
    get: () => {
      throw new Error('not today');
    },
  });
  const result = await executor.run(hostile, { prompt: 'Go.' });
  expect(result).toMatchObject({ status: 'error', error: { code: 'RUN_PANIC' }, messages: [] });
  expect(await executor.run(agent, { prompt: 'Go.' })).toMatchObject({ status: 'ok', output: 'fine' });
});
