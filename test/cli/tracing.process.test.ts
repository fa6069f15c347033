import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { agentFile, emptyFolder, pawl } from './pawl.ts';

const counter = JSON.stringify(agentFile('counter'));

test('a run of `pawl run` is traced where its module exports `tracing`, and its `close` is awaited (operations 26, otel 25)', async () => {
  const cwd = emptyFolder();
  const module = join(cwd, 'traced.ts');
  const spans = join(cwd, 'spans');
  writeFileSync(
    module,
    `import { appendFileSync } from 'node:fs';
     export { default, models, prompt } from ${counter};
     const say = (what: string) => appendFileSync(${JSON.stringify(spans)}, what + '\\n');
     export const tracing = {
       begin: ({ runId }: { runId: string }) => { say('begin ' + runId); return '00-${'ab'.repeat(16)}-${'cd'.repeat(8)}-01'; },
       enter: ({ kind }: { kind: string }, next: () => Promise<unknown>) => { say(kind); void next(); },
       event: ({ type }: { type: string }) => say(type),
     };
     export const close = () => say('closed');`,
  );
  const { code, stdout } = await pawl(['run', module, '--run-id', 'r', '--store', 'runs.db'], { cwd });
  expect([code, stdout]).toEqual([0, 'counted to 3\n']);
  // The way from a run to its trace.
  const shown = await pawl(['show', 'r', '--store', 'runs.db'], { cwd });
  expect(shown.stdout).toMatch(/\ntrace +(ab){16}\n/);
  const said = readFileSync(spans, 'utf8').split('\n');
  expect(said[0]).toBe('begin r');
  expect(said.filter((what) => what === 'model')).toHaveLength(4);
  expect(said.filter((what) => what === 'tool')).toHaveLength(3);
  // What an SDK has not sent yet goes out at the end.
  expect(said.slice(-3)).toEqual(['run.ended', 'closed', '']);
});

test('an export `tracing` that is no tracing is refused with 2 (otel 25)', async () => {
  const cwd = emptyFolder();
  const module = join(cwd, 'wrong.ts');
  writeFileSync(module, `export { default, models } from ${counter};\nexport const tracing = { begin: 1 };`);
  const { code, stderr } = await pawl(['work', module, '--store', 'runs.db'], { cwd });
  expect(code).toBe(2);
  expect(stderr).toContain('must be what openTelemetry() of pawl/otel returns');
});
