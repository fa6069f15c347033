import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { emptyFolder, jsonLines, Pawl, pawl } from '../cli/pawl.ts';

const file = fileURLToPath(new URL('../../docs/examples/digest/digest.ts', import.meta.url));

test('two processes of the digest, of which one is killed, write the digest of each tick once (schedules 2)', async () => {
  const cwd = emptyFolder();
  const env = { DIGEST_EVERY: '1s', DIGEST_FOLDER: cwd };
  const [killed, other] = [0, 1].map(() => new Pawl(['work', file, '--json', '--store', 'runs.db'], { cwd, env }));
  const ended = (worker?: Pawl) => jsonLines(worker?.stdout ?? '').filter(({ type }) => type === 'run.ended');
  const until = async (isSo: () => boolean) => {
    while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 20));
  };
  await until(() => ended(killed).length + ended(other).length >= 2);
  killed?.child.kill('SIGKILL');
  const before = ended(other).length;
  await until(() => ended(other).length >= before + 2);
  other?.child.kill('SIGTERM');
  await other?.ended;
  const ids = [...ended(killed), ...ended(other)].map(({ runId }) => String(runId));
  expect(new Set(ids).size).toBe(ids.length);
  for (const id of ids) expect(id).toMatch(/^digest@.*Z$/);
  const written = readdirSync(cwd).filter((name) => name.startsWith('digest-'));
  expect(readFileSync(join(cwd, written[0] ?? ''), 'utf8')).toMatch(/^2 orders on \d{4}-\d\d-\d\d, 61\.90 in all\.\n$/);
  expect((await pawl(['schedules', '--store', 'runs.db'], { cwd })).stdout).toMatch(/^digest +every 1s/m);
  expect(existsSync(join(cwd, 'runs.db'))).toBe(true);
});
