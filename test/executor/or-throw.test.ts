import { inspect } from 'node:util';
import { memoryStore, PawlError, type RunFailedError } from 'pawl';
import { callTool, fail, hang, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { hostOf, toolOf } from '../fixtures/host.ts';

const down = () => fail(Object.assign(new Error('no credit'), { isRetryable: false }));
const thrownBy = (promise: Promise<unknown>) =>
  promise.then(
    () => expect.unreachable(),
    (error: unknown) => error as RunFailedError,
  );

describe('run.orThrow()', () => {
  test('resolves with the result of a run that succeeds', async () => {
    const run = await hostOf({ script: [reply('done')] }).start({ runId: 'r' });
    expect(await run.orThrow()).toBe(await run.result);
  });

  test('throws an error with the code of the run’s error, that error as cause, and the result', async () => {
    const run = await hostOf({ script: [down()] }).start({ runId: 'r' });
    const result = await run.result;
    const error = await thrownBy(run.orThrow());
    expect(error).toBeInstanceOf(PawlError);
    expect(error).toMatchObject({ name: 'RunFailedError', code: 'MODEL' });
    expect(error.message).toMatch(/^run r ended with status error: MODEL: .*no credit/);
    expect([error.cause, error.result]).toEqual([result.error, result]);
  });

  test('says of a run that waits that it has not ended', async () => {
    const refund = { ...toolOf('refund'), needsApproval: true } as never;
    const script = [callTool('refund')];
    const host = hostOf({ script, tools: [refund], store: memoryStore(), defaults: { waitLingerMs: 1 } });
    const run = await host.start({ runId: 'r' });
    const error = await thrownBy(run.orThrow());
    expect(error.message).toMatch(/^run r waits, and has not ended: RUN_WAITS: /);
    expect(error.result.status).toBe('waiting');
  });

  test.for(['cancelled', 'interrupted', 'refused'] as const)('throws for a run that is %s', async (how) => {
    const host = hostOf({ script: [hang()], store: memoryStore() });
    const run = await host.start({ runId: how === 'refused' ? '' : 'r' });
    if (how === 'cancelled') void run.cancel('enough');
    if (how === 'interrupted') await host.executor.shutdown();
    const { code } = await thrownBy(run.orThrow());
    expect(code).toBe({ cancelled: 'CANCELLED', interrupted: 'ERR_SHUTDOWN', refused: 'INVALID_RUN_ID' }[how]);
  });

  test('is there for a run that ended a while ago', async () => {
    const host = hostOf({ script: [reply('done'), down()] });
    await host.run({ runId: 'good' });
    await host.run({ runId: 'bad' });
    expect((await host.executor.get('good')?.orThrow())?.output).toBe('done');
    expect((await thrownBy(host.executor.get('bad')?.orThrow() ?? Promise.resolve())).code).toBe('MODEL');
  });

  test('does not print the conversation with the error', async () => {
    const run = await hostOf({ script: [down()] }).start({ prompt: 'my secret prompt' });
    const error = await thrownBy(run.orThrow());
    expect(inspect(error, { depth: 9 })).not.toContain('my secret prompt');
    expect(JSON.stringify(error)).not.toContain('my secret prompt');
  });

  test('leaves no unhandled rejection where it is unused: run.result never rejects', async () => {
    const run = await hostOf({ script: [down()] }).start({ runId: 'r' });
    expect((await run.result).status).toBe('error');
  });
});
