import { memoryStore, type Run } from 'pawl';
import { callTool, fail, hang, reply, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { ShutdownError } from '../../src/values/errors.ts';
import { hostOf, toolOf, until } from '../fixtures/host.ts';
import { listen, ofType } from './listening.ts';

type Ending = readonly [what: string, start: () => Promise<Run>, status: string, code?: string];

const aborted = async (reason: unknown) => {
  const caller = new AbortController();
  const host = hostOf({ script: [hang()], store: memoryStore() });
  const run = await host.start({}, { signal: caller.signal });
  await until(() => host.model.calls.length === 1);
  caller.abort(reason);
  return run;
};

const endings: readonly Ending[] = [
  ['succeeds', () => hostOf().start(), 'ok'],
  ['succeeds durably', () => hostOf({ store: memoryStore() }).start(), 'ok'],
  [
    'fails',
    () => hostOf({ script: [fail(Object.assign(new Error('down'), { statusCode: 400 }))] }).start(),
    'error',
    'MODEL',
  ],
  ['is refused', () => hostOf({ agent: { tools: ['none'] } }).start(), 'error', 'UNKNOWN_TOOL'],
  ['is refused for its id', () => hostOf().start({ runId: 'x'.repeat(600) }), 'error', 'INVALID_RUN_ID'],
  [
    'is cancelled',
    async () => {
      const run = await hostOf({ script: [hang()] }).start();
      void run.cancel('enough');
      return run;
    },
    'cancelled',
    'CANCELLED',
  ],
  ['is aborted by its caller', () => aborted(new Error('gone')), 'cancelled', 'CANCELLED'],
  ['is interrupted', () => aborted(new ShutdownError('deploy')), 'interrupted', 'ERR_SHUTDOWN'],
  [
    'uses its time up',
    async () => {
      const clock = testClock();
      const host = hostOf({ script: [hang()], clock, agent: { maxRuntimeMs: 50 } });
      const run = await host.start();
      await until(() => host.model.calls.length === 1);
      await clock.advance(50);
      return run;
    },
    'timeout',
    'DEADLINE_EXCEEDED',
  ],
  [
    'runs out of steps',
    () => hostOf({ script: [callTool('look')], tools: [toolOf('look')], agent: { maxSteps: 1 } }).start(),
    'error',
    'STEP_LIMIT',
  ],
  [
    'is stopped from outside',
    async () => {
      const host = hostOf({ script: [hang()] });
      const run = await host.start();
      await until(() => host.model.calls.length === 1);
      run.actor.stop();
      return run;
    },
    'interrupted',
    'ERR_SHUTDOWN',
  ],
];

describe('run.ended', () => {
  test.for(endings)(
    'is the last event, once, and says what the result says, of a run that %s (executor 20)',
    async ([, start, status, code]) => {
      const run = await start();
      const events = await listen(run);
      const result = await run.result;
      expect(ofType(events, 'run.ended')).toHaveLength(1);
      expect(events.at(-1)).toMatchObject({ type: 'run.ended', status, output: result.output });
      expect(result.status).toBe(status);
      expect(result.error?.code).toBe(code);
      const { error } = ofType(events, 'run.ended')[0] ?? {};
      expect(error).toEqual(result.error);
    },
  );

  test('is not followed by a tool that answers after the end (executor 7, 20)', async () => {
    const answer = Promise.withResolvers<string>();
    const host = hostOf({
      script: [callTool('slow'), reply('x')],
      tools: [toolOf('slow', 'read', () => answer.promise)],
    });
    const run = await host.start();
    const heard = listen(run);
    await until(() => run.actor.getSnapshot().children['tool.0'] !== undefined);
    await run.cancel();
    answer.resolve('late');
    expect((await heard).at(-1)?.type).toBe('run.ended');
    expect((await listen(run)).at(-1)?.type).toBe('run.ended');
  });
});
