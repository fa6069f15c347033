import { execFile } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { installedFolder, pathWithNode } from '../fixtures/installed.ts';
import { refuses, replies, serveProvider } from '../model/providers/provider-server.ts';

const page = readFileSync(fileURLToPath(new URL('../../docs/models.md', import.meta.url)), 'utf8');
let folder: string;

beforeAll(() => {
  folder = installedFolder(['@ai-sdk/anthropic', '@ai-sdk/openai', 'ai']);
  writeFileSync(join(folder, 'package.json'), '{ "name": "app", "type": "module" }\n');
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Runs a block of the page between two providers, of which the first one is overloaded. */
async function play(code: string) {
  // Each attempt may follow at once.
  const overloaded = refuses({ status: 529, message: 'Overloaded' }, { 'retry-after-ms': '1' });
  await using first = await serveProvider('anthropic', [overloaded]);
  await using second = await serveProvider('openai', [replies({ text: 'Paris.', end: 'stop' })], {
    mode: code.includes('generateText') ? 'whole' : 'streamed',
  });
  const env = {
    ...{ ...process.env, PATH: pathWithNode, ANTHROPIC_API_KEY: 'k', OPENAI_API_KEY: 'k' },
    ...{ ANTHROPIC_BASE_URL: `${first.url}/v1`, OPENAI_BASE_URL: `${second.url}/v1` },
  };
  writeFileSync(join(folder, 'block.ts'), code);
  const { stdout, stderr } = await promisify(execFile)(process.execPath, ['block.ts'], { cwd: folder, env });
  return { stdout, stderr, asked: [first.bodies.length, second.bodies.length] };
}

test('the blocks of the page about models run in their order, in a folder with the package; the list answers as the chain of try and catch before it does, with fewer requests, and says who answered (failover 2, 12, 29)', async () => {
  const asked: unknown[] = [];
  for (const [, code = ''] of page.matchAll(/^```ts\n([\s\S]*?)^```$/gm)) {
    const played = await play(code);
    const told = [...code.matchAll(/^console\.log\(.*\); \/\/ (.*)$/gm)].map(([, text]) => `${text}\n`);
    expect([code, played.stdout, played.stderr]).toEqual([code, told.join(''), '']);
    const name = /^\/\/ (\S+)\n/.exec(code)?.[1];
    if (name) asked.push([name, ...played.asked]);
  }
  expect(asked).toEqual([
    ['chain.ts', 3, 1],
    ['list.ts', 2, 1],
  ]);
});
