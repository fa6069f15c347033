import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { passOnErrors } from '../fixtures/processes.ts';
import { packageFlags } from '../toolchain/programs.ts';

/** A span as OTLP/JSON has it. */
interface SentSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly status?: { readonly code?: number; readonly message?: string };
}

const received: SentSpan[] = [];
const collector = createServer(async (request, response) => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const { resourceSpans = [] } = JSON.parse(Buffer.concat(chunks).toString()) as {
    resourceSpans?: { scopeSpans: { spans: SentSpan[] }[] }[];
  };
  received.push(...resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans)));
  response.setHeader('content-type', 'application/json').end('{}');
});
const folder = mkdtempSync(join(tmpdir(), 'pawl-otel-'));

afterAll(() => {
  collector.close();
  rmSync(folder, { recursive: true, force: true });
});

test('a run whose process is killed with SIGKILL during a `once` call is one whole trace in a real collector (otel 4, 34)', async () => {
  await once(collector.listen(0, '127.0.0.1'), 'listening');
  const url = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`;
  const worker = fileURLToPath(new URL('worker.ts', import.meta.url));
  const start = (fate: string) => {
    const args = [...packageFlags, worker, join(folder, 'runs.db'), url, fate];
    return passOnErrors(spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] }));
  };
  const first = start('dies');
  expect(String((await once(first.stdout, 'data'))[0])).toBe('paying\n');
  first.kill('SIGKILL');
  await once(first, 'exit');
  // Each span is a request of its own: the collector may read a later one first.
  expect(received.map(({ name }) => name).sort()).toEqual(['chat scripted', 'chat scripted', 'execute_tool look']);

  const second = start('lives');
  const said = once(second.stdout, 'data');
  await once(second, 'exit');
  expect(String((await said)[0])).toBe('ok\n');

  const ids = received.map(({ spanId }) => spanId);
  expect(new Set(received.map(({ traceId }) => traceId)).size).toBe(1);
  expect(new Set(ids).size).toBe(ids.length);
  expect(received.filter(({ parentSpanId }) => parentSpanId && !ids.includes(parentSpanId))).toEqual([]);
  expect(received.map(({ name, status }) => `${name} ${status?.message ?? ''}`.trim()).sort()).toEqual([
    'chat scripted',
    'chat scripted',
    'chat scripted',
    'execute_tool look',
    'execute_tool pay lost',
    'invoke_agent payer',
    'invoke_agent payer lost',
  ]);
});
