import { getEventListeners } from 'node:events';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { ToolContext } from '../../src/tool/define-tool.ts';
import { runTool } from '../../src/tool/run-tool.ts';
import type { ToolOutput } from '../../src/values/message.ts';
import { callOf, environmentOf, probe, runToEnd, withInput } from './environment.ts';

const hangs = (): unknown => new Promise(() => {});
/** A promise that is nobody's Promise. */
const thenable = (then: (done: (value: string) => void) => void): object =>
  Object.defineProperty({}, 'then', { value: then });

/** A tool that may be repeated. */
const reading = (execute: Parameters<typeof probe>[0], extra: object = {}) =>
  probe(execute, { effect: 'read', ...extra });

function track(promise: Promise<ToolOutput>) {
  const state: { output?: ToolOutput } = {};
  promise.then(
    (output) => Object.assign(state, { output }),
    (error) => expect.unreachable(String(error)),
  );
  return state;
}

describe('a tool that takes too long', () => {
  test('a tool that never returns ends on time with an error result for the model (executor 7, faults 15)', async () => {
    const environment = environmentOf({ timeoutMs: 5_000 });
    const call = track(runToEnd(reading(hangs), callOf(), environment));
    await environment.clock.advance(4_999);
    expect(call.output).toBeUndefined();
    await environment.clock.advance(1);
    const value = 'tool "probe" did not answer within 5000 ms; it is unknown whether it took effect';
    expect(call.output).toEqual({ type: 'error-text', value });
  });

  test('a once tool that never returns ends on time with an unknown outcome (executor 7, edges 11)', async () => {
    const environment = environmentOf({ timeoutMs: 5_000 });
    const call = runTool(probe(hangs), callOf(), environment);
    await environment.clock.advance(5_000);
    const why = 'tool "probe" did not answer within 5000 ms';
    expect(await call).toEqual({ type: 'wait', request: { kind: 'unknown-outcome', why } });
  });

  test("the tool's own limit wins over the run's, in both directions", async () => {
    for (const [own, general] of [
      [1_000, 5_000],
      [5_000, 1_000],
    ] as const) {
      const environment = environmentOf({ timeoutMs: general });
      const call = track(runToEnd(reading(hangs, { timeoutMs: own }), callOf(), environment));
      await environment.clock.advance(own - 1);
      expect(call.output).toBeUndefined();
      await environment.clock.advance(1);
      expect(call.output?.type).toBe('error-text');
    }
  });

  test('its signal is aborted with a TimeoutError, and not before', async () => {
    const environment = environmentOf({ timeoutMs: 1_000 });
    let signal: AbortSignal | undefined;
    void runToEnd(
      reading((_, context) => {
        signal = context.signal;
        return hangs();
      }),
      callOf(),
      environment,
    );
    await environment.clock.advance(999);
    expect(signal?.aborted).toBe(false);
    await environment.clock.advance(1);
    expect(signal?.reason).toMatchObject({ name: 'TimeoutError' });
  });

  test('a signal that it asks for only after its time is up is aborted already', async () => {
    const environment = environmentOf({ timeoutMs: 1_000 });
    let context: ToolContext | undefined;
    void runToEnd(
      reading((_, given) => {
        context = given;
        return hangs();
      }),
      callOf(),
      environment,
    );
    await environment.clock.advance(1_000);
    expect(context?.signal.reason).toMatchObject({ name: 'TimeoutError' });
  });

  test.for([
    [
      'a result',
      (late: PromiseWithResolvers<unknown>) => late.resolve('too late'),
      { type: 'text', value: 'too late' },
    ],
    [
      'a failure',
      (late: PromiseWithResolvers<unknown>) => late.reject(new Error('broke')),
      { type: 'error-text', value: 'broke' },
    ],
  ] as const)('%s that comes late is dropped and reported (executor 7, faults 16)', async ([, settle, output]) => {
    const late = Promise.withResolvers<unknown>();
    const reported: ToolOutput[] = [];
    const onLate = (given: ToolOutput) => {
      reported.push(given);
      throw new Error('the listener is broken');
    };
    const environment = environmentOf({ timeoutMs: 1_000, onLate });
    const call = track(
      runToEnd(
        reading(() => late.promise),
        callOf(),
        environment,
      ),
    );
    await environment.clock.advance(1_000);
    const first = call.output;
    settle(late);
    await environment.clock.advance(0);
    expect(reported).toEqual([output]);
    expect(call.output).toBe(first);
  });

  test('a validation that never ends counts as the call; a tool that was given up is not started afterwards', async () => {
    const gate = Promise.withResolvers<void>();
    let runs = 0;
    const tool = withInput(
      z.object({}).refine(() => gate.promise.then(() => true)),
      () => runs++,
    );
    const environment = environmentOf({ timeoutMs: 1_000 });
    const call = track(runToEnd(tool, callOf(), environment));
    await environment.clock.advance(1_000);
    // It is a once tool, and it is known that it did nothing.
    const value = 'tool "probe" did not answer within 1000 ms: its input was still being checked';
    expect(call.output).toEqual({ type: 'error-text', value });
    gate.resolve();
    await environment.clock.advance(0);
    expect(runs).toBe(0);
  });
});

describe("an abort of the run's signal", () => {
  test('before the call: the tool is not started', async () => {
    let runs = 0;
    const output = await runToEnd(
      probe(() => runs++),
      callOf(),
      environmentOf({ signal: AbortSignal.abort() }),
    );
    expect([output, runs]).toEqual([{ type: 'error-text', value: 'aborted' }, 0]);
  });

  test("ends the wait at once, and reaches the tool's signal with its reason (executor 5)", async () => {
    const controller = new AbortController();
    const reason = new Error('deploy');
    const environment = environmentOf({ signal: controller.signal });
    let signal: AbortSignal | undefined;
    const call = track(
      runToEnd(
        probe((_, context) => {
          signal = context.signal;
          return hangs();
        }),
        callOf(),
        environment,
      ),
    );
    await environment.clock.advance(0);
    controller.abort(reason);
    await environment.clock.advance(0);
    expect(call.output).toEqual({ type: 'error-text', value: 'aborted' });
    expect(signal?.reason).toBe(reason);
  });

  test('by the tool itself, before it returns its promise', async () => {
    const controller = new AbortController();
    const environment = environmentOf({ signal: controller.signal });
    const reasons: unknown[] = [];
    const tool = probe((_, context) => {
      controller.abort('stop');
      reasons.push(context.signal.reason);
      return hangs();
    });
    expect(await runToEnd(tool, callOf(), environment)).toEqual({ type: 'error-text', value: 'aborted' });
    expect(reasons).toEqual(['stop']);
  });
});

describe('after a call nothing is left behind (executor 5)', () => {
  const endings: readonly (readonly [string, () => unknown])[] = [
    ['a result', async () => 'x'],
    ['a rejection', () => Promise.reject(new Error('x'))],
    ['a foreign thenable', () => thenable((done) => done('x'))],
    [
      'a thenable that throws',
      () =>
        thenable(() => {
          throw new Error('x');
        }),
    ],
    ['a time limit', hangs],
  ];
  test.for(endings)('%s: no listener on the signal, no timer', async ([, execute]) => {
    const environment = environmentOf({ timeoutMs: 50 });
    const call = track(runToEnd(reading(execute), callOf(), environment));
    await environment.clock.advance(execute === hangs ? 50 : 0);
    expect(call.output).toBeDefined();
    expect(getEventListeners(environment.signal, 'abort')).toEqual([]);
    expect(environment.clock.pending).toBe(0);
  });
});
