import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { exportRuns } from 'pawl/lab';
import { callTool, reply, scriptedModel } from 'pawl/testing';
import { expect, test } from 'vitest';
import { replayEval, replayHarness } from '../../docs/examples/refund-desk/evals.ts';
import { toolOf } from '../fixtures/host.ts';
import { recordedRun } from '../lab/recorded.ts';

const tools = [toolOf('look', 'read'), toolOf('refund', 'once')];
const script = [callTool('look'), callTool('refund', { cents: 550 }), reply('Refunded.')];
const effects = [{ name: 'refund', input: { cents: 550 } }];
const other = () => scriptedModel([callTool('refund', { cents: 500 }), reply('Refunded less.')]);

test('recorded runs are a harness of vitest-evals: output, session with messages and calls, usage and errors (lab 32)', async () => {
  const { host, run } = await recordedRun({ tools, script });
  const { agent } = host;
  const same = await replayHarness({ agent }).run(run);
  expect(same).toMatchObject({ output: { output: 'Refunded.', effects }, usage: run.usage, errors: [] });
  expect(same.session.events).toEqual([
    { type: 'message', role: 'user', content: 'Go.' },
    { type: 'tool_call', id: expect.any(String), name: 'look', arguments: {} },
    { type: 'tool_call', id: expect.any(String), name: 'refund', arguments: { cents: 550 } },
    { type: 'message', role: 'assistant', content: 'Refunded.' },
  ]);
  const strict = await replayHarness({ agent, model: other(), tools: 'strict' }).run(run);
  expect(strict.errors).toMatchObject([{ code: 'REPLAY_MISS' }]);
});

test('recorded runs are an eval of evalite: cases, a task, and a scorer that is 1 for the same effects (lab 32)', async () => {
  const { host } = await recordedRun({ tools, script });
  const { agent } = host;
  const path = join(mkdtempSync(join(tmpdir(), 'pawl-evals-')), 'runs.jsonl');
  const lines: string[] = [];
  for await (const line of exportRuns(host.executor, ['r'])) lines.push(line);
  writeFileSync(path, lines.join(''));
  for (const [model, score] of [
    [undefined, 1],
    [other(), 0],
  ] as const) {
    const { data, task, scorers } = replayEval(path, { agent, ...(model ? { model } : {}) });
    const [one, ...more] = await data();
    expect([one?.expected, more]).toEqual([effects, []]);
    const output = one && (await task(one.input));
    expect(scorers.map(({ scorer }) => scorer({ output, expected: one?.expected }))).toEqual([score]);
  }
});
