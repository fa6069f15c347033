import type { Person, RunResult } from 'pawl';
import { callTools, reply, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { RunWaitsError, ShutdownError } from '../../../src/values/errors.ts';
import { torture } from '../../crash/random.ts';
import { type DeskOptions, deskOf, waitsIn, waitsOf } from '../../fixtures/approval-desk.ts';
import { gate, settle, until } from '../../fixtures/host.ts';

const ada: Person = { id: 'ada' };
const writes = [
  'save',
  'append',
  'delete',
  'claim',
  'renew',
  'release',
  'outcomes.keep',
  'commands.acknowledge',
  'due.leave',
];

async function waiting(options: DeskOptions = {}) {
  const desk = deskOf(options);
  return { ...desk, ...(await desk.begin()) };
}
type Waiting = Awaited<ReturnType<typeof waiting>>;

/** A desk whose store has been asked to take the run, and answers when the test says so. */
async function leaving(options: DeskOptions = {}) {
  const desk = await waiting(options);
  const door = gate<'take' | 'refuse'>();
  desk.noted.rule('due.leave', async (call) => {
    const how = await door.pass();
    desk.noted.clear('due.leave');
    return how === 'take' ? call() : false;
  });
  const { id } = desk.wait();
  const left = desk.clock.advance(1_000);
  await door.reached;
  await left;
  return { ...desk, id, door };
}

/** Another process on the same store, with the script of what is left to do. */
const nextOf = ({ clock, noted }: Waiting, options: DeskOptions = {}) =>
  deskOf({ clock, noted, script: [reply('done')], ...options });

describe('a run that waits', () => {
  test('is in the state waiting, with its tag, once each open call has answered or waits (waiting 15)', async () => {
    const desk = await waiting();
    const snapshot = desk.run.actor.getSnapshot();
    expect(snapshot.value).toEqual({ running: 'waiting' });
    expect(snapshot.hasTag('waiting')).toBe(true);
    expect(desk.seen.map(({ type }) => type)).toContain('run.waiting');
  });

  test('leaves after waitLingerMs: one save, one leave, nothing after it, and the result has its waits (waiting 16)', async () => {
    const desk = await waiting({ rules: { needsApproval: true, approval: { expiresInMs: 50_000 } } });
    const before = desk.noted.calls.length;
    await desk.clock.advance(999);
    expect(desk.noted.of('due.leave')).toEqual([]);
    await desk.clock.advance(1);
    const result = await desk.run.result;
    expect(result).toMatchObject({ status: 'waiting', wakeAt: 1_050_000, error: { code: 'RUN_WAITS' } });
    expect(waitsIn(result)).toMatchObject([{ kind: 'approval', tool: 'refund' }]);
    await desk.clock.advance(5_000);
    const made = desk.noted.calls.slice(before).filter(({ method }) => writes.includes(method));
    expect(made.map(({ method }) => method)).toEqual(['append', 'due.leave']);
    expect(made[1]?.args[1]).toMatchObject({ dueAt: 1_050_000, attempts: 0 });
    expect(await desk.noted.inner.claim('r', 'another', 1_000)).not.toBeNull();
  });

  test('and is answered before it leaves has no timer left once it has ended: its process may exit (waiting 16)', async () => {
    const desk = await waiting({ defaults: { waitLingerMs: 60_000 } });
    await desk.executor.control('r').approve(desk.wait().id, { by: ada });
    await settle();
    expect((await desk.run.result).status).toBe('ok');
    await desk.executor.shutdown();
    expect(desk.clock.pending).toBe(0);
  });

  test('whose store has a newer command does not leave: it reads the command (waiting 16)', async () => {
    const desk = await waiting();
    const remote = nextOf(desk).executor.control('r');
    const { id } = desk.wait();
    desk.noted.rule('due.leave', async (call) => {
      desk.noted.clear('due.leave');
      await remote.approve(id, { by: ada });
      return call();
    });
    await desk.clock.advance(3_000);
    await settle();
    expect((await desk.run.result).status).toBe('ok');
    expect(desk.paid).toEqual([700]);
  });

  test('does not leave while a command of its inbox is being checked, however long that takes (waiting 16)', async () => {
    const door = gate<true>();
    let judged = 0;
    const desk = await waiting({
      rules: { needsApproval: true, approval: { editable: true, approvers: () => door.pass() } },
      // The changed input is judged again; that takes all of its time, and then the approvers are asked.
      approvals: () => (judged++ === 0 ? 'ask' : new Promise(() => {})),
      defaults: { portMs: 20_000 },
    });
    await nextOf(desk)
      .executor.control('r')
      .approve(desk.wait().id, { by: ada, input: { cents: 5 } });
    await desk.clock.advance(35_000);
    expect(desk.noted.of('due.leave')).toEqual([]);
    door.open(true);
    await settle();
    expect((await desk.run.result).status).toBe('ok');
    expect(desk.paid).toEqual([5]);
  });

  test('keeps a command that it cannot read, and looks again within 30 s (waiting 16)', async () => {
    const desk = await waiting();
    const command = { id: 'new', kind: 'unknown', v: 99 };
    desk.noted.rule('commands.inbox', async (call) => [
      ...((await call()) as unknown[]),
      { runId: 'r', command, seq: 7 },
    ]);
    desk.noted.rule('due.leave', async (call, claim, options) => {
      void call;
      return desk.noted.inner.due.leave(claim as never, options as never);
    });
    await desk.linger();
    expect(await desk.run.result).toMatchObject({
      status: 'waiting',
      error: {
        message: expect.stringMatching(/^run r waits for an approval of \w+ \(wait \w+\); it continues once a person/),
      },
    });
    expect(desk.noted.of('due.leave')[0]?.args[1]).toMatchObject({ dueAt: 1_031_000, readUpTo: 7 });
  });

  test('is interrupted by a shutdown, is due at the next boot, and rests again there (waiting 16)', async () => {
    const desk = await waiting();
    const [report, result] = [desk.executor.shutdown(), desk.run.result];
    await desk.clock.advance(100);
    await report;
    expect(await result).toMatchObject({ status: 'interrupted', error: { code: 'ERR_SHUTDOWN' } });
    const { runs } = await desk.noted.inner.due.list({ limit: 10 });
    expect(runs.map(({ runId }) => runId)).toEqual(['r']);
    const next = nextOf(desk);
    await next.executor.recover();
    await desk.clock.advance(5_000);
    expect((await desk.noted.inner.due.list({ limit: 10 })).runs).toEqual([]);
    expect(await desk.noted.inner.due.countResting()).toBe(1);
    expect([...desk.paid, ...next.paid]).toEqual([]);
  });

  test('that can never rest holds its process with a timer, also without an expiry (waiting 16)', async () => {
    const clock = testClock(1_000_000);
    const desk = deskOf({
      clock,
      store: undefined as never,
      rules: { needsApproval: true, approval: { expiresInMs: Number.POSITIVE_INFINITY } },
      defaults: { maxRuntimeMs: Number.MAX_SAFE_INTEGER },
    });
    const { run } = await desk.begin();
    expect(clock.pending).toBeGreaterThan(0);
    await clock.advance(10 * 3_600_000);
    expect(run.actor.getSnapshot().hasTag('waiting')).toBe(true);
    expect(clock.pending).toBeGreaterThan(0);
  });
});

describe('while the store is asked to take the run', () => {
  test.for(['take', 'refuse'] as const)('an approval waits for the answer: %s (waiting 16)', async (how) => {
    const desk = await leaving();
    const approved = desk.control.approve(desk.id, { by: ada });
    await settle();
    expect(desk.paid).toEqual([]);
    desk.door.open(how);
    expect(await approved).toBe(how === 'take' ? 'sent' : 'recorded');
    await settle();
    const result = await desk.run.result;
    expect(result.status).toBe(how === 'take' ? 'waiting' : 'ok');
    await desk.clock.advance(5_000);
    await settle();
    expect(desk.paid).toEqual([700]);
    expect(await desk.noted.inner.load('r')).toBeNull();
  });

  test.for(['take', 'refuse'] as const)('a message of steer waits for the answer: %s (waiting 16)', async (how) => {
    const desk = await leaving();
    const steered = [desk.run.steer('Hurry.'), desk.control.steer('Please.')];
    await settle();
    desk.door.open(how);
    expect(await Promise.all(steered)).toEqual(how === 'take' ? ['durable', 'sent'] : ['durable', 'durable']);
    if (how === 'take') await desk.run.result;
    await desk.control.approve(desk.id, { by: ada });
    await desk.clock.advance(5_000);
    await settle();
    const said = JSON.stringify(desk.model.calls.at(-1)?.messages);
    expect(said).toContain('Hurry.');
    expect(said).toContain('Please.');
  });

  const cancels: [string, (desk: Awaited<ReturnType<typeof leaving>>) => unknown][] = [
    ['run.cancel', (desk) => desk.run.cancel('enough')],
    ['control.cancel', (desk) => desk.control.cancel('enough')],
    ['an event to the actor', (desk) => desk.run.actor.send({ type: 'run.cancel', reason: 'enough' })],
  ];
  test.for(
    cancels.flatMap(([name, cancel]) => (['take', 'refuse'] as const).map((how) => [name, how, cancel] as const)),
  )('%s cancels the run, whichever way the store decides: %s (waiting 16)', async ([, how, cancel]) => {
    const desk = await leaving({ retention: { outcomes: 600_000 } });
    const cancelled = cancel(desk);
    await settle();
    desk.door.open(how);
    await settle();
    await desk.clock.advance(5_000);
    await settle();
    const said = (await cancelled) as RunResult | string | undefined;
    if (typeof said === 'object') expect(said.status).toBe('cancelled');
    expect(await desk.noted.inner.load('r')).toBeNull();
    expect(await desk.noted.inner.outcomes.find('r')).toMatchObject({ status: 'cancelled' });
    expect(desk.paid).toEqual([]);
  });

  test('nothing is written after the store took it, although its actor is stopped while the store is asked (waiting 16)', async () => {
    const desk = await leaving();
    const before = desk.noted.calls.length;
    desk.run.actor.stop();
    await settle();
    desk.door.open('take');
    expect((await desk.run.result).status).toBe('interrupted');
    const made = desk.noted.calls.slice(before).filter(({ method }) => writes.includes(method));
    expect(made.map(({ method }) => method)).toEqual([]);
    await desk.control.approve(desk.id, { by: ada });
    await desk.clock.advance(5_000);
    await settle();
    expect(desk.paid).toEqual([700]);
  });

  test('nothing is written after the store took it, for any event to its actor meanwhile (waiting 16)', async () => {
    const desk = await leaving();
    const before = desk.noted.calls.length;
    desk.run.actor.send({
      type: 'run.steer',
      receipt: 'x',
      message: { role: 'user', content: [{ type: 'text', text: 'late' }] },
    });
    await settle();
    desk.door.open('take');
    expect((await desk.run.result).status).toBe('waiting');
    await desk.clock.advance(900);
    const made = desk.noted.calls.slice(before).filter(({ method }) => writes.includes(method));
    expect(made.map(({ method }) => method)).toEqual([]);
  });

  test('a shutdown waits for the answer, and the run rests (waiting 16)', async () => {
    const desk = await leaving();
    const over = desk.executor.shutdown();
    await settle();
    desk.door.open('take');
    await desk.clock.advance(100);
    await over;
    expect((await desk.run.result).status).toBe('waiting');
    expect(await desk.noted.inner.due.countResting()).toBe(1);
  });
});

describe('just after the store took the run', () => {
  test('its handle and its control reach it through the store (waiting 16)', async () => {
    const desk = await waiting({ retention: { outcomes: 600_000 } });
    await desk.linger();
    expect((await desk.run.result).status).toBe('waiting');
    expect(await desk.run.steer('Hurry.')).toBe('durable');
    await desk.clock.advance(3_000);
    await settle();
    expect((await desk.run.cancel('enough')).status).toBe('cancelled');
    expect(await desk.noted.inner.load('r')).toBeNull();
  });
});

describe('a store with trouble', () => {
  test('whose answer to leave is lost is asked again: it took the run, and the result is waiting (waiting 16)', async () => {
    const desk = await waiting();
    desk.noted.rule('due.leave', async (call) => {
      desk.noted.clear('due.leave');
      await call();
      throw new Error('the answer is lost');
    });
    await desk.clock.advance(3_000);
    await settle();
    expect((await desk.run.result).status).toBe('waiting');
    expect(desk.noted.of('due.leave')).toHaveLength(2);
    expect(desk.warnings).toEqual([]);
  });

  test('that did not take the run is asked again, and the run rests later (waiting 16)', async () => {
    const desk = await waiting();
    let times = 0;
    desk.noted.rule('due.leave', async (call) => {
      times += 1;
      if (times < 4) throw new Error('away');
      return call();
    });
    await desk.clock.advance(10_000);
    await settle();
    expect((await desk.run.result).status).toBe('waiting');
  });

  test.for(['append', 'commands.inbox'] as const)(
    'that fails at %s before leave keeps the run, and is asked less and less often (waiting 16)',
    async (method) => {
      const desk = await waiting();
      const { id } = desk.wait();
      desk.noted.rule(method, () => Promise.reject(new Error('away')));
      await desk.clock.advance(600_000);
      expect(desk.noted.of('due.leave')).toEqual([]);
      if (method === 'append') expect(desk.noted.of('append').length).toBeLessThan(60);
      expect(desk.warnings.filter((warning) => warning.includes('could not rest')).length).toBeLessThan(2);
      desk.noted.clear(method);
      expect(await desk.control.approve(id, { by: ada })).toBe('recorded');
      expect((await desk.run.result).status).toBe('ok');
      expect(desk.paid).toEqual([700]);
    },
  );

  test('in which another process has taken the run meanwhile: nothing is written, and it is interrupted (waiting 16)', async () => {
    const desk = await waiting();
    desk.noted.rule('due.leave', async (call) => {
      await desk.noted.inner.release((desk.noted.of('due.leave').at(-1)?.args[0] ?? null) as never);
      await desk.noted.inner.claim('r', 'another', 60_000);
      return call();
    });
    await desk.linger();
    expect(await desk.run.result).toMatchObject({ status: 'interrupted', error: { code: 'LEASE_LOST' } });
  });
});

describe('a cause of RUN_WAITS', () => {
  test('of a host that stops a run which waits gives waiting, and the run is due (waiting 17)', async () => {
    const desk = await waiting();
    const { code, name, message } = new RunWaitsError('later');
    desk.run.actor.send({ type: 'run.stop', cause: { code, name, message } });
    const result = await desk.run.result;
    expect(result.status).toBe('waiting');
    expect(waitsIn(result)).toHaveLength(1);
    expect((await desk.noted.inner.due.list({ limit: 1 })).runs).toMatchObject([{ runId: 'r' }]);
  });

  test('that is only deeper in the chain does not: the run fails (waiting 17)', async () => {
    const desk = await waiting();
    const cause = { code: 'TOOL', name: 'Error', message: 'no', cause: { code: 'RUN_WAITS', name: 'E', message: 'w' } };
    desk.run.actor.send({ type: 'run.stop', cause: cause as never });
    expect((await desk.run.result).status).toBe('error');
  });

  test('of a run without waits leaves it interrupted (waiting 17)', async () => {
    const door = gate<never>();
    const desk = deskOf({ script: [() => door.pass()] });
    const { run } = await desk.begin();
    run.actor.send({ type: 'run.stop', cause: { code: 'RUN_WAITS', name: 'E', message: 'w' } as never });
    expect((await run.result).status).toBe('interrupted');
  });

  test('beside a shutdown: the first cause stays (waiting 17)', async () => {
    const desk = await waiting();
    const { code, name, message } = new ShutdownError('bye');
    desk.run.actor.send({ type: 'run.stop', cause: { code, name, message } });
    expect((await desk.run.result).status).toBe('interrupted');
  });
});

const MANY = torture > 1 ? 10_000 : 3_000;

test(`${MANY} calls that all ask are one step with bounded questions (waiting 2, 3)`, {
  timeout: 120_000,
}, async () => {
  const count = MANY;
  const calls = Array.from({ length: count }, (_, n) => ({ name: 'refund', input: { cents: n }, callId: `c${n}` }));
  const long = 'p'.repeat(10_000_000);
  const thrown = () => {
    throw new Error('no facts');
  };
  const detail = ({ cents }: { cents: number }) =>
    cents % 2 === 0 ? { cents } : Object.defineProperty({}, 'a', { get: thrown, enumerable: true });
  const desk = deskOf({
    script: [callTools(calls), reply('done')],
    rules: { needsApproval: true, approval: { prompt: () => long, detail: detail as never } },
    defaults: { waitLingerMs: 3_600_000 },
    logger: { warn: () => {} },
  });
  const { run, control } = await desk.begin();
  const waits = () => waitsOf(desk.executor, 'r');
  await until(() => waits().length === count);
  const words = waits().map((wait) =>
    wait.kind === 'approval' ? JSON.stringify([wait.prompt, wait.detail]).length : 0,
  );
  expect(Math.max(...words)).toBeGreaterThan(4_000);
  expect(words.reduce((sum, length) => sum + length, 0)).toBeLessThan(1_300_000);
  for (const { id } of waits().slice(0, 20)) await control.deny(id, { by: ada });
  expect(waits()).toHaveLength(count - 20);
  void run.cancel();
});
