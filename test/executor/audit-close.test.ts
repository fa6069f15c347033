import { memoryStore, type SupervisedRun } from 'pawl';
import { callTool, fail, hang, reply, type ScriptedEntry, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { gate, hostOf, settle, toolOf, until } from '../fixtures/host.ts';
import { notingAudit, notingCritic, onlyNoted } from '../fixtures/noting-ports.ts';
import { afterCrash } from '../fixtures/watched-store.ts';

const tools = [toolOf('look')];
const never: ScriptedEntry = () => new Promise(() => {});

/** What so many scripted turns use. */
const turns = (count: number) => ({
  inputTokens: 10 * count,
  outputTokens: 5 * count,
  reasoningTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
});

describe('the close of an audit recorder', () => {
  test('comes once, last, after the end, with status, output and totals over all processes (supervision 5)', async () => {
    const clock = testClock();
    const store = memoryStore({ clock });
    const slowly =
      (step: ReturnType<typeof reply>): ScriptedEntry =>
      async () => {
        await clock.advance(1_000);
        return step;
      };
    const first = notingAudit();
    const options = { tools, clock, agent: { maxRuntimeMs: 10 ** 9 } };
    const host = hostOf({
      ...options,
      script: [slowly(callTool('look', { n: 1 })), slowly(callTool('look', { n: 2 })), never],
      store,
      ports: { audit: first },
    });
    await host.start({ runId: 'r' });
    await until(async () => (await store.load('r'))?.iteration === 2);
    const left = await afterCrash(store);
    expect(onlyNoted(first).told.close).toEqual([]);

    await clock.advance(500_000);
    const second = notingAudit();
    const next = hostOf({ ...options, script: [slowly(reply('end'))], store: left, ports: { audit: second } });
    await next.run({ runId: 'r' });
    const { told, order, info } = onlyNoted(second);
    expect(told.close).toEqual([
      ['ok', 'end', undefined, { usage: turns(3), iterations: 3, elapsedMs: 3_000, saveErrors: 0 }],
    ]);
    expect(order).toEqual(['run.resumed', 'onStep', 'close']);
    expect(info.runId).toBe('r');
    expect(told.logEvent[0]?.[1]).toMatchObject({ iteration: 2 });
  });

  test.for([
    ['an answer', 'ok', undefined],
    ['a cancel', 'cancelled', 'CANCELLED'],
    ['a shutdown', 'interrupted', 'ERR_SHUTDOWN'],
    ['the actor being stopped from outside', 'interrupted', 'ERR_SHUTDOWN'],
    ['a kill', 'killed', 'CRITIC_KILL'],
    ['the deadline', 'timeout', 'DEADLINE_EXCEEDED'],
    ['an error', 'error', 'MODEL'],
  ] as const)('comes exactly once after %s: %s (supervision 5)', async ([how, status, code]) => {
    const clock = testClock();
    const audit = notingAudit();
    const broken = fail(Object.assign(new Error('no'), { isRetryable: false }));
    const last = how === 'an answer' ? reply('end') : how === 'an error' ? broken : hang();
    const watched = Promise.withResolvers<SupervisedRun>();
    const critic = notingCritic((run) => {
      watched.resolve(run);
      return {};
    });
    const host = hostOf({
      script: [last],
      clock,
      store: memoryStore({ clock }),
      ports: { audit, ...(how === 'a kill' ? { critic } : {}) },
      agent: { maxRuntimeMs: 1_000 },
    });
    const run = await host.start({ runId: 'r' });
    await until(() => host.model.calls.length === 1);
    if (how === 'a cancel') await run.cancel();
    if (how === 'a shutdown') await host.executor.shutdown();
    if (how === 'the actor being stopped from outside') (run.actor as unknown as { stop: () => void }).stop();
    if (how === 'a kill') (await watched.promise).kill('enough');
    if (how === 'the deadline') await clock.advance(1_000);
    expect((await run.result).status).toBe(status);
    await settle();
    const { told, order } = onlyNoted(audit);
    expect(told.close.map(([given, , error]) => [given, error?.code])).toEqual([[status, code]]);
    expect(order.at(-1)).toBe('close');
  });

  test('comes also when the run could not begin (executor 2)', async () => {
    const audit = notingAudit();
    const host = hostOf({ agent: { model: 'gone' }, ports: { audit } });
    expect(await host.run()).toMatchObject({ error: { code: 'UNKNOWN_TIER' } });
    expect(onlyNoted(audit).told.close.map(([status, , error]) => [status, error?.code])).toEqual([
      ['error', 'UNKNOWN_TIER'],
    ]);
  });

  test('is waited for by a shutdown, and no longer than finalizeMs (supervision 5)', async () => {
    const clock = testClock();
    const closing = gate();
    const audit = notingAudit(() => closing.pass());
    const host = hostOf({ clock, ports: { audit }, defaults: { finalizeMs: 5_000 } });
    await host.run();
    let isDown = false;
    const down = host.executor.shutdown().then(() => {
      isDown = true;
    });
    await clock.advance(4_999);
    expect(isDown).toBe(false);
    await clock.advance(1);
    await down;
    expect(host.warnings).toContain('run: the audit threw; its recorder could not be closed');
  });
});

describe('an audit', () => {
  test('whose startRun throws records nothing of the run, which continues (supervision 5)', async () => {
    const host = hostOf({
      ports: {
        audit: {
          startRun: () => {
            throw new Error('no disk');
          },
        },
      },
    });
    expect(await host.run()).toMatchObject({ status: 'ok', output: 'done' });
    expect(host.warnings).toEqual(['run: the audit threw; the run is not recorded in it']);
  });

  test('gets nothing of a run that only gives an earlier answer again', async () => {
    const audit = notingAudit();
    const host = hostOf({ store: memoryStore(), ports: { audit } });
    await host.run({ runId: 'r' });
    expect(await host.run({ runId: 'r' })).toMatchObject({ status: 'ok', output: 'done' });
    onlyNoted(audit);
  });
});
