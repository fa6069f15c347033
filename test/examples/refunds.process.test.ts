import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** `node --test` on one file, as a host runs it; what vitest has put into the environment is not for it. */
function nodeTest(file: string): Promise<{ code: number | null; output: string }> {
  const { NODE_OPTIONS: _, NODE_TEST_CONTEXT: __, ...env } = process.env;
  const child = spawn(process.execPath, ['--test', '--test-reporter=tap', file], { cwd: root, env });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (output += data));
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, output })));
}

test('the refund desk’s own suite passes under node --test, as a host would run it', async () => {
  const { code, output } = await nodeTest('docs/examples/refunds/desk.test.ts');
  expect(output).toContain('# pass 3');
  expect(output).toContain('# fail 0');
  expect(code).toBe(0);
}, 180_000);
