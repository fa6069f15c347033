import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { sqliteStore } from 'pawl/stores/sqlite';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { randomFrom, seed, torture } from '../../crash/random.ts';
import { until } from '../../fixtures/host.ts';
import { passOnErrors } from '../../fixtures/processes.ts';
import { packageFlags } from '../../toolchain/programs.ts';
import { textsIn } from './thread-host.ts';

const folder = mkdtempSync(join(tmpdir(), 'pawl-threads-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const KILLS = torture > 1 ? 120 : 5;
const MESSAGES = 25;

/** Runs a host, and kills it after some time. @returns whether it had ended before */
async function hasEnded(path: string, afterMs: number | undefined): Promise<boolean> {
  const program = fileURLToPath(new URL('./talker.ts', import.meta.url));
  const child = passOnErrors(spawn(process.execPath, [...packageFlags, program, path, String(MESSAGES)]));
  // A host that never ends must not outlive its test.
  onTestFinished(() => void child.kill('SIGKILL'));
  let said = '';
  child.stdout?.on('data', (text) => {
    said += text;
  });
  const exited = once(child, 'exit');
  // What is to be killed is the work.
  const sent = until(() => said.includes('sent'), 'a host that has sent all');
  await Promise.race([exited, afterMs === undefined ? exited : sent.then(() => sleep(afterMs))]);
  child.kill('SIGKILL');
  await exited;
  return said.includes('ended');
}

describe('a thread whose process is killed', () => {
  test('has each message once and in its order, each with its answer, and the history of each turn is whole (web 13, 35)', async () => {
    const path = join(folder, 'killed.db');
    const random = randomFrom(seed);
    let kills = 0;
    for (let isOver = false; !isOver; ) {
      isOver = await hasEnded(path, kills < KILLS ? random() * 80 : undefined);
      kills += 1;
      expect(kills).toBeLessThan(KILLS + 3);
    }
    const store = sqliteStore({ path });
    const messages = await store.threads.read({ callerId: 'ada', id: 't' }, { limit: 1_000 });
    const expected = Array.from({ length: MESSAGES }, (_, i) => [`m${i}`, `re m${i}`]).flat();
    expect(textsIn(messages.map(({ message }) => message))).toEqual(expected);
    expect(messages.map(({ message }) => message.role)).toEqual(
      Array.from({ length: MESSAGES }, () => ['user', 'assistant', 'tool', 'assistant']).flat(),
    );
    expect(await store.listInterrupted()).toEqual([]);
    // The last process was not killed; the others had not ended by then.
    expect(kills).toBeGreaterThan(1);
    await store.close();
  }, 180_000);
});
