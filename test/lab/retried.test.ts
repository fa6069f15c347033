import { memoryStore } from 'pawl';
import { readRun, replay } from 'pawl/lab';
import { callTool, fail, reply, type ScriptedEntry, scriptedModel } from 'pawl/testing';
import { expect, test } from 'vitest';
import { hostOf, toolOf } from '../fixtures/host.ts';
import { allSame, retention } from './recorded.ts';

const refused = () => fail(Object.assign(new Error('no key'), { statusCode: 400 }));

test('the baseline of a retried phase takes up what was said after its last step, beyond the limit of the phase too (lab 17)', async () => {
  const store = memoryStore();
  const agent = { phases: [{ name: 'a', instructions: 'Work.', maxSteps: 2 }] };
  const tools = [toolOf('look')];
  const first = hostOf({ store, agent, tools, script: [callTool('look', { n: 1 }), refused()] });
  await first.run({ runId: 'r' });
  const next: ReturnType<typeof hostOf> = hostOf({
    ...{ store, agent, tools },
    script: [
      async (): Promise<ScriptedEntry> => {
        await next.executor.control('r').steer('And?');
        return callTool('look', { n: 2 });
      },
      refused(),
    ] as never,
  });
  await (await next.executor.retry('r')).result;
  const run = await readRun(next.executor, 'r');
  expect(run).toMatchObject({ status: 'error', messages: expect.objectContaining({ length: 6 }) });
  const { raisedSteps: _, ...recorded } = run;
  expect(await replay(run, { agent: next.agent })).toStrictEqual({ ...recorded, ...allSame });
});

test('the baseline of a retried phase makes the calls that failed or came again in a row, beyond the limits that the retry began again (lab 17)', async () => {
  const phases = ['a', 'b'].map((name) => ({ name, instructions: 'Work.', maxSteps: 2 }));
  const failing = toolOf('look', 'read', () => {
    throw new Error('no');
  });
  for (const tool of [failing, toolOf('look')]) {
    const defaults = { maxConsecutiveToolErrors: 3, maxSameToolCallRepeats: 3 };
    const options = { store: memoryStore(), agent: { phases }, tools: [tool], defaults, retention };
    await hostOf({ ...options, script: [callTool('look'), refused()] }).run({ runId: 'r' });
    const next = hostOf({ ...options, script: [callTool('look'), callTool('look'), reply('done')] });
    await (await next.executor.retry('r')).result;
    const { raisedSteps: _, ...run } = await readRun(next.executor, 'r');
    expect(run.steps.map(({ phase }) => phase)).toEqual(['a', 'a', 'a', 'b']);
    expect(await replay(run, { agent: next.agent, defaults })).toStrictEqual({ ...run, ...allSame });
  }
});

test('the limits of a candidate begin again where the recorded run was retried, and another end of it stands (lab 17)', async () => {
  let isAway = true;
  const ship = toolOf('ship', 'idempotent', () => {
    if (isAway) throw new Error('the carrier is away');
    return 'shipped';
  });
  const calls = (count: number) => Array.from({ length: count }, () => callTool('ship'));
  const options = { store: memoryStore(), tools: [ship], retention };
  const ended = await hostOf({ ...options, script: calls(3) }).run({ runId: 'r' });
  expect(ended).toMatchObject({ status: 'error', error: { code: 'TOOL_LOOP' } });
  isAway = false;
  const next = hostOf({ ...options, script: [...calls(1), reply('Sold.')] });
  await (await next.executor.retry('r')).result;
  const run = await readRun(next.executor, 'r');
  const candidate = (...script: ScriptedEntry[]) => replay(run, { agent: next.agent, model: scriptedModel(script) });
  expect(await candidate(...calls(4), reply('Sold.'))).toMatchObject({ ...allSame, status: 'ok', output: 'Sold.' });
  expect(await candidate(...calls(1), reply('No.'))).toMatchObject({ status: 'ok', output: 'No.' });
  const away = await candidate(...calls(3), refused());
  expect(away).toMatchObject({ status: 'error', error: { code: 'MODEL' }, steps: { length: 3 } });
});
