import { createExecutor, type FailedOutput, memoryStore, type RunOutcome } from 'pawl';
import { callTool, hang, reply, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { sampleRecord } from '../../src/testing/store-contract/records.ts';
import { CheckpointCorruptError } from '../../src/values/errors.ts';
import { hostOf, settle, toolOf, until } from '../fixtures/host.ts';
import { type Left, type MortalProcess, mortalProcess } from '../fixtures/mortal-process.ts';
import { afterCrash, plainStore, watchedStore, withoutMarks } from '../fixtures/watched-store.ts';

const saidIn = (messages: readonly unknown[], text: string) =>
  messages.filter((message) => JSON.stringify(message).includes(text)).length;

/** A host with a run in the middle of a tool, and a second process (as far as the store can tell) that only controls. */
async function twoProcesses(options: Partial<Parameters<typeof hostOf>[0]> = {}) {
  const clock = testClock();
  const store = watchedStore({}, memoryStore({ clock }));
  const released = Promise.withResolvers<string>();
  const entered = Promise.withResolvers<void>();
  const work = toolOf('work', 'read', async () => {
    entered.resolve();
    return released.promise;
  });
  const host = hostOf({
    store,
    clock,
    tools: [work],
    script: [callTool('work', {}), reply('done')],
    ...options,
  });
  const run = await host.start({ runId: 'r' });
  await entered.promise;
  const other = createExecutor({ models: { fast: host.model }, store, clock });
  return { clock, store, host, run, other, release: released.resolve };
}

/** Lets the owner look into its inbox once. */
async function look(clock: ReturnType<typeof testClock>): Promise<void> {
  clock.advance(500);
  await settle();
}

describe('a run that is live in another process', () => {
  test('is cancelled through the store, with the reason, within half a second (recovery 3)', async () => {
    const { clock, store, run, other } = await twoProcesses();
    expect(await other.control('r').cancel('no longer wanted')).toBe('sent');
    expect(await other.control('r').unread()).toBe(1);
    await look(clock);
    expect(await run.result).toMatchObject({ status: 'cancelled', error: { message: 'no longer wanted' } });
    expect(await store.load('r')).toBeNull();
    expect(await other.control('r').unread()).toBe(0);
  });

  test('is steered through the store: its model reads the message once, and the inbox is empty again', async () => {
    const { clock, store, run, other, host, release } = await twoProcesses();
    expect(await other.control('r').steer('also check X')).toBe('sent');
    await look(clock);
    expect(await store.commands.inbox({ runId: 'r' })).toEqual([]);
    expect((await store.load('r'))?.undelivered).toHaveLength(1);
    await look(clock);
    release('worked');
    const { messages, status } = await run.result;
    expect(status).toBe('ok');
    expect(saidIn(messages, 'also check X')).toBe(1);
    expect(saidIn(host.model.calls[1]?.messages ?? [], 'also check X')).toBe(1);
  });

  test('is sent only redacted texts: what waits in the store and what its model reads have no secret (recovery 11)', async () => {
    const redact = (text: string) => text.replaceAll('hunter2', '***');
    const { clock, store, run, host, release } = await twoProcesses();
    const { executor } = hostOf({ store, clock, redact });
    await executor.control('r').steer('the key is hunter2');
    await executor.control('r').cancel('because of hunter2');
    const waiting = await store.commands.inbox({ runId: 'r' });
    expect(waiting.map(({ command }) => command)).toMatchObject([
      { kind: 'steer', text: 'the key is ***' },
      { kind: 'cancel', reason: 'because of ***' },
    ]);
    expect(JSON.stringify(store.log)).not.toContain('hunter2');
    const steered = waiting.filter(({ command }) => command.kind === 'steer');
    store.commands.inbox = async () => steered;
    await look(clock);
    release('worked');
    await run.result;
    expect(saidIn(host.model.calls[1]?.messages ?? [], 'the key is ***')).toBe(1);
  });

  test('is not sent a message of which the redaction leaves nothing, nor one whose redaction fails unredacted', async () => {
    const { clock, store } = await twoProcesses();
    const redact = (text: string) => {
      if (text === 'hunter2') return '';
      throw new Error(text);
    };
    const { executor } = hostOf({ store, clock, redact });
    await expect(executor.control('r').steer('hunter2')).rejects.toMatchObject({ code: 'UNDELIVERED' });
    await expect(executor.control('r').steer(7 as never)).rejects.toThrow(TypeError);
    expect(await executor.control('r').unread()).toBe(0);
    await executor.control('r').steer('something else');
    expect(await store.commands.inbox({ runId: 'r' })).toMatchObject([{ command: { text: '[redaction failed]' } }]);
  });

  test('gets several messages in the order in which they were sent', async () => {
    const { clock, run, other, release } = await twoProcesses();
    for (const text of ['one', 'two', 'three']) await other.control('r').steer(`say ${text}`);
    await look(clock);
    release('worked');
    const { messages } = await run.result;
    const said = messages.filter(({ role }) => role === 'user').map((message) => JSON.stringify(message));
    expect(said.slice(1).map((text) => /say (\w+)/.exec(text)?.[1])).toEqual(['one', 'two', 'three']);
  });

  test('is asked for once a look, however many runs are live, and there is no look when none is', async () => {
    const clock = testClock();
    const store = watchedStore({}, memoryStore({ clock }));
    const { executor, agent } = hostOf({ store, clock, script: Array.from({ length: 20 }, () => hang()) });
    await Promise.all(Array.from({ length: 20 }, (_, i) => executor.start(agent, { runId: `r${i}`, prompt: 'Go.' })));
    const looks = () => store.methods.filter((method) => method === 'commands.inbox').length;
    for (let i = 0; i < 4; i++) await look(clock);
    expect(looks()).toBe(4);
    await executor.shutdown();
    for (let i = 0; i < 4; i++) await look(clock);
    expect(looks()).toBe(4);
  });

  test('is not ended by a command that it does not know, as a newer version may send one', async () => {
    const { clock, store, run, release } = await twoProcesses();
    const unknown = [{ id: 'p', kind: 'pause' }, { id: 'n' }].map((command) => ({ runId: 'r', command }));
    store.commands.inbox = async () => unknown as never;
    await look(clock);
    release('worked');
    expect((await run.result).status).toBe('ok');
  });

  test('continues when its inbox cannot be read, with one warning, and gets everything later', async () => {
    const clock = testClock();
    let isDown = false;
    const before = ({ method }: { method: string }) => {
      if (isDown && method === 'commands.inbox') throw new Error('no inbox today');
    };
    const store = watchedStore({ before }, memoryStore({ clock }));
    const host = hostOf({ store, clock, script: [hang()] });
    const run = await host.start({ runId: 'r' });
    isDown = true;
    await hostOf({ store, clock }).executor.control('r').cancel();
    for (let i = 0; i < 3; i++) await look(clock);
    expect(host.warnings).toEqual(['run: commands from other processes cannot be read']);
    isDown = false;
    await look(clock);
    expect((await run.result).status).toBe('cancelled');
  });
});

describe('a run that is live in this process', () => {
  test('is controlled directly: nothing goes through the store', async () => {
    const { store, host, run, release } = await twoProcesses();
    expect(await host.executor.control('r').steer('also check X')).toBe('durable');
    release('worked');
    expect(saidIn((await run.result).messages, 'also check X')).toBe(1);
    expect(store.methods).not.toContain('commands.send');
  });

  test('is over when its cancel has resolved', async () => {
    const { host, run } = await twoProcesses();
    expect(await host.executor.control('r').cancel('enough')).toBe('ended');
    expect((await run.result).status).toBe('cancelled');
  });
});

describe('a run that no process works on', () => {
  async function left(options: Partial<Parameters<typeof hostOf>[0]> = {}) {
    const store = memoryStore();
    const host = hostOf({
      store,
      script: [callTool('work', {}), hang()],
      tools: [toolOf('work')],
      ...options,
    });
    const run = await host.start({ runId: 'r' });
    await until(() => run.actor.getSnapshot().context.progress.iteration === 1);
    await host.executor.shutdown();
    return { store, agent: host.agent };
  }

  test('is ended by a cancel at once, without its agent: outcome kept and delivered, record gone (recovery 3)', async () => {
    const { store } = await left();
    const delivered: RunOutcome[] = [];
    const closed: unknown[] = [];
    const audit = { startRun: () => ({ close: (...args: unknown[]) => void closed.push(args) }) };
    const { executor, model } = hostOf({
      store,
      onOutcome: (outcome) => void delivered.push(outcome),
      ports: { audit },
    });
    expect(await executor.control('r').cancel('nobody wants it')).toBe('ended');
    expect(await store.load('r')).toBeNull();
    const { fingerprint, endedAt, run: _, ...outcome } = (await store.outcomes.find('r')) as RunOutcome;
    expect([fingerprint, endedAt]).toEqual([expect.stringMatching(/^[0-9a-f]{64}$/), expect.any(Number)]);
    expect(outcome).toMatchObject({
      status: 'cancelled',
      error: { code: 'CANCELLED', message: 'nobody wants it' },
      iterations: 1,
    });
    expect(delivered).toEqual([outcome]);
    expect(closed).toMatchObject([['cancelled', '', { code: 'CANCELLED' }, { iterations: 1 }]]);
    expect(model.calls).toHaveLength(0);
  });

  test('is ended by a cancel also when it is parked, and on a store with the four methods only', async () => {
    const { store } = await left();
    const { executor } = hostOf({ store: plainStore(store) });
    await executor.park('r', 'a person looks');
    expect(await executor.control('r').cancel()).toBe('ended');
    expect(await store.load('r')).toBeNull();
  });

  test('that has its outcome already keeps it: a cancel only delivers it', async () => {
    const { store } = await left();
    const record = await store.load('r');
    if (!record) throw new Error('no record');
    const { executor } = hostOf({ store });
    await executor.control('r').cancel();
    const { error: _, data: __, ...outcome } = (await store.outcomes.find('r')) as FailedOutput & { outcomeId: string };
    await store.save({ ...record, outcome: { ...outcome, outcomeId: 'r:9', status: 'ok', output: 'the answer' } });
    expect(await executor.control('r').cancel()).toBe('ended');
    expect(await store.outcomes.find('r')).toMatchObject({ status: 'ok', output: 'the answer' });
  });

  test('is parked and cancelled for reasons that are stored, kept and audited only redacted (recovery 11)', async () => {
    const { store } = await left();
    const heard: unknown[] = [];
    const audit = { startRun: () => ({ close: (...args: unknown[]) => void heard.push(args) }) };
    const redact = (text: string) => text.replaceAll('hunter2', '***');
    const { executor } = hostOf({
      store,
      redact,
      ports: { audit },
      onOutcome: (end) => void heard.push(end),
    });
    await executor.park('r', 'the key is hunter2');
    expect((await store.load('r'))?.parked).toEqual({ code: 'PARKED', reason: 'the key is ***' });
    await executor.control('r').cancel('because of hunter2');
    const outcome = await store.outcomes.find('r');
    expect(outcome?.error?.message).toBe('because of ***');
    expect(heard).toHaveLength(2);
    expect(JSON.stringify([outcome, heard])).not.toContain('hunter2');
  });

  test('stays, with its outcome, when the host cannot take the outcome just now, on a store without marks', async () => {
    const { store } = await left();
    const onOutcome = () => {
      throw new Error('no');
    };
    const marked = hostOf({ store: withoutMarks(store), onOutcome });
    await expect(marked.executor.control('r').cancel('why')).rejects.toThrow('no');
    expect((await store.load('r'))?.outcome?.status).toBe('cancelled');
    const { executor } = hostOf({ store });
    await executor.recover();
    expect((await executor.get('r')?.result)?.status).toBe('cancelled');
  });

  test('gets what was said to it when a process continues it, before its model is asked', async () => {
    const { store } = await left();
    expect(await hostOf({ store }).executor.control('r').steer('also check X')).toBe('sent');
    const next = hostOf({ store, tools: [toolOf('work')] });
    await next.executor.recover();
    expect((await next.executor.get('r')?.result)?.status).toBe('ok');
    expect(saidIn(next.model.calls[0]?.messages ?? [], 'also check X')).toBe(1);
  });
});

describe('a run that is taken up again while its inbox hangs', () => {
  async function takenUp() {
    const clock = testClock();
    const store = watchedStore({}, memoryStore({ clock }));
    await hostOf({ store, clock, script: [hang()] }).start({ runId: 'r' });
    await hostOf({ store, clock }).executor.control('r').cancel('enough');
    const left = await afterCrash(store);
    const said = await store.commands.inbox({ runId: 'r' });
    const answer = Promise.withResolvers<typeof said>();
    const checkpoints = { ...left, commands: { ...left.commands, inbox: () => answer.promise } };
    const host = hostOf({ store: checkpoints, clock, script: [hang()] });
    const starting = host.start({ runId: 'r' });
    await settle();
    return { clock, host, starting, answer: () => answer.resolve(said) };
  }

  test('waits half a second for it and not longer, and obeys the cancel that comes later', async () => {
    const { clock, host, starting, answer } = await takenUp();
    await clock.advance(499);
    await settle();
    expect(host.model.calls).toHaveLength(0);
    await clock.advance(1);
    await settle();
    expect(host.model.calls).toHaveLength(1);
    answer();
    expect(await (await starting).result).toMatchObject({ status: 'cancelled', error: { message: 'enough' } });
  });

  test('does not ask its model when the answer comes in time and is a cancel', async () => {
    const { clock, host, starting, answer } = await takenUp();
    await clock.advance(499);
    answer();
    expect(await (await starting).result).toMatchObject({ status: 'cancelled', error: { message: 'enough' } });
    expect(host.model.calls).toHaveLength(0);
  });
});

describe('controlling', () => {
  test('is refused, with what is missing, where there is nothing to control or no way to it', async () => {
    const store = memoryStore();
    const { executor } = hostOf({ store });
    await expect(executor.control('nobody').cancel()).rejects.toMatchObject({ code: 'RUN_NOT_FOUND' });
    await expect(executor.control('nobody').steer('hello')).rejects.toMatchObject({ code: 'RUN_NOT_FOUND' });
    expect(() => executor.control('')).toThrow(expect.objectContaining({ code: 'INVALID_RUN_ID' }));
    const plain = hostOf({ store: plainStore(store) }).executor;
    await expect(plain.control('r').steer('hello')).rejects.toMatchObject({ code: 'UNSUPPORTED' });
    await expect(hostOf().executor.control('r').cancel()).rejects.toMatchObject({ code: 'NOT_DURABLE' });
  });

  test('says nothing to a run whose record is damaged: no process will continue it', async () => {
    const inner = memoryStore();
    const damaged = { ...inner, load: () => Promise.reject(new CheckpointCorruptError('bits have changed')) };
    await inner.save(sampleRecord('r'));
    const { executor } = hostOf({ store: damaged });
    await expect(executor.control('r').steer('hello')).rejects.toMatchObject({ code: 'CHECKPOINT_CORRUPT' });
    expect(await inner.commands.inbox({ runId: 'r' })).toEqual([]);
  });
});

describe('a command and a crash', () => {
  const script = [callTool('work', {}), callTool('work', {}), reply('done')];
  const texts = ['say alpha', 'say beta'];

  /** One process's life. In the first its tool waits until the commands came. @returns the last conversation that its model saw */
  async function live(process: MortalProcess, commands: readonly string[], left?: Left) {
    const clock = testClock();
    const released = Promise.withResolvers<void>();
    const tools = [toolOf('work', 'once', () => released.promise.then(() => 'worked'))];
    const [record] = left?.records ?? [];
    const done = (record?.iteration ?? 0) + (record?.openStep ? 1 : 0);
    const host = hostOf({ store: process.store, clock, tools, script: script.slice(done) });
    const begun = left ? host.executor.recover() : host.start({ runId: 'r' });
    await Promise.race([begun, process.died]);
    const { executor } = hostOf({ store: process.store, clock });
    for (const text of commands)
      void executor
        .control('r')
        .steer(text)
        .catch(() => {});
    await look(clock);
    await look(clock);
    released.resolve();
    for (let i = 0; i < 10 && !process.isDead; i++) await look(clock);
    return host.model.calls.at(-1)?.messages ?? [];
  }

  test('whichever write the process does not survive, a message that was sent is said once (recovery 3, faults 32)', async () => {
    const found = { deaths: 0, taken: 0, waiting: 0, both: 0 };
    for (let diesAfter = 3; ; diesAfter++) {
      const first = mortalProcess(undefined, diesAfter);
      const heardByFirst = await live(first, texts);
      if (!first.isDead) {
        for (const text of texts) expect(saidIn(heardByFirst, text)).toBe(1);
        break;
      }
      found.deaths += 1;
      const left = await first.left();
      if (left.records.length === 0) continue;
      const heard = await live(mortalProcess(left), [], left);
      for (const text of texts) {
        const isTaken = JSON.stringify(left.records).includes(text);
        const isWaiting = JSON.stringify(left.commands).includes(text);
        found.taken += Number(isTaken);
        found.waiting += Number(isWaiting);
        found.both += Number(isTaken && isWaiting);
        if (left.records[0]?.outcome) continue;
        expect(saidIn(heard, text), `${text} after write ${diesAfter}`).toBe(isTaken || isWaiting ? 1 : 0);
      }
    }
    expect(found.deaths).toBeGreaterThan(8);
    expect(Math.min(found.taken, found.waiting, found.both)).toBeGreaterThan(1);
  });

  test('a cancel that its process did not live to obey is obeyed by the next, without a call of the model', async () => {
    const first = mortalProcess();
    const clock = testClock();
    const host = hostOf({ store: first.store, clock, script: [hang()] });
    await host.start({ runId: 'r' });
    await hostOf({ store: first.store, clock }).executor.control('r').cancel('enough');
    first.die();
    const next = hostOf({ store: mortalProcess(await first.left()).store, clock, script: [] });
    await next.executor.recover();
    expect(await next.executor.get('r')?.result).toMatchObject({ status: 'cancelled', error: { message: 'enough' } });
    expect(next.model.calls).toHaveLength(0);
  });
});
