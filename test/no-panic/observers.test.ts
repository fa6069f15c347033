import type { RunSummary } from 'pawl';
import { callTool, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { gate, hostOf, settle, toolOf } from '../fixtures/host.ts';

const boom = (): never => {
  throw new Error('boom');
};

/** A host whose run waits in its second model call until it is let go. */
async function waitingRun(options: Parameters<typeof hostOf>[0] = {}) {
  const second = gate();
  const script = [callTool('look'), () => second.pass().then(() => reply('done'))];
  const host = hostOf({ script, tools: [toolOf('look')], ...options });
  const run = await host.start({ runId: 'r' });
  await second.reached;
  return { ...host, run, open: second.open };
}

describe('an observer that throws', () => {
  test('is reported in the log, and the others get each event all the same (executor 1)', async () => {
    const { run, open, executor, warned } = await waitingRun();
    const heard = { subscriber: 0, listener: 0, runs: 0, one: 0 };
    const count = (what: keyof typeof heard) => () => {
      heard[what] += 1;
    };
    run.actor.subscribe(boom);
    run.actor.subscribe(count('subscriber'));
    run.actor.on('step.done', boom);
    run.actor.on('step.done', count('listener'));
    executor.runs.subscribe(boom);
    executor.runs.subscribe(count('runs'));
    executor.run$('r')?.subscribe(boom);
    executor.run$('r')?.subscribe(count('one'));
    await settle();
    open();
    await run.result;
    await settle();
    expect(Object.entries(heard).filter(([, times]) => times === 0)).toEqual([]);
    const messages = warned.map(({ message }) => message);
    expect(messages).toContain("run: a subscriber's next threw");
    expect(messages).toContain('run: a listener threw');
  });

  test('as onStep or inspect of a run does not keep those of the executor from hearing (executor 1)', async () => {
    const heard = { steps: 0, inspected: 0 };
    const onStep = () => {
      heard.steps += 1;
    };
    const inspect = () => {
      heard.inspected += 1;
    };
    const script = [callTool('look'), reply('done')];
    const host = hostOf({ script, tools: [toolOf('look')], onStep, inspect });
    expect(await host.run({}, { onStep: boom, inspect: boom })).toMatchObject({ status: 'ok' });
    expect(heard.steps).toBe(2);
    expect(heard.inspected).toBeGreaterThan(10);
  });
});

describe('an observer that is an object of a class', () => {
  test('gets the next and the end, each by its own method (executor 1)', async () => {
    const { run, open } = await waitingRun();
    class Watcher {
      readonly heard: string[] = [];
      next(): void {
        this.heard.push('next');
      }
      error(): void {
        this.heard.push('error');
      }
      complete(): void {
        this.heard.push('complete');
      }
    }
    const watcher = new Watcher();
    run.actor.subscribe(watcher);
    open();
    await run.result;
    await settle();
    expect(new Set(watcher.heard)).toEqual(new Set(['next', 'complete']));
    expect(watcher.heard.at(-1)).toBe('complete');
  });

  test('can leave: after unsubscribe nothing comes (executor 1)', async () => {
    const { run, open, executor } = await waitingRun();
    const heard: (string | readonly RunSummary[])[] = [];
    run.actor.subscribe(() => void heard.push('next')).unsubscribe();
    run.actor.on('step.done', () => void heard.push('step')).unsubscribe();
    executor.runs.subscribe((runs) => void heard.push(runs)).unsubscribe();
    open();
    await run.result;
    await settle();
    expect(heard).toEqual([]);
  });
});
