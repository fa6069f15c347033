import { expect, test } from 'vitest';
import { begin, callLines, texts, until } from '../examples/review-trial.ts';
import { jsonLines, pawl } from './pawl.ts';

test('`pawl resume` without an id leaves the runs that agents began to their parents, which go on with them', async () => {
  const cwd = texts();
  const first = begin(cwd, 'after add_finding stars/');
  await until(() => callLines(cwd).some(({ event }) => event === 'held'), first);
  first.child.kill('SIGKILL');
  await first.ended;
  const { code, stdout, stderr } = await pawl(['resume', '--json'], { cwd, env: { REVIEW_OUT: 'out' } });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const lines = jsonLines(stdout);
  expect(lines.filter(({ type }) => type === 'run.started').map(({ runId }) => runId)).toEqual(['r']);
  expect(lines.filter(({ type, reason }) => type === 'run.skipped' && !/parent/.test(String(reason)))).toEqual([]);
});
