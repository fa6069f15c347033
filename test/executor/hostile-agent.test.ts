import { type Agent, createExecutor, defineAgent } from 'pawl';
import { reply, scriptedModel } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { hostOf, toolOf } from '../fixtures/host.ts';

/** Every trap of a proxy, each of which throws the value. */
function trapsThatThrow(value: unknown): ProxyHandler<object> {
  const trap = () => {
    throw value;
  };
  return Object.fromEntries(Reflect.ownKeys(Reflect).map((name) => [name, trap]));
}

test('an agent that throws when it is read gives its run a result, and does no harm to others (executor 1)', async () => {
  const warnings: string[] = [];
  const executor = createExecutor({
    models: { fast: scriptedModel([reply('fine')]) },
    logger: { warn: (message) => void warnings.push(message) },
  });
  const { agent } = hostOf();
  const hostile = Object.defineProperty({ ...agent }, 'model', {
    get: () => {
      throw new Error('not today');
    },
  });
  const result = await executor.run(hostile, { prompt: 'Go.' });
  expect(result).toMatchObject({ status: 'error', error: { code: 'RUN_PANIC' } });
  expect(await executor.run(agent, { prompt: 'Go.' })).toMatchObject({ status: 'ok', output: 'fine' });
});

describe('for an agent object that does anything when it is read, start throws a TypeError or gives a result', () => {
  const fields = ['id', 'name', 'version', 'instructions', 'model', 'tools', 'phases', 'subAgents', 'output'];
  const thrown: [string, unknown][] = [
    ['an Error', new Error('not today')],
    ['null', null],
    ['undefined', undefined],
    ['an error with a code of ours', Object.assign(new Error('no money'), { code: 'BUDGET_EXCEEDED' })],
    ['an object that cannot be read', new Proxy({}, trapsThatThrow(null))],
  ];

  test.for(fields.flatMap((field) => thrown.map(([what, value]) => [field, what, value] as const)))(
    'a getter of %s that throws %s makes the run end with RUN_PANIC',
    async ([field, , value]) => {
      const { executor, agent, model } = hostOf();
      const hostile = Object.defineProperty({ ...agent }, field, {
        enumerable: true,
        get: () => {
          throw value;
        },
      });
      const run = await executor.start(hostile, { prompt: 'Go.', runId: 'r' });
      expect(await run.result).toMatchObject({ runId: 'r', status: 'error', error: { code: 'RUN_PANIC' } });
      expect(model.calls).toHaveLength(0);
      expect(await executor.run(agent, { prompt: 'Go.', runId: 'r' })).toMatchObject({ status: 'ok' });
    },
  );

  test.for([...thrown, ['a TypeError', new TypeError('mine')] as const])(
    'a proxy whose traps all throw %s never makes start reject with something else than a TypeError',
    async ([, value]) => {
      const { executor, agent } = hostOf();
      const outcome = await executor
        .run(new Proxy({ ...agent }, trapsThatThrow(value)) as Agent, { prompt: 'Go.' })
        .then(
          ({ error }) => error?.code,
          (rejection: unknown) => rejection instanceof TypeError && 'TypeError',
        );
      expect(['RUN_PANIC', 'TypeError']).toContain(outcome);
    },
  );

  test('a getter within a phase that throws null makes the run end with RUN_PANIC', async () => {
    const { executor, agent } = hostOf();
    const phase = Object.defineProperty({ name: 'a' }, 'instructions', {
      enumerable: true,
      get: () => {
        throw null;
      },
    });
    const result = await executor.run({ ...agent, phases: [phase as never] }, { prompt: 'Go.' });
    expect(result).toMatchObject({ status: 'error', error: { code: 'RUN_PANIC' } });
  });

  test('what an agent answers after it was read changes nothing: each field is read once', async () => {
    const reads: string[] = [];
    const { executor, agent, model } = hostOf({ script: [reply('a'), reply('b')] });
    const phases = [{ name: 'a', instructions: 'First.' }];
    const shifting = new Proxy({ ...agent, phases } as Agent, {
      get(target, key) {
        if (typeof key === 'string') reads.push(key);
        if (reads.filter((read) => read === key).length > 1 && key !== 'id')
          throw new Error(`${String(key)} is read again`);
        return Reflect.get(target, key);
      },
    });
    const running = executor.start(shifting, { prompt: 'Go.' });
    (phases as object[]).push({ name: 'b', instructions: 'Second.' });
    expect(await (await running).result).toMatchObject({ status: 'ok', phases: [{ name: 'a' }] });
    expect(model.calls).toHaveLength(1);
  });

  test('an agent that defineAgent made keeps its definition when the lists that it was made of change', () => {
    const phases = [{ name: 'a', instructions: 'First.' }];
    const tools = [toolOf('look')];
    const agent = defineAgent({ id: 'a', instructions: '', phases, tools });
    phases.push({ name: 'b', instructions: 'Second.' });
    (phases[0] as { name: string }).name = 'changed';
    tools.length = 0;
    expect(agent.phases).toEqual([{ name: 'a', instructions: 'First.' }]);
    expect(agent.tools).toHaveLength(1);
    expect(() => (agent.phases as unknown[]).push({})).toThrow(TypeError);
  });

  test('an agent that cannot be read is refused by executor.logic and createExecutor with a TypeError', () => {
    const { executor } = hostOf();
    const hostile = new Proxy({}, trapsThatThrow(null)) as Agent;
    expect(() => executor.logic(hostile)).toThrow(TypeError);
    expect(() => hostOf({ agents: [hostile] })).toThrow(TypeError);
  });

  test('run options that cannot be read are refused with a TypeError', async () => {
    const { executor, agent } = hostOf();
    const options = new Proxy({}, trapsThatThrow(null));
    await expect(executor.run(agent, { prompt: 'Go.' }, options)).rejects.toThrow(TypeError);
  });
});
