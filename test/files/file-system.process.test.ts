import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { diskFiles } from '../../src/files/file-system.ts';
import { freshDir } from '../store/folder.ts';

test('a loop that looks for a file that is not there yet leaves room for timers', async () => {
  const path = join(freshDir(), 'not there');
  let isTimerHeard = false;
  setImmediate(() => {
    isTimerHeard = true;
  });
  for (let looks = 0; looks < 10_000 && !isTimerHeard; looks++) await diskFiles.readWhole(path).catch(() => {});
  expect(isTimerHeard).toBe(true);
});

test('a pipe is not waited for: reading it fails, or gives nothing, at once', async () => {
  const path = join(freshDir(), 'pipe');
  await diskFiles.makeFolder(join(path, '..'));
  execFileSync('mkfifo', [path]);
  const file = await diskFiles.open(path, 'read');
  await expect(file.read(1, 0)).rejects.toMatchObject({ code: 'ESPIPE' });
  await file.close();
  expect(await diskFiles.readWhole(path)).toHaveLength(0);
});
