import type { Critic, Phase, Run, SupervisedRun } from 'pawl';
import { callTool, fail, hang, reply, type ScriptedEntry, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { ShutdownError } from '../../src/values/errors.ts';
import { hostOf, settle, toolOf, until } from '../fixtures/host.ts';
import { look, outputsOf, systemsOf, tell, two } from '../fixtures/phases.ts';
import { speakingModel } from '../fixtures/speaking-model.ts';

const optional: Phase[] = [{ ...look, optional: true, fallback: 'nothing' }, tell];
const down = fail(Object.assign(new Error('down'), { statusCode: 400 }));
const broken = toolOf('break', 'read', () => Promise.reject(new Error('broken')));
const brokenSteps: ScriptedEntry[] = [1, 2, 3].map((n) => callTool('break', { n }));
const repeated: ScriptedEntry[] = [1, 2, 3].map(() => callTool('look'));

describe('an optional phase (pipeline 4)', () => {
  test.for([
    ['its model fails for good', [down]],
    ['its model fails for good after a step', [callTool('look'), down]],
    ['all its tool calls fail', brokenSteps],
    ['it makes one call over and over', repeated],
  ] as const)('is replaced by its fallback when %s, and the pipeline continues', async ([, entries]) => {
    const tools = [toolOf('look'), broken];
    const { run, model } = hostOf({ agent: { phases: optional }, tools, script: [...entries, reply('told')] });
    const result = await run();
    expect(result).toMatchObject({ status: 'ok', output: 'told' });
    expect(result).not.toHaveProperty('error');
    expect(outputsOf(result)).toEqual(['a: nothing', 'b: told']);
    expect(systemsOf(model).at(-1)).toBe('B saw nothing');
    expect(model.calls.at(-1)?.messages).toHaveLength(1);
  });

  test('leaves an empty text without a fallback, also as the last phase', async () => {
    const phases = [look, { ...tell, optional: true }];
    const { run } = hostOf({ agent: { phases }, script: [reply('seen'), down] });
    const result = await run();
    expect(result).toMatchObject({ status: 'ok', output: '' });
    expect(outputsOf(result)).toEqual(['a: seen', 'b: ']);
  });

  test('that succeeds leaves what it said, and not its fallback', async () => {
    const { run } = hostOf({ agent: { phases: optional }, script: [reply('seen'), reply('told')] });
    expect(outputsOf(await run())).toEqual(['a: seen', 'b: told']);
  });

  test('that runs out of steps hands its last text on, and not its fallback (pipeline 5)', async () => {
    const model = speakingModel((turn) =>
      turn === 1 ? { text: 'half', calls: [{ name: 'look' }] } : { text: 'told' },
    );
    const phases = [{ ...(optional[0] as Phase), maxSteps: 1 }, tell];
    const { run } = hostOf({ agent: { phases }, tools: [toolOf('look')], models: { fast: model } });
    expect(outputsOf(await run())).toEqual(['a: half', 'b: told']);
  });
});

/** What a run may be stopped by from outside, and with which status it ends then. */
const stops = {
  'a cancel': { status: 'cancelled', stop: ({ run }) => run.cancel('enough') },
  'an abort of its caller': { status: 'cancelled', stop: ({ abort }) => abort(new Error('enough')) },
  'the deadline': { status: 'timeout', stop: ({ clock }) => clock.advance(60_000) },
  'a kill': { status: 'killed', stop: ({ watched }) => watched()?.kill('enough') },
  'a shutdown': { status: 'interrupted', stop: ({ shutdown }) => shutdown() },
  'a shutdown that its caller tells of': { status: 'interrupted', stop: ({ abort }) => abort(new ShutdownError()) },
} as const satisfies Record<string, { status: string; stop: (scene: Scene) => unknown }>;

interface Scene {
  readonly run: Run;
  readonly abort: (reason: unknown) => void;
  readonly clock: ReturnType<typeof testClock>;
  readonly watched: () => SupervisedRun | undefined;
  readonly shutdown: () => Promise<void>;
}

async function stopped(name: keyof typeof stops, phases: readonly Phase[], script: ScriptedEntry[]) {
  const clock = testClock();
  let supervised: SupervisedRun | undefined;
  const critic: Critic = {
    monitor: (_, watched) => {
      supervised = watched;
      return { onActivity: () => {}, stop: () => {} };
    },
  };
  let isAtWork = false;
  const wait = toolOf('wait', 'read', (_, { signal }) => {
    isAtWork = true;
    return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
  });
  const controller = new AbortController();
  const host = hostOf({
    agent: { phases, maxRuntimeMs: 60_000 },
    tools: [wait],
    script,
    clock,
    ...(name === 'a kill' ? { ports: { critic } } : {}),
  });
  const run = await host.start({}, { signal: controller.signal });
  await until(() => isAtWork || host.model.calls.length === script.length);
  const abort = (reason: unknown) => controller.abort(reason);
  const shutdown = () => host.executor.shutdown();
  void stops[name].stop({ run, abort, clock, watched: () => supervised, shutdown });
  const result = await run.result;
  await settle();
  return { host, result };
}

describe.for(Object.keys(stops) as (keyof typeof stops)[])('%s', (name) => {
  const { status } = stops[name];

  test.for([
    ['its model is thinking', [hang()]],
    ['its tool is at work', [callTool('wait')]],
  ] as const)(
    'is not swallowed by an optional phase while %s; the next does not start (pipeline 4, 5)',
    async ([, script]) => {
      const { host, result } = await stopped(name, optional, [...script]);
      expect(result).toMatchObject({ status, phases: [] });
      expect(host.model.calls).toHaveLength(1);
    },
  );

  test('in a later phase leaves what is complete in the result', async () => {
    const phases = [look, { ...tell, optional: true }, tell];
    const { host, result } = await stopped(name, phases, [reply('seen'), hang()]);
    expect(result).toMatchObject({ status, output: 'seen' });
    expect(outputsOf(result)).toEqual(['a: seen']);
    expect(host.model.calls).toHaveLength(2);
  });
});

describe('a phase', () => {
  test.for([
    ['text beside its last calls', 'half', 'half'],
    ['no text', '', ''],
  ] as const)('that runs out of steps hands on its last text: %s (pipeline 5)', async ([, text, output]) => {
    const model = speakingModel((turn) =>
      turn <= 2 ? { text, calls: [{ name: 'look', input: { turn } }] } : { text: 'told' },
    );
    const phases = [{ ...look, maxSteps: 2 }, tell];
    const { run } = hostOf({ agent: { phases }, tools: [toolOf('look')], models: { fast: model } });
    const result = await run();
    expect(result).toMatchObject({ status: 'ok', output: 'told', iterations: 3 });
    expect(outputsOf(result)).toEqual([`a: ${output}`, 'b: told']);
  });

  test('that is the last and runs out of steps ends the run well, with that text (pipeline 5)', async () => {
    const model = speakingModel((turn) =>
      turn === 1 ? { text: 'seen' } : { text: 'half', calls: [{ name: 'look' }] },
    );
    const phases = [look, { ...tell, maxSteps: 1 }];
    const { run } = hostOf({ agent: { phases }, tools: [toolOf('look')], models: { fast: model } });
    expect(await run()).toMatchObject({ status: 'ok', output: 'half' });
  });

  test.for([
    ['its model fails', 'MODEL', [down]],
    ['all its tool calls fail', 'TOOL_LOOP', brokenSteps],
    ['it makes one call over and over', 'TOOL_LOOP', repeated],
  ] as const)(
    'that is not optional ends the run when %s: later phases do not start (pipeline 5)',
    async ([, code, entries]) => {
      const script = [reply('seen'), ...entries, reply('never')];
      const phases = [look, tell, { ...tell, optional: true }];
      const { run, model } = hostOf({ agent: { phases }, tools: [toolOf('look'), broken], script });
      const result = await run();
      expect(result).toMatchObject({ status: 'error', error: { code }, output: 'seen' });
      expect(outputsOf(result)).toEqual(['a: seen']);
      expect(model.calls).toHaveLength(script.length - 1);
    },
  );

  test('that broke off after it had said something gives the run that text as output', async () => {
    const model = speakingModel((turn) => {
      if (turn === 3) throw new Error('down');
      return turn === 1 ? { text: 'seen' } : { text: 'half', calls: [{ name: 'look' }] };
    });
    const { run } = hostOf({ agent: { phases: two }, tools: [toolOf('look')], models: { fast: model } });
    expect(await run()).toMatchObject({ status: 'error', output: 'half' });
  });

  test('does not start when the run is cancelled in the last turn of the one before (pipeline 5)', async () => {
    let run: Run | undefined;
    const last: ScriptedEntry = () => {
      void run?.cancel('enough');
      return reply('seen');
    };
    const { start, model } = hostOf({
      agent: { phases: two },
      tools: [toolOf('look')],
      script: [callTool('look'), last],
    });
    run = await start();
    expect(await run.result).toMatchObject({ status: 'cancelled', phases: [] });
    expect(model.calls).toHaveLength(2);
  });
});

describe('a tool loop in a phase is a failure of the phase, and not the end of its steps (decision 24)', () => {
  /** So many turns say something and make the same call; the next one answers. */
  const runWith = async (first: Partial<Phase>, circles = 3) => {
    const model = speakingModel((turn) =>
      turn > circles ? { text: 'told' } : { text: `half ${turn}`, calls: [{ name: 'look' }] },
    );
    const phases = [{ ...look, ...first }, tell];
    return hostOf({ agent: { phases }, tools: [toolOf('look')], models: { fast: model } }).run();
  };

  test('it ends the run where the phase is not optional, also in the very turn in which its steps run out', async () => {
    for (const maxSteps of [3, 10]) {
      const result = await runWith({ maxSteps });
      expect(result).toMatchObject({ status: 'error', error: { code: 'TOOL_LOOP' }, output: 'half 3', iterations: 3 });
      expect(result.phases).toEqual([]);
    }
  });

  test('its last text is not handed on where the phase is optional: the fallback is', async () => {
    const result = await runWith({ optional: true, fallback: 'nothing' });
    expect(result).toMatchObject({ status: 'ok', output: 'told', iterations: 4 });
    expect(outputsOf(result)).toEqual(['a: nothing', 'b: told']);
  });

  test('steps that run out before it hand the last text on', async () => {
    const result = await runWith({ maxSteps: 2 }, 2);
    expect(outputsOf(result)).toEqual(['a: half 2', 'b: told']);
  });

  test('what one phase repeated does not count against the next', async () => {
    const script = [...repeated.slice(1), reply('seen'), ...repeated.slice(1), reply('told')];
    const result = await hostOf({ agent: { phases: two }, tools: [toolOf('look')], script }).run();
    expect(outputsOf(result)).toEqual(['a: seen', 'b: told']);
  });
});
