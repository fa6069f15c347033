import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ReadableSpan } from '@opentelemetry/sdk-trace';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { passOnErrors } from '../../fixtures/processes.ts';
import { packageFlags } from '../../toolchain/programs.ts';
import { faultsOf, statusOf, treeOf } from '../spans.ts';
import { readSpans } from './sent-spans.ts';

const engines = new URL('../../engines/node_modules/@langfuse/otel/package.json', import.meta.url);
const whyNot = existsSync(engines) ? undefined : 'SKIPPED: npm run engines installs the SDK';

let received: ReadableSpan[] = [];
const collector = createServer(async (request, response) => {
  received.push(...(await readSpans(request)));
  response.setHeader('content-type', 'application/json').end('{}');
});
const folder = mkdtempSync(join(tmpdir(), 'pawl-sdk-2-'));
let url = '';

beforeAll(async () => {
  await once(collector.listen(0, '127.0.0.1'), 'listening');
  url = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`;
});
beforeEach(() => {
  received = [];
});
afterAll(() => {
  collector.close();
  rmSync(folder, { recursive: true, force: true });
});

function start(product: 'otlp' | 'langfuse', fate: 'lives' | 'dies' | 'takes over') {
  const worker = fileURLToPath(new URL('sdk-2-worker.ts', import.meta.url));
  const args = [...packageFlags, worker, join(folder, `${product}.db`), url, product, fate];
  const child = passOnErrors(spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] }));
  onTestFinished(() => void child.kill('SIGKILL'));
  let said = '';
  child.stdout.on('data', (text) => {
    said += text;
  });
  return { child, exited: once(child, 'exit'), said: () => said };
}

const pawls = () => received.filter(({ name }) => !name.startsWith('inside'));
const own = () => received.filter(({ name }) => name.startsWith('inside'));

describe.skipIf(whyNot)(`version 2 of the SDK, with version 1.9 of its API${whyNot ? ` (${whyNot})` : ''}`, () => {
  test('has one whole trace of a run whose process is killed, and the spans of a tool have ids of their own (otel 4, 6, 22, 34)', async () => {
    const first = start('otlp', 'dies');
    await once(first.child.stdout, 'data');
    first.child.kill('SIGKILL');
    await first.exited;
    const second = start('otlp', 'takes over');
    await second.exited;
    // No warning of missing ids: they are those that Pawl wished.
    expect(second.said().trim().split('\n')).toEqual([expect.stringContaining('tool pay may or may not have'), 'ok']);
    expect(faultsOf({ spans: () => received, open: () => [], exporterOf: (span) => span })).toEqual([]);
    expect(
      pawls()
        .map((span) => `${span.name} ${statusOf(span)}`)
        .sort(),
    ).toEqual([
      'chat scripted unset',
      'chat scripted unset',
      'chat scripted unset',
      'execute_tool look unset',
      'execute_tool pay error lost',
      'invoke_agent payer error lost',
      'invoke_agent payer unset',
    ]);
    const parentOf = ({ parentSpanContext }: ReadableSpan) =>
      received.find((span) => span.spanContext().spanId === parentSpanContext?.spanId)?.name;
    expect(own().map(parentOf)).toEqual(['execute_tool look', 'execute_tool pay']);
  });

  test("gives Langfuse's processor each span with what it reads, and one root (otel 10, 12, 13, 34)", async () => {
    const { exited, said } = start('langfuse', 'lives');
    await exited;
    expect(said()).toBe('ok\n');
    const tree = [
      'invoke_agent payer',
      '  chat scripted',
      '  execute_tool look',
      '  chat scripted',
      '  execute_tool pay',
      '  chat scripted',
    ];
    // It keeps spans of agents, models and tools alone.
    expect(treeOf(received)).toEqual(tree);
    const roots = received.filter(({ attributes }) => attributes['langfuse.internal.is_app_root'] === true);
    expect(roots.map(({ name }) => name)).toEqual(['invoke_agent payer']);
    const read = (name: string) => received.find((span) => span.name === name)?.attributes;
    expect(read('invoke_agent payer')).toMatchObject({
      ...{ 'gen_ai.operation.name': 'invoke_agent', 'gen_ai.agent.name': 'payer' },
      ...{ 'session.id': 'thread-1', 'langfuse.user.id': 'ada' },
      'gen_ai.input.messages': expect.stringContaining('Pay it.'),
      'gen_ai.output.messages': expect.stringContaining('end'),
    });
    expect(read('chat scripted')).toMatchObject({
      ...{ 'gen_ai.operation.name': 'chat', 'gen_ai.request.model': 'scripted', 'gen_ai.provider.name': 'scripted' },
      ...{ 'gen_ai.usage.input_tokens': 10, 'gen_ai.usage.output_tokens': 5 },
    });
    expect(read('execute_tool look')).toMatchObject({
      ...{ 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': 'look', 'gen_ai.tool.call.id': 'look-1' },
      ...{ 'gen_ai.tool.call.arguments': '{}', 'gen_ai.tool.call.result': 'done' },
    });
  });
});
