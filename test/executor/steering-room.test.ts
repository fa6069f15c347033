import { type Critic, memoryStore, type SupervisedRun } from 'pawl';
import { createCheckpointerFactory } from 'pawl/stores/kit';
import { callTool, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { createActor } from 'xstate';
import { gate, hostOf, toolOf, until } from '../fixtures/host.ts';

const MEBI = 2 ** 20;
const text = (bytes: number) => 'x'.repeat(bytes);
const say = (bytes: number) => ({ role: 'user' as const, content: [{ type: 'text' as const, text: text(bytes) }] });

/** What became of messages: how many were taken, and the refusals. */
async function fate(sent: readonly Promise<unknown>[]) {
  const settled = await Promise.allSettled(sent);
  const refusals = settled.flatMap((each) => (each.status === 'rejected' ? [each.reason as Error] : []));
  return { taken: settled.length - refusals.length, refusals };
}

/** A run on a store with records of this size, of which each step waits for the test. */
function steppedRun(steps: number, maxRecordBytes?: number) {
  const gates = Array.from({ length: steps }, () => gate());
  let step = 0;
  const work = toolOf('work', 'read', () => gates[step++]?.pass());
  const store = memoryStore();
  const script = [...gates.map((_, i) => callTool('work', { i })), reply('done')];
  const checkpointer = createCheckpointerFactory(store, maxRecordBytes === undefined ? {} : { maxRecordBytes });
  const host = hostOf({ script, tools: [work], ports: { checkpointer }, agent: { maxSteps: steps + 1 } });
  return { host, gates, store };
}

describe('what is said to a run never ends it', () => {
  test('150 messages of a megabyte: what finds no room is refused, with the size that is left, and the run ends well', async () => {
    const { host, gates } = steppedRun(1);
    const run = await host.start();
    await gates[0]?.reached;
    const { taken, refusals } = await fate(Array.from({ length: 150 }, () => run.steer(text(1_000_000))));
    expect(taken).toBe(8);
    expect(refusals).toHaveLength(142);
    for (const refusal of refusals) {
      expect(refusal).toMatchObject({ code: 'UNDELIVERED', message: expect.stringMatching(/room for \d+ more bytes/) });
    }
    await expect(run.steer('short')).resolves.toBe('durable');
    gates[0]?.open();
    const result = await run.result;
    expect(result).toMatchObject({ status: 'ok', undelivered: [] });
    expect(result.messages).toHaveLength(4 + 9);
  });

  test.for([
    ['an earlier conversation', { history: [say(300_000)] }],
    ['its inputs', { inputs: { a: text(600_000) } }],
    ['its images', { images: [{ mediaType: 'image/png', data: 'A'.repeat(300_000) }] }],
  ] as const)('%s of the run takes room: the record has it beside the messages', async ([, given]) => {
    const { host, gates } = steppedRun(1, MEBI);
    const run = await host.start({ runId: 'r', ...(given as object) });
    await gates[0]?.reached;
    // Three quarters of the record are 786,432 bytes, of which some 600,000 are taken.
    await expect(run.steer(text(250_000))).rejects.toThrow(/room for 1[5-8]\d{4} more bytes/);
    await expect(run.steer(text(120_000))).resolves.toBe('durable');
    gates[0]?.open();
    expect((await run.result).status).toBe('ok');
  });

  test('turn after turn messages fill three quarters of the record, and leave the rest to the run', async () => {
    const maxRecordBytes = MEBI;
    const { host, gates, store } = steppedRun(12, maxRecordBytes);
    const run = await host.start({ runId: 'r' });
    let taken = 0;
    for (const each of gates) {
      await each.reached;
      taken += (await fate([run.steer(text(100_000)), run.steer(text(100_000))])).taken;
      each.open();
    }
    const { status, error } = await run.result;
    expect([status, error]).toEqual(['ok', undefined]);
    expect(taken).toBe(7);
    expect(await store.load('r')).toBeNull();
  });

  test('a message of more than 1,048,576 characters is refused by every way to say it', async () => {
    const { host, gates } = steppedRun(1);
    const run = await host.start({ runId: 'r' });
    await gates[0]?.reached;
    const { executor } = host;
    for (const said of [run.steer(text(MEBI + 1)), executor.control('r').steer(text(MEBI + 1))]) {
      await expect(said).rejects.toMatchObject({ code: 'UNDELIVERED', message: expect.stringContaining('1048576') });
    }
    gates[0]?.open();
    expect((await run.result).status).toBe('ok');
  });

  test('what is said while a run resolves is bounded as well', async () => {
    const { executor, agent } = hostOf({ store: memoryStore(), script: [reply('done')] });
    const actor = createActor(executor.logic(agent), { input: { prompt: 'Go.', runId: 'r' } });
    const refused: string[] = [];
    actor.on('steer.refused', ({ receipt }) => void refused.push(receipt));
    const ended = new Promise<void>((resolve) => void actor.subscribe({ complete: resolve }));
    actor.start();
    for (let i = 0; i < 150; i++) actor.send({ type: 'run.steer', message: say(1_000_000), receipt: `${i}` });
    await ended;
    expect(refused).toHaveLength(142);
    expect(actor.getSnapshot().output).toMatchObject({ status: 'ok' });
  });

  test('a nudge that finds no room is dropped, with a warning', async () => {
    let watched: SupervisedRun | undefined;
    const critic: Critic = {
      monitor: (_, run) => {
        watched = run;
        return { onActivity: () => {}, stop: () => {} };
      },
    };
    const atWork = gate();
    const work = toolOf('work', 'read', () => atWork.pass());
    const host = hostOf({
      script: [callTool('work'), reply('done')],
      tools: [work],
      ports: { critic, checkpointer: createCheckpointerFactory(memoryStore(), { maxRecordBytes: 8_000 }) },
    });
    const run = await host.start({ runId: 'r' });
    await atWork.reached;
    watched?.nudge(text(4_000));
    watched?.nudge(text(4_000));
    watched?.nudge('Be brief.');
    atWork.open();
    const { status, messages } = await run.result;
    expect(status).toBe('ok');
    expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'user', 'user', 'assistant']);
    expect(host.warned).toMatchObject([
      {
        message: 'run: a nudge of the critic is too large; it was dropped',
        fields: { runId: 'r', bytes: expect.any(Number), left: expect.any(Number) },
      },
    ]);
  });
});

describe('an outcome that is kept', () => {
  test('is cut to its bound, and says so; the result and the first delivery are whole', async () => {
    const store = memoryStore();
    const delivered: number[] = [];
    const phases = Array.from({ length: 4 }, (_, i) => ({ name: `p${i}`, instructions: 'Write.' }));
    const script = phases.map(() => reply(text(3_000_000)));
    const host = hostOf({
      script,
      store,
      agent: { phases },
      onOutcome: ({ output }) => void delivered.push(output.length),
    });
    const result = await host.run({ runId: 'r' });
    expect(result).toMatchObject({ status: 'ok' });
    expect(result).not.toHaveProperty('isCut');
    expect(result.phases.map(({ output }) => output.length)).toEqual([3_000_000, 3_000_000, 3_000_000, 3_000_000]);
    expect(delivered).toEqual([3_000_000]);
    const kept = await store.outcomes.find('r');
    expect(kept).toMatchObject({
      status: 'ok',
      isCut: true,
      output: expect.stringMatching(/^x+ \[cut: 3000000 characters/),
    });
    expect(JSON.stringify(kept).length).toBeLessThan(4 * MEBI);
    const again = await hostOf({ script: [], store, agent: { phases } }).run({ runId: 'r' });
    expect(again).toMatchObject({ status: 'ok', isCut: true });
  });

  test('has as many of the messages that were not delivered as there is room for', async () => {
    const store = memoryStore();
    const atWork = gate();
    const work = toolOf('work', 'read', () => atWork.pass());
    const script = [callTool('work', { text: text(500_000) })];
    const host = hostOf({ script, tools: [work], store });
    const run = await host.start({ runId: 'r' });
    await atWork.reached;
    // Two bytes for each letter: 8 MiB are full after the tenth, and no outcome is too long in characters.
    const { taken } = await fate(Array.from({ length: 20 }, () => run.steer('é'.repeat(400_000))));
    expect(taken).toBe(10);
    await run.cancel();
    expect((await run.result).undelivered).toHaveLength(10);
    await until(async () => (await store.load('r')) === null);
    expect((await store.outcomes.find('r'))?.undelivered).toHaveLength(10);
  });

  test('is whole up to the bound', async () => {
    const store = memoryStore();
    const host = hostOf({ script: [reply(text(3_999_999))], store });
    await host.run({ runId: 'r' });
    expect((await store.outcomes.find('r'))?.output).toHaveLength(3_999_999);
  });
});
