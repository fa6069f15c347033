import { readFileSync, writeFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { createExecutor } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { scriptedModel } from 'pawl/testing';
import { expect, test } from 'vitest';
import { bin } from '../toolchain/programs.ts';
import agent from './agents/counter.ts';
import { agentFile, emptyFolder, Pawl, pawl } from './pawl.ts';

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

test('the runs of `node --import ./otel.mjs … pawl work` are traced by the provider that the imported file has set up (operations 26)', async () => {
  const cwd = emptyFolder();
  const at = (name: string) => JSON.stringify(import.meta.resolve(name));
  const otel = JSON.stringify(new URL(`../otel/index${extname(bin)}`, pathToFileURL(bin)).href);
  writeFileSync(
    join(cwd, 'otel.mjs'),
    `import { appendFileSync } from 'node:fs';
     import { trace } from ${at('@opentelemetry/api')};
     import { TracerProvider } from ${at('@opentelemetry/sdk-trace')};
     import { runIds } from ${otel};
     const write = (span) => appendFileSync('spans', span.spanContext().traceId + ' ' + span.name + '\\n');
     const processor = { onStart() {}, onEnd: write, async forceFlush() {}, async shutdown() {} };
     trace.setGlobalTracerProvider(new TracerProvider({ idGenerator: runIds(), spanProcessors: [processor] }));`,
  );
  writeFileSync(
    join(cwd, 'agent.ts'),
    `import { openTelemetry } from ${otel};
     export { default, models } from ${counter};
     export const tracing = openTelemetry();`,
  );
  const store = sqliteStore({ path: join(cwd, 'runs.db') });
  const executor = createExecutor({ models: { fast: scriptedModel([]) }, store });
  await executor.start(agent, { runId: 'r', prompt: 'count, please' }, { drive: 'later' });
  await executor.shutdown();
  await store.close();
  const worker = new Pawl(['work', 'agent.ts', '--store', 'runs.db'], { cwd, nodeOptions: ['--import', './otel.mjs'] });
  await worker.says('ok r');
  worker.child.kill('SIGTERM');
  expect((await worker.ended).code).toBe(0);
  const { stdout } = await pawl(['show', 'r', '--store', 'runs.db'], { cwd });
  const traceId = /\ntrace +(\w{32})\n/.exec(stdout)?.[1];
  const spans = readFileSync(join(cwd, 'spans'), 'utf8').trim().split('\n');
  expect(new Set(spans.map((span) => span.split(' ')[0]))).toEqual(new Set([traceId]));
  expect(spans.filter((span) => span.includes('execute_tool count'))).toHaveLength(3);
});

test('an export `tracing` that is no tracing is refused with 2 (otel 25)', async () => {
  const cwd = emptyFolder();
  const module = join(cwd, 'wrong.ts');
  writeFileSync(module, `export { default, models } from ${counter};\nexport const tracing = { begin: 1 };`);
  const { code, stderr } = await pawl(['work', module, '--store', 'runs.db'], { cwd });
  expect(code).toBe(2);
  expect(stderr).toContain('must be what openTelemetry() of pawl/otel returns');
});
