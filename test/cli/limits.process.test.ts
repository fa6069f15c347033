import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { agentFile, emptyFolder, pawl } from './pawl.ts';

describe('the rules that an agent module exports as `limits`', () => {
  test('hold for all processes of its store: a run without a turn waits, and says so (failover 16, 18)', async () => {
    const cwd = emptyFolder();
    const run = (runId: string) => pawl(['run', agentFile('limited'), 'Go.', '--run-id', runId], { cwd });
    expect(await run('a')).toMatchObject({ code: 0, stdout: 'done\n' });
    expect(await run('b')).toMatchObject({ code: 0, stdout: 'done\n' });
    expect((await run('c')).code).toBe(75);
    expect((await pawl(['waiting', '--json'], { cwd })).stdout).toContain('"kind": "limit"');
    const held = /waits for its turn, which is limited by model:\n(?: .*\n)*? +rule +model\n +until +\d{4}-.*, in /;
    expect((await pawl(['show', 'c'], { cwd })).stdout).toMatch(held);
    expect((await pawl(['waiting'], { cwd })).stdout).toMatch(/waits for its turn, which is limited by model\n/);
    expect((await pawl(['doctor'], { cwd })).stdout).toMatch(
      /c: it waits for its turn, which is limited by model, until /,
    );
  });

  test('are checked when the module is loaded (failover 16)', async () => {
    const cwd = emptyFolder();
    const module = `export { default, models } from '${agentFile('limited')}';\nexport const limits = [{ by: 'moon' }];\n`;
    writeFileSync(join(cwd, 'wrong.ts'), module);
    const { code, stderr } = await pawl(['run', './wrong.ts', 'Go.'], { cwd });
    expect(code).toBe(2);
    expect(stderr).toMatch(/the export `limits` of .*wrong\.ts must be a list of rules: .*rules\[0\]\.by must be/);
  });
});
