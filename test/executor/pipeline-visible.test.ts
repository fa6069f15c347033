import { memoryStore, type RunEvent } from 'pawl';
import { callTool, fail, hang, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { hostOf, toolOf, until } from '../fixtures/host.ts';
import { diedWhen, look, tell, two } from '../fixtures/phases.ts';

/** What was told of the run's phases and states, and of its steps. */
const lineOf = (event: RunEvent): string[] => {
  if (event.type === 'run.status') return [event.state];
  if (event.type === 'phase.done') return [`done ${event.index} ${event.name}: ${event.output}`];
  if (event.type === 'phase.started' || event.type === 'phase.skipped')
    return [`${event.type.slice(6)} ${event.index} ${event.name}`];
  return event.type === 'step.started' || event.type === 'step.done' ? [`${event.type} ${event.step}`] : [];
};
const linesOf = async (events: AsyncIterable<RunEvent>) => {
  const lines: string[] = [];
  for await (const event of events) lines.push(...lineOf(event));
  return lines;
};

describe('a pipeline is seen by its phases', () => {
  test('in its events: each begins, works and is done, and the state is that of the chart (pipeline 11, executor 20)', async () => {
    const script = [callTool('look'), reply('seen'), reply('told')];
    const run = await hostOf({ agent: { phases: two }, tools: [toolOf('look')], script }).start();
    expect(await linesOf(run.events())).toEqual([
      ...[
        'phase(0)',
        'started 0 a',
        'step.started 1',
        'step.done 1',
        'step.started 2',
        'step.done 2',
        'done 0 a: seen',
      ],
      ...['phase(1)', 'started 1 b', 'step.started 3', 'step.done 3', 'done 1 b: told'],
      ...['completing', 'settled'],
    ]);
  });

  test('in its events after a resume: what was complete is skipped, what was in progress does not begin again (pipeline 8, 11)', async () => {
    const agent = { phases: [look, tell, { ...tell, name: 'c' }] };
    const tools = [toolOf('look')];
    const script = [reply('one'), callTool('look'), hang()];
    const left = await diedWhen(({ iteration }) => iteration === 2, { agent, tools, script });
    const run = await hostOf({ agent, tools, store: left, script: [reply('two'), reply('three')] }).start({
      runId: 'r',
    });
    expect(await linesOf(run.events())).toEqual([
      ...['skipped 0 a', 'phase(1)', 'step.started 3', 'step.done 3', 'done 1 b: two'],
      ...['phase(2)', 'started 2 c', 'step.started 4', 'step.done 4', 'done 2 c: three'],
      ...['completing', 'settled'],
    ]);
  });

  test('in its events when all were complete: all are skipped, and none begins (pipeline 8, 11)', async () => {
    const completedPhases = two.map(({ name }) => ({ name, output: name }));
    const run = await hostOf({ agent: { phases: two }, script: [] }).start(
      {},
      { resume: { history: [], completedPhases } },
    );
    expect(await linesOf(run.events())).toEqual(['skipped 0 a', 'skipped 1 b', 'completing', 'settled']);
  });

  test('in its events when one fails: it is done with its fallback, or not at all (pipeline 4, 11)', async () => {
    const phases = [{ ...look, optional: true, fallback: 'nothing' }, tell];
    const run = await hostOf({
      agent: { phases },
      script: [
        fail(Object.assign(new Error('down'), { statusCode: 400 })),
        fail(Object.assign(new Error('down'), { statusCode: 400 })),
      ],
    }).start();
    expect(await linesOf(run.events())).toEqual([
      ...['phase(0)', 'started 0 a', 'step.started 1', 'done 0 a: nothing'],
      ...['phase(1)', 'started 1 b', 'step.started 1', 'failing', 'settled'],
    ]);
  });

  test('in the summaries of live runs and in the list of interrupted ones', async () => {
    const store = memoryStore();
    const host = hostOf({ agent: { phases: two }, store, script: [reply('one'), hang()] });
    await host.start({ runId: 'r' });
    await until(() => host.model.calls.length === 2);
    expect(host.executor.run$('r')?.get()).toMatchObject({ state: 'phase(1).calling-model', iteration: 1 });
    await host.executor.shutdown();
    expect(await host.executor.list()).toMatchObject([{ runId: 'r', status: 'interrupted', completedPhases: ['a'] }]);
  });

  test('by a tool: it gets its phase’s conversation, and the run’s turns', async () => {
    const states: unknown[] = [];
    const tools = [
      toolOf('look', 'read', (_, { runState: { iteration, messages } }) => states.push([iteration, messages])),
    ];
    const script = [callTool('look'), reply('one'), callTool('look'), reply('two')];
    await hostOf({ agent: { phases: two }, tools, script }).run();
    expect(states).toEqual([
      [0, 1],
      [2, 1],
    ]);
  });
});
