import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { Bank } from '../../docs/examples/refund-desk/bank.ts';
import { packageFlags } from '../toolchain/programs.ts';

const program = (name: string) => fileURLToPath(new URL(`../../docs/examples/refund-desk/${name}.ts`, import.meta.url));
const desk = program('desk');

/** The desk of one folder; each command is a process. */
function deskIn(folder: string) {
  const begin = (...args: readonly string[]) =>
    spawn(process.execPath, [...packageFlags, desk, ...args], {
      env: { ...process.env, DESK: folder },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  const say = async (...args: readonly string[]) => {
    const child = begin(...args);
    let said = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (said += data));
    const code = await new Promise((resolve) => child.once('close', resolve));
    return { said: said.trim(), code };
  };
  /** A worker that is killed as soon as the check holds. */
  const workUntil = async (isEnough: () => Promise<boolean>) => {
    const child = begin('work');
    child.stdout.resume();
    child.stderr.resume();
    while (!(await isEnough())) await sleep(50);
    child.kill('SIGKILL');
    await new Promise((resolve) => child.once('close', resolve));
  };
  return { say, workUntil, bank: new Bank(join(folder, 'bank.jsonl')) };
}

test('the refund desk pays a small refund at once, and a large one once two persons of the team approved it, over two killed workers (waiting 4, 7)', async () => {
  const { say, workUntil, bank } = deskIn(mkdtempSync(join(tmpdir(), 'pawl-refund-desk-')));
  const asked = await say('ask', 'case-7', 'Refund A1 for 49.90 and B2 for 5.00, please.');
  expect(asked.said).toMatch(/^case-7 waiting\ncase-7 \S+ approval \(0 of 2\): Refund 49\.90 € for order A1\?$/);
  expect(bank.transfers.map(({ order, cents }) => [order, cents])).toEqual([['B2', 500]]);
  const inbox = async () => (await say('inbox')).said;
  const wait = (await inbox()).split(' ')[1] ?? '';

  const refused = await say('approve', 'case-7', wait, 'cleo');
  expect([refused.code, refused.said]).toEqual([1, expect.stringMatching(/^ANSWER_REFUSED: /)]);
  expect((await say('approve', 'case-7', wait, 'ada')).said).toBe('sent');
  await workUntil(async () => (await inbox()).includes('(1 of 2)'));
  expect((await say('approve', 'case-7', wait, 'ben')).said).toBe('sent');
  await workUntil(async () => bank.transfers.length === 2);
  expect(bank.transfers.map(({ order, cents }) => [order, cents])).toEqual([
    ['B2', 500],
    ['A1', 4_990],
  ]);
  await workUntil(async () => /WAIT_GONE|RUN_NOT_FOUND/.test((await say('approve', 'case-7', wait, 'ben')).said));
  expect(bank.transfers.length).toBe(2);
}, 120_000);

test('the replay of closed cases says which refunds another prompt would change, and no money moves (lab 16, 17, 18)', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-refund-desk-'));
  const { say, bank } = deskIn(folder);
  // Two at a time: each of them is a process.
  for (let i = 1; i < 11; i += 2) {
    const asked = [i, i + 1].map((n) =>
      say('ask', `case-${n}`, `Refund B${n} for ${n === 1 ? '5.50' : '7.00'}, please.`),
    );
    expect((await Promise.all(asked)).map(({ code }) => code)).toEqual([0, 0]);
  }
  const paid = bank.transfers;
  const replayed = spawnSync(process.execPath, [...packageFlags, program('replay')], {
    ...{ env: { ...process.env, DESK: folder }, encoding: 'utf8' },
  });
  expect(replayed).toMatchObject({ status: 0, stderr: '' });
  expect(replayed.stdout.trim().split('\n').sort()).toStrictEqual([
    '  {"name":"refund","input":{"order":"B1","cents":550}} → {"name":"refund","input":{"order":"B1","cents":500}}',
    ...Array.from({ length: 10 }, (_, i) => `case-${i + 1}: the same today`).sort(),
  ]);
  expect(bank.transfers).toStrictEqual(paid);
}, 60_000);
