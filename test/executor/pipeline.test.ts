import { memoryStore, type RunResult } from 'pawl';
import { callTool, fail, hang, recordingFactory, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { hostOf, toolOf } from '../fixtures/host.ts';

const two = [
  { name: 'a', instructions: 'Look at {{.Query}}' },
  { name: 'b', instructions: 'B saw {{.a}}' },
];
const outputs = ({ phases }: RunResult) => phases.map(({ name, output }) => `${name}: ${output}`);

describe('the phases of an agent', () => {
  test('run one after the other, each a loop of its own; the last output is the run’s, usage adds up (pipeline 1)', async () => {
    const { run, model } = hostOf({
      agent: { phases: two, tools: [toolOf('look')] },
      script: [callTool('look', {}), reply('seen'), reply('told')],
    });
    const result = await run({ prompt: 'the sea' });
    expect(result).toMatchObject({ status: 'ok', output: 'told', iterations: 3 });
    expect(outputs(result)).toEqual(['a: seen', 'b: told']);
    expect(model.calls.map(({ system }) => system)).toEqual(['Look at the sea', 'Look at the sea', 'B saw seen']);
    expect(model.calls[2]?.messages).toHaveLength(1);
  });

  test('that are complete are skipped on resume, and their outputs reach later instructions (pipeline 8)', async () => {
    const { run, model } = hostOf({ agent: { phases: two }, script: [reply('b is done')] });
    const completedPhases = [{ name: 'a', output: 'saved-a' }];
    const result = await run({}, { resume: { history: [], completedPhases } });
    expect(model.calls.map(({ system }) => system)).toEqual(['B saw saved-a']);
    expect(result).toMatchObject({ status: 'ok', output: 'b is done' });
    expect(outputs(result)).toEqual(['a: saved-a', 'b: b is done']);
  });

  test('when all are complete on resume give the saved output without a model call (pipeline 8)', async () => {
    const { run, model } = hostOf({ agent: { phases: two }, script: [] });
    const completedPhases = two.map(({ name }) => ({ name, output: `saved-${name}` }));
    const result = await run({}, { resume: { history: [], completedPhases } });
    expect(result).toMatchObject({ status: 'ok', output: 'saved-b' });
    expect(model.calls).toHaveLength(0);
  });

  test('are saved by force at each boundary, with all that are complete in order (pipeline 7)', async () => {
    const factory = recordingFactory();
    const script = [reply('one'), reply('two')];
    const { run } = hostOf({ agent: { phases: two }, script, ports: { checkpointer: factory } });
    await run();
    const saved = factory.checkpointers[0]?.states ?? [];
    const names = saved.map(({ completedPhases }) => completedPhases?.map(({ name }) => name).join());
    expect([...new Set(names)]).toEqual(['', 'a', 'a,b']);
  });

  test('go on in the interrupted phase at its last step (pipeline 8)', async () => {
    const store = memoryStore();
    const agent = { phases: two, tools: [toolOf('look')] };
    const first = hostOf({ agent, checkpoints: store, script: [reply('seen'), callTool('look', { n: 1 }), hang()] });
    await first.start({ runId: 'r' });
    await expect.poll(() => first.model.calls.length).toBe(3);
    await first.executor.shutdown();
    const record = await store.load('r');
    expect(record?.openPhase).toMatchObject({ index: 1, iteration: 1 });
    const second = hostOf({ agent, checkpoints: store, script: [reply('told')] });
    const result = await second.run({ runId: 'r' });
    expect(result).toMatchObject({ status: 'ok', output: 'told', iterations: 3 });
    expect(second.model.calls[0]?.messages).toEqual(record?.messages);
    expect(second.model.calls[0]?.system).toBe('B saw seen');
  });

  test('that are optional are replaced by their fallback when they fail, and the pipeline goes on (pipeline 4)', async () => {
    const phases = [{ ...two[0], optional: true, fallback: 'nothing' }, two[1]] as never;
    const { run, model } = hostOf({ agent: { phases }, script: [fail(new Error('down')), reply('told')] });
    expect(await run()).toMatchObject({ status: 'ok', output: 'told' });
    expect(model.calls[1]?.system).toBe('B saw nothing');
  });
});
