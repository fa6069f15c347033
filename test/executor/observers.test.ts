import { memoryStore, type StepInfo } from 'pawl';
import { callTool, callTools, hang, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { gate, hostOf, settle, toolOf, until } from '../fixtures/host.ts';

const tools = [toolOf('look')];
const script = () => [callTool('look', { n: 1 }), callTool('look', { n: 2 }), reply('end')];
const broken = () => {
  throw new Error('the observer is broken');
};

describe('an observer of a run', () => {
  test('gets each finished step, from the executor and from the run (executor 20)', async () => {
    const steps: StepInfo[] = [];
    const own: StepInfo[] = [];
    const host = hostOf({ script: script(), tools, onStep: (step) => void steps.push(step) });
    await host.run({ runId: 'r' }, { onStep: (step) => void own.push(step) });
    const withTools = steps.filter(({ tools: names }) => names.length > 0);
    expect(withTools.map(({ runId, iteration, tools: names }) => [runId, iteration, names])).toEqual([
      ['r', 1, ['look']],
      ['r', 2, ['look']],
    ]);
    expect(withTools[1]?.usage).toMatchObject({ inputTokens: 20, outputTokens: 10 });
    expect(own).toEqual(steps);
  });

  test.for<[string, object, object]>([
    ['an onStep that throws', { onStep: broken }, {}],
    ['an onStep that rejects', { onStep: () => Promise.reject(new Error('x')) }, {}],
    ["a run's own onStep that throws", {}, { onStep: broken }],
    ['an inspect callback that throws', { inspect: broken }, {}],
    ["a run's own inspect callback that throws", {}, { inspect: broken }],
  ])('%s changes nothing but the log (executor 1, faults 20)', async ([, options, runOptions]) => {
    const host = hostOf({ script: script(), tools, store: memoryStore(), ...options });
    const result = await host.run({ runId: 'r' }, runOptions);
    expect(result).toMatchObject({ status: 'ok', output: 'end', iterations: 3 });
    expect(host.warnings.length).toBeGreaterThan(0);
  });

  test('and subscribes to its actor with something that throws, changes nothing but the log (executor 1)', async () => {
    const host = hostOf({
      script: [...script().slice(0, 2), () => settle().then(() => reply('end'))],
      tools,
      store: memoryStore(),
    });
    const run = await host.start();
    run.actor.subscribe(broken);
    run.actor.subscribe({ next: broken, error: broken, complete: broken });
    run.actor.on('step.done', broken);
    run.actor.on('*' as never, broken as never);
    expect(await run.result).toMatchObject({ status: 'ok', output: 'end' });
    expect(host.warnings.length).toBeGreaterThan(0);
  });

  test('sees model and tool calls as actors with ids of ours, never the ids that a model made up', async () => {
    const ids = new Set<string>();
    const hostile = callTool('look', {}, '../../x');
    const host = hostOf({
      script: [hostile, reply('end')],
      tools,
      inspect: (event) => void ids.add((event.actorRef as { id?: string }).id ?? ''),
    });
    await host.run({ runId: 'r' });
    expect([...ids].filter((id) => /^(model|tool|run)/.test(id)).sort()).toEqual([
      'model.1',
      'model.2',
      'run:r',
      'tool.1.0',
    ]);
  });

  test.for([
    ['nobody looks on', false, ['model', 'tool.0', 'tool.1']],
    ['somebody looks on', true, ['model.10']],
  ] as const)('a run keeps none of the calls of its earlier steps, when %s', async ([, isInspected, kept]) => {
    const two = callTools([
      { name: 'look', input: {} },
      { name: 'look', input: {} },
    ]);
    const host = hostOf({
      script: [two, ...Array.from({ length: 8 }, (_, n) => callTool('look', { n })), hang()],
      tools: [toolOf('look')],
    });
    const run = await host.start({ runId: 'r' }, isInspected ? { inspect: () => {} } : {});
    await until(() => host.model.calls.length === 10);
    const there = Object.keys(run.actor.getSnapshot().children).filter((id) => /^(model|tool)/.test(id));
    expect(there.sort()).toEqual(kept);
    await run.cancel();
  });

  test('finds no port, key or message in what is inspected of a call (executor 4)', async () => {
    const frames: string[] = [];
    const inspect = (event: object) => {
      const { input } = event as { input?: unknown };
      frames.push(JSON.stringify({ event: (event as { event?: unknown }).event, input }) ?? '');
    };
    await hostOf({ script: script(), tools, store: memoryStore(), inspect }).run({ runId: 'r' });
    expect(frames.length).toBeGreaterThan(10);
    expect(frames.join()).not.toMatch(/doStream|listInterrupted/);
  });
});

describe('the live runs', () => {
  test('are in executor.runs with their state, and gone at the end', async () => {
    const host = hostOf({ script: [callTool('look'), hang()], tools });
    const run = await host.start({ runId: 'r' });
    await until(
      () =>
        host.executor.runs.get()[0]?.state === 'running.calling-model' && host.executor.runs.get()[0]?.iteration === 1,
    );
    expect(host.executor.runs.get()).toMatchObject([
      { runId: 'r', agentId: 'worker', agentName: 'Worker', iteration: 1 },
    ]);
    expect(host.executor.run$('r')?.get()).toMatchObject({ runId: 'r', iteration: 1 });
    await run.cancel();
    await settle();
    expect(host.executor.runs.get()).toEqual([]);
    expect(host.executor.run$('r')).toBeUndefined();
  });

  test('each show their end to an observer of one of them, also when it comes within one turn', async () => {
    const asked = gate();
    const host = hostOf({ script: [() => asked.pass().then(() => reply('done'))] });
    const run = await host.start({ runId: 'r' });
    await asked.reached;
    await settle();
    const states: string[] = [];
    host.executor.run$('r')?.subscribe(({ state }) => states.push(state));
    asked.open();
    await run.result;
    await settle();
    expect(states).toEqual(['settled']);
  });

  test('change at most once per turn of the event loop, however many runs do', async () => {
    const host = hostOf({ script: Array.from({ length: 100 }, () => reply('end')) });
    let changes = 0;
    let turns = 0;
    let isOver = false;
    const subscription = host.executor.runs.subscribe(() => {
      changes += 1;
    });
    const count = () => {
      turns += 1;
      if (!isOver) setImmediate(count);
    };
    setImmediate(count);
    await Promise.all(Array.from({ length: 100 }, () => host.run()));
    await settle();
    isOver = true;
    subscription.unsubscribe();
    expect(changes).toBeGreaterThan(0);
    expect(changes).toBeLessThanOrEqual(turns + 1);
  });

  test('a subscriber of theirs that throws disturbs no run', async () => {
    const host = hostOf({ script: script(), tools });
    host.executor.runs.subscribe(broken);
    expect(await host.run()).toMatchObject({ status: 'ok' });
    await settle();
  });
});
