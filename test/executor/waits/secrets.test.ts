import { randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { encrypt, type Person } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { callTool, reply, testClock } from 'pawl/testing';
import { expect, test } from 'vitest';
import { type DeskOptions, deskOf, notedStore, waitsOf } from '../../fixtures/approval-desk.ts';
import { settle } from '../../fixtures/host.ts';

const ada: Person = { id: 'ada' };
const secret = 'sk-1234';
const redact = (text: string) => text.replaceAll(secret, '[secret]');
const codeOf = (promise: Promise<unknown>) => promise.then(String, (error: { code?: string }) => error.code);

const wordy = {
  needsApproval: true,
  approval: { prompt: () => `Use ${secret}?`, detail: () => ({ key: secret }), editable: true, quorum: 2 },
};

async function waiting(options: DeskOptions = {}) {
  const desk = deskOf({ redact, rules: wordy, ...options });
  return { ...desk, ...(await desk.begin()) };
}

test('prompts, facts, notes and reasons are redacted in records, events and logs (waiting 13)', async () => {
  const desk = await waiting({
    rules: {
      ...wordy,
      approval: { ...wordy.approval, approvers: ({ by }) => by.id !== 'eve' || { refused: `not with ${secret}` } },
    },
  });
  const { id } = desk.wait();
  await codeOf(desk.control.approve(id, { by: { id: 'eve' } }));
  await desk.control.approve(id, { by: ada, note: `I saw ${secret}` });
  const remote = deskOf({ redact, clock: desk.clock, noted: desk.noted }).executor.control('r');
  await remote.deny(id, { by: ada, reason: `it shows ${secret}` });
  expect(JSON.stringify(await desk.noted.inner.commands.inbox({ runId: 'r' }))).toContain('it shows [secret]');
  await desk.clock.advance(900);
  await settle();
  const stored = JSON.stringify(desk.noted.calls.map(({ args }) => args));
  expect(stored).toContain('I saw [secret]');
  expect(stored).toContain('Use [secret]?');
  expect(stored).toContain('it shows [secret]');
  const events = JSON.stringify(desk.seen);
  expect(events).toContain('Use [secret]?');
  expect(events).toContain('not with [secret]');
  expect([stored, events, JSON.stringify(desk.warned)].filter((text) => text.includes(secret))).toEqual([]);
});

test('the notes of an approval that is over are redacted too (waiting 13)', async () => {
  const desk = await waiting();
  const { id } = desk.wait();
  // A process without the redaction sends the last one.
  const careless = deskOf({ clock: desk.clock, noted: desk.noted }).executor.control('r');
  await desk.control.approve(id, { by: ada, note: `Ada saw ${secret}` });
  await careless.approve(id, { by: { id: 'bob' }, note: `Bob saw ${secret}` });
  await desk.clock.advance(900);
  await desk.run.result;
  const saved = JSON.stringify(desk.noted.of('save', 'append').map(({ args }) => args));
  const ended = saved.slice(saved.lastIndexOf('"settled":[{'));
  for (const text of [ended, JSON.stringify(desk.seen)]) {
    expect(text).toContain('Ada saw [secret]');
    expect(text).toContain('Bob saw [secret]');
  }
  expect(saved).not.toContain(secret);
  expect(JSON.stringify(desk.seen)).not.toContain(secret);
});

test('an edit that redaction would change is refused where it is sent and where it is taken (waiting 13)', async () => {
  const desk = await waiting({ rules: { needsApproval: true, approval: { editable: true } } });
  const { id } = desk.wait();
  const input = { cents: 1, key: secret };
  const sender = deskOf({ redact, clock: desk.clock, noted: desk.noted }).executor.control('r');
  const careless = deskOf({ clock: desk.clock, noted: desk.noted }).executor.control('r');
  expect(await codeOf(desk.control.approve(id, { by: ada, input }))).toBe('ANSWER_REDACTED');
  expect(await codeOf(sender.approve(id, { by: ada, input }))).toBe('ANSWER_REDACTED');
  // A process without the redaction sends it; the owner refuses it.
  expect(await careless.approve(id, { by: ada, input })).toBe('pending');
  await desk.clock.advance(900);
  await settle();
  expect(desk.seen.at(-1)).toMatchObject({ type: 'wait.refused', code: 'ANSWER_REDACTED' });
  expect(desk.wait().id).toBe(id);
  expect(desk.paid).toEqual([]);
});

test('a run whose waiting call has a redacted input does not rest, and takes its answer where it is (waiting 14)', async () => {
  const script = [callTool('refund', { cents: 5, key: secret }, 'c1'), reply('done')];
  const desk = await waiting({ script, rules: { needsApproval: true } });
  await desk.clock.advance(60_000);
  expect(desk.noted.of('due.leave')).toEqual([]);
  expect(desk.run.actor.getSnapshot().hasTag('waiting')).toBe(true);
  await desk.control.approve(desk.wait().id, { by: ada });
  expect((await desk.run.result).status).toBe('ok');
  expect(desk.paid).toEqual([5]);
});

test('after a crash that call ends as lost, and its wait with it: an approval of it is WAIT_GONE (waiting 14)', async () => {
  const script = [callTool('refund', { cents: 5, key: secret }, 'c1'), reply('done')];
  const storeClock = testClock(1_000_000);
  const noted = notedStore(storeClock);
  const first = deskOf({ redact, script, rules: { needsApproval: true }, noted, clock: testClock(1_000_000) });
  const { wait } = await first.begin();
  const { id } = wait();
  // The process dies here: its own clock stands still, and its lease ends.
  await storeClock.advance(60_000);
  const open: unknown[] = [];
  const sorry = () => {
    open.push(...waitsOf(next.executor, 'r'));
    return reply('sorry');
  };
  const next = deskOf({ redact, script: [sorry], rules: { needsApproval: true }, noted, clock: storeClock });
  const { run } = await next.begin();
  expect((await run.result).status).toBe('ok');
  expect([...first.paid, ...next.paid]).toEqual([]);
  expect(JSON.stringify(next.model.calls[0]?.messages.at(-1))).toContain('its arguments are not in the record');
  expect(open).toEqual([]);
  expect(await codeOf(next.executor.control('r').approve(id, { by: ada }))).toBe('WAIT_GONE');
});

test('a codec encrypts questions, facts, votes and answers: files have none of their words (waiting 13)', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-secrets-'));
  const clock = testClock(1_000_000);
  const codec = encrypt({ keys: { a: randomBytes(32) }, current: 'a' });
  const store = sqliteStore({ path: join(folder, 'runs.db'), codec });
  try {
    const desk = deskOf({ rules: wordy, clock, store });
    const { control, wait, run } = await desk.begin();
    await settle(200);
    const { id } = wait();
    await control.approve(id, { by: { id: 'ada-lovelace' }, note: `noted ${secret}` });
    const remote = deskOf({ rules: wordy, clock, store }).executor.control('r');
    await remote.approve(id, { by: { id: 'bob-kahn' }, note: `sent ${secret}`, input: { cents: 4_711 } });
    const texts = allFiles(folder).map((path) => readFileSync(path, 'latin1'));
    expect(texts.length).toBeGreaterThan(0);
    for (const word of [secret, 'ada-lovelace', 'bob-kahn', '4711', 'refund'])
      expect(
        texts.some((text) => text.includes(word)),
        word,
      ).toBe(false);
    await run.cancel();
    await desk.executor.shutdown();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

function allFiles(folder: string): string[] {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    return statSync(path).isDirectory() ? allFiles(path) : [path];
  });
}
