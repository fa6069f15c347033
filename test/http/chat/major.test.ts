import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { reply } from 'pawl/testing';
import { afterEach, expect, test, vi } from 'vitest';
import { webHost } from '../web-host.ts';

let folder = '';
afterEach(() => {
  vi.restoreAllMocks();
  rmSync(folder, { recursive: true, force: true });
});

function install(version: string): void {
  folder = mkdtempSync(join(tmpdir(), 'pawl-major-'));
  mkdirSync(join(folder, 'node_modules', 'ai'), { recursive: true });
  writeFileSync(join(folder, 'node_modules', 'ai', 'package.json'), JSON.stringify({ name: 'ai', version }));
  vi.spyOn(process, 'cwd').mockReturnValue(folder);
}

test.for([
  ['6.0.326', ['http: useChat needs ai@7 and @ai-sdk/react@4; ai@6.0.326 is installed here']],
  ['7.0.1', []],
] as const)('a chat beside ai@%s: another major than 7 is one line, once', async ([version, expected]) => {
  install(version);
  const warned: string[] = [];
  const logger = { warn: (message: string) => warned.push(message) };
  const host = webHost({ script: [reply('Hi'), reply('Hi')], http: { logger } });
  for (const id of ['one', 'two']) {
    const message = { id: `${id}-1`, role: 'user', parts: [{ type: 'text', text: 'Hello' }] };
    const response = await host.open('/chat', { body: { id, messages: [message] } });
    await response.text();
  }
  expect(warned).toEqual(expected);
});
